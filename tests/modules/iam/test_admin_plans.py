"""The pages of access with many rows: read through indexes, and as fast for who sees little as for who sees all."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client

from better_compute import session_principal
from compute_modules.iam.authorizer import Grants
from compute_modules.iam.projection import projection
from tests.admin.rows import execute
from tests.admin.test_lists import plans
from tests.modules.iam.conftest import grant

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("world")]

MANY = 10_000


@pytest.fixture
def many() -> None:
    """Tenants below org, grants and tokens in them, and teardowns."""
    execute(
        """
        INSERT INTO compute_iam_tenants (id, parent_id, kind, name, path, depth)
        SELECT 'p' || g, 'org', 'project', 'p' || g, '[]', 1 FROM generate_series(1, 2000) g;
        INSERT INTO compute_iam_grants (id, principal_id, effect, role, patterns, tenant_id, resource_type, resource_id,
                                        inherit, reason, break_glass, created_by, revoked_by)
        SELECT gen_random_uuid(), 'service/s' || g % 500, 'permit', 'viewer', '[]', 'p' || 1 + g % 2000, '', '', false,
               '', false, 'test', '' FROM generate_series(1, 10000) g;
        INSERT INTO compute_iam_tokens (id, digest, hint, principal_id, home_tenant_id, label, created_by, created_at)
        SELECT gen_random_uuid(), decode(md5(g::text), 'hex'), 'bci_', 'service/s' || g % 500, 'p' || 1 + g % 2000,
               't', 'test', compute_now() - g * interval '1 s' FROM generate_series(1, 10000) g;
        INSERT INTO compute_tenant_states (tenant_id, state, reason, blockers, passes)
        SELECT 'p' || g, CASE WHEN g % 100 = 0 THEN 'deleting' ELSE 'suspended' END, 'x', '[]', 0
        FROM generate_series(1, 1500) g;
        ANALYZE compute_iam_tenants, compute_iam_grants, compute_iam_tokens, compute_tenant_states
        """
    )


@pytest.fixture
def session(client: Client, django_user_model: Any) -> Client:
    user = django_user_model.objects.create_superuser("ops")
    grant(f"user/{user.pk}", "root", "owner", inherit=True)
    client.force_login(user)
    return client


@pytest.mark.parametrize(
    ("table", "address"),
    [
        ("compute_iam_tenants", "compute_iam/tenantnode/"),
        ("compute_iam_tenants", "compute_iam/tenantnode/?p=7"),
        ("compute_iam_tenants", "compute_iam/tenantnode/?below=org"),
        ("compute_iam_tenants", "compute_iam/tenantnode/?q=p19"),
        ("compute_iam_grants", "compute_iam/grantrow/"),
        ("compute_iam_grants", "compute_iam/grantrow/?p=7"),
        ("compute_iam_grants", "compute_iam/grantrow/?tenant=p7"),
        ("compute_iam_grants", "compute_iam/grantrow/?q=service/s7"),
        ("compute_iam_grants", "compute_iam/grantrow/?broken=yes"),
        ("compute_iam_tokens", "compute_iam/scopedtoken/"),
        ("compute_iam_tokens", "compute_iam/scopedtoken/?tenant=p7"),
        ("compute_iam_tokens", "compute_iam/scopedtoken/?q=service/s7"),
        ("compute_tenant_states", "compute_tenancy/tenantstate/"),
        ("compute_tenant_states", "compute_tenancy/tenantstate/?q=p19"),
    ],
)
def test_a_page_of_access_reads_through_an_index(session: Client, many: None, table: str, address: str) -> None:
    for plan in plans(session, f"/admin/{address}", table):
        assert not re.search(rf"Seq Scan on {table}", plan), plan
        assert "Sort" not in plan or "Incremental Sort" in plan or "Bitmap" in plan, plan


def test_who_sees_one_tenant_is_shown_its_rows_alone(client: Client, many: None, django_user_model: Any) -> None:
    user = django_user_model.objects.create_superuser("one")
    grant(f"user/{user.pk}", "p1777", "viewer")
    client.force_login(user)

    # Its tenant; five grants there and its own; five tokens.
    for address, expected in (
        ("compute_iam/tenantnode/", 1),
        ("compute_iam/grantrow/", 6),
        ("compute_iam/scopedtoken/", 5),
    ):
        page = client.get(f"/admin/{address}").content.decode()
        assert f"1 to {expected}</span>" in page, address
    for plan in plans(client, "/admin/compute_iam/grantrow/", "compute_iam_grants"):
        assert "Seq Scan on compute_iam_grants" not in plan, plan


def test_where_a_principal_may_read_is_told_like_each_tenant_by_itself(world: None, django_user_model: Any) -> None:
    user = django_user_model.objects.create_user("some")
    grant(f"user/{user.pk}", "org", "viewer", inherit=True)
    grant(f"user/{user.pk}", "sib", effect="forbid", actions=["compute:iam:*"])
    principal = session_principal(user)
    authorizer = Grants()
    projection.forget()

    assert authorizer.tenants_allowed(principal, "compute:iam:read") == {"org", "own"}
