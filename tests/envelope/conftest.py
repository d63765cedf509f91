"""A probe plugin beside acme, callers of two tenants, and row counts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.db import connection
from django.http import HttpResponse
from django.test import Client, override_settings

from better_compute import ComputeRouter, registry
from better_compute.envelope import tokens
from tests.envelope.probe import probe_module

TABLES = ("plg_acme_widget", "compute_outbox", "compute_work", "compute_audit_events")

Counts = dict[str, int]


def count_rows() -> Counts:
    """How many rows each table holds that a call writes."""
    counts = {}
    with connection.cursor() as cursor:
        for table in TABLES:
            cursor.execute(f"SELECT count(*) FROM {table}")
            counts[table] = cursor.fetchone()[0]
    return counts


def grown(before: Counts) -> Counts:
    """Which tables grew since, and by how many rows."""
    return {table: count - before[table] for table, count in count_rows().items() if count != before[table]}


def audit_rows() -> list[dict[str, Any]]:
    """Every call's audit record, oldest first; making the callers' tokens is left out."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT * FROM compute_audit_events WHERE resource_type <> 'token' ORDER BY xid")
        names = [column.name for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


@pytest.fixture(autouse=True)
def _probe_hosted() -> Iterator[None]:
    """Host the probe plugin beside what the example project hosts, over HTTP too."""
    specs = registry.current().modules
    with registry.override(*specs, probe_module()):
        from django.urls import include, path

        urls = (path("api/compute/", include(ComputeRouter().urls)),)
        with override_settings(ROOT_URLCONF=urls):
            yield


def make_user(name: str, *actions: str, **fields: Any) -> Any:
    """A user with exactly these permissions."""
    from better_compute.envelope.permissions import create_permissions

    create_permissions()
    user = get_user_model().objects.create_user(name, **fields)
    named = {action.removeprefix("compute:") for action in actions}
    permissions = Permission.objects.filter(content_type__app_label="compute", codename__in=named)
    assert {each.codename for each in permissions} == named
    user.user_permissions.add(*permissions)
    return user


@dataclass(frozen=True)
class Caller:
    """Calls methods over HTTP with one token."""

    secret: str
    client: Client

    def post(self, path: str, body: Any = None, **headers: str) -> HttpResponse:
        """POST a JSON body, or bytes as they are."""
        return self.client.post(
            f"/api/compute/{path}",
            {} if body is None else body,
            content_type="application/json",
            headers={"Authorization": f"Bearer {self.secret}", **headers},
        )

    def get(self, path: str, **headers: str) -> HttpResponse:
        """GET."""
        return self.client.get(f"/api/compute/{path}", headers={"Authorization": f"Bearer {self.secret}", **headers})

    def probe(self, method: str, **members: Any) -> HttpResponse:
        """POST to a probe in tenant t1."""
        return self.post(f"plugins/probe/probes/{method}", {"tenantId": "t1", **members})


MakeCaller = Callable[..., Caller]

EVERYTHING = (
    "compute:probe:write",
    "compute:probe:read",
    "compute:acme:poke",
    "compute:acme:read",
    "compute:system:read",
    "compute:work:read",
    "compute:work:requeue",
    "compute:work:pause",
)


@pytest.fixture
def make_caller(client: Client) -> MakeCaller:
    """Make a caller with a token of a user who has these permissions."""

    def make(tenant_id: str | None = "t1", *actions: str, name: str = "", **fields: Any) -> Caller:
        user = make_user(name or f"user-{tenant_id}-{len(actions)}", *actions, **fields)
        secret, _ = tokens.create(user=user, label="test", tenant_id=tenant_id)
        return Caller(secret, client)

    return make


@pytest.fixture
def caller(make_caller: MakeCaller) -> Caller:
    """A caller in tenant t1 who may do everything that has a permission."""
    return make_caller("t1", *EVERYTHING, name="mary")


@pytest.fixture
def installation(make_caller: MakeCaller) -> Caller:
    """A caller with a token of the installation, who may do everything in every tenant."""
    return make_caller(None, *EVERYTHING, "any_tenant", name="olga")
