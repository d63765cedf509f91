"""Two organisations, principals that hold what a test grants them, and the authorizer that judges by grants."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.conf import settings
from django.db import connection
from django.test import override_settings

from better_compute import ComputeError, Principal, compute
from compute_modules.iam import lifecycle
from compute_modules.iam.projection import projection
from example_project.acme_widgets.models import Widget
from tests.modules.tenancy.conftest import told as told

#: Trusted code of this process.
OPERATOR = Principal(id="internal/test", kind="internal")

AUTHORIZER = "compute_modules.iam.authorizer.Grants"


def who(name: str) -> Principal:
    """Somebody who calls in process and has what was granted to the service account, no more."""
    return Principal(id=f"service/{name}", kind="internal", acts_for=f"service/{name}")


def tenant(id: str, parent: str, kind: str = "project", **more: Any) -> Any:
    """Make a tenant."""
    return compute.api.tenant_tree.create(
        OPERATOR, {"parentId": parent, "tenantId": id, "kind": kind, "name": id, **more}
    )


def service(name: str, home: str = "org") -> Principal:
    """Make a service account and return it as a caller."""
    compute.api.service_accounts.create(OPERATOR, {"tenantId": home, "name": name, "label": name})
    return who(name)


def grant(name: str, tenant_id: str, role: str | None = None, *, by: Principal = OPERATOR, **more: Any) -> Any:
    """Grant a service account something."""
    principal = name if "/" in name else f"service/{name}"
    return compute.api.grants.create(
        by, {"tenantId": tenant_id, "principal": principal, **({"role": role} if role else {}), **more}
    )


def revoke(grant_id: str, by: Principal = OPERATOR) -> Any:
    """Take a grant back."""
    return compute.api.grants.revoke(by, {"grantId": grant_id})


def poke(by: Principal, tenant_id: str = "own", widget_id: str = "w1") -> Any:
    """A mutation of the example plugin."""
    return compute.api.plugins.acme.widgets.poke(by, {"tenantId": tenant_id, "widgetId": widget_id})


def count(by: Principal, tenant_id: str = "own") -> Any:
    """A query of the example plugin."""
    return compute.api.plugins.acme.widgets.count(by, {"tenantId": tenant_id})


def refused(call: Any) -> ComputeError:
    """The refusal of a call."""
    with pytest.raises(ComputeError) as caught:
        call()
    return caught.value


def may(by: Principal, tenant_id: str = "own") -> str:
    """``yes``, or the code of what refuses a read."""
    try:
        count(by, tenant_id)
    except ComputeError as error:
        return error.code.value
    return "yes"


@pytest.fixture
def by_grants() -> Iterator[None]:
    """Judge by grants."""
    with override_settings(COMPUTE={**settings.COMPUTE, "IAM": AUTHORIZER}):
        yield
    projection.forget()


@pytest.fixture
def world(transactional_db: None, by_grants: None) -> None:
    """root > org > own, sib; root > other > far."""
    projection.forget()
    lifecycle.start(compute.context("iam"))
    tenant("org", "root", "organisation")
    tenant("own", "org")
    tenant("sib", "org")
    tenant("other", "root", "organisation")
    tenant("far", "other")


def rows(sql: str, *params: Any) -> list[tuple[Any, ...]]:
    """The rows of a query."""
    with connection.cursor() as cursor:
        cursor.execute(sql, params or None)
        return list(cursor.fetchall()) if cursor.description else []


def no_widgets() -> bool:
    """Whether nothing was written by a refused call."""
    return not Widget.objects.exists()
