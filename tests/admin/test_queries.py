"""How many statements each page makes: a baseline, the same for many rows as for one."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from better_compute import compute
from tests.admin import rows
from tests.modules.iam.conftest import OPERATOR, by_grants, grant, service, tenant, world

__all__ = ["by_grants", "world"]

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("world")]

#: Statements of a page, the session's and its user's two and what bounds the page included; see the pages for the rest.
BASELINE = {
    "compute/workitem/": 6,
    "compute/workitem/?state=failing": 6,
    "compute/workitem/history/": 7,
    "compute/lease/": 6,
    "compute/worker/": 6,
    "compute/process/": 6,
    "compute/outboxevent/": 6,
    "compute/auditevent/": 6,
    "compute/migrationrecord/": 6,
    "compute/pause/": 6,
    "compute/idempotencyrecord/": 6,
    "compute/ratelimit/": 2,
    "compute/token/": 6,
    "compute_iam/tenantnode/": 8,
    "compute_iam/grantrow/": 7,
    "compute_iam/scopedtoken/": 7,
    "compute_tenancy/tenantstate/": 7,
}


def fill(number: int) -> None:
    """``number`` more rows on every page."""
    rows.work(number, kind=f"kind-{number}", failing_each=1)
    rows.outbox(number)
    rows.audit(number)
    rows.idempotency(number, prefix=f"key-{number}")
    rows.history([f"kind-{each}" for each in range(number)], hours=number)
    rows.execute("DELETE FROM compute_pauses")
    for each in range(number):
        rows.pause(f"kind:kind-{each}")
        name = f"t{number}-{each}"
        tenant(name, "org")
        service(f"s{number}-{each}", home=name)
        grant(f"s{number}-{each}", name, "viewer")
        compute.api.tokens.create(OPERATOR, {"tenantId": name, "label": "t", "principal": f"service/s{number}-{each}"})
        compute.api.tenants.suspend(OPERATOR, {"tenantId": name, "reason": "unpaid"})


@pytest.fixture
def session(client: Client) -> Client:
    user: Any = get_user_model().objects.create_superuser("operator")
    grant(f"user/{user.pk}", "root", "owner", inherit=True)
    client.force_login(user)
    return client


def counted(session: Client, address: str) -> list[str]:
    session.get(f"/admin/{address}")
    with CaptureQueriesContext(connection) as made:
        assert session.get(f"/admin/{address}").status_code == 200
    return [query["sql"][:200] for query in made]


def test_every_list_makes_as_many_statements_for_many_rows_as_for_few(session: Client) -> None:
    rows.members()
    fill(1)
    few = {address: counted(session, address) for address in BASELINE}
    fill(20)
    many = {address: counted(session, address) for address in BASELINE}

    assert {address: len(made) for address, made in many.items()} == {
        address: len(made) for address, made in few.items()
    }
    assert {address: len(made) for address, made in many.items()} == BASELINE, few
