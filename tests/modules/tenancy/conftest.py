"""A plugin whose hooks a test scripts, callers, and short ways to read what a teardown left."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.db import connection, connections

from better_compute import (
    DONE,
    Catalog,
    ComputeViewSet,
    Input,
    MethodContext,
    ModuleContext,
    Output,
    Principal,
    Resource,
    TenantId,
    compute,
    compute_method,
    registry,
)
from better_compute.contract.module import ModuleSpec
from better_compute.registry.methods import read
from example_project.acme_widgets.models import Widget

#: Trusted code of this process: may do everything, so that what refuses is the tenant's state.
OPERATOR = Principal(id="internal/test", kind="internal")


class HeldInput(Input):
    """Where to add a widget."""

    tenant_id: TenantId
    widget_id: str


class Added(Output):
    """What was added."""

    added: str


class Holding:
    """Lets a test stop a call between its write and its commit."""

    entered = threading.Event()
    go_on = threading.Event()

    @classmethod
    def reset(cls) -> None:
        cls.entered.clear()
        cls.go_on.clear()


class Things(ComputeViewSet):
    """Methods that meet the tenant's state."""

    @compute_method(action="compute:script:write", kind="mutation", resource=lambda i: Resource("tenant", i.tenant_id))
    def hold(self, ctx: MethodContext, input: HeldInput) -> Added:
        """Add a widget, and wait before the commit."""
        Widget.objects.create(id=input.widget_id, tenant_id=input.tenant_id)
        Holding.entered.set()
        assert Holding.go_on.wait(20)
        return Added(added=input.widget_id)

    @compute_method(
        action="compute:script:write",
        kind="mutation",
        resource=lambda i: Resource("tenant", i.tenant_id),
        also_while=("deleting",),
    )
    def erase(self, ctx: MethodContext, input: HeldInput) -> Added:
        """Remove what blocks a teardown."""
        Widget.objects.filter(id=input.widget_id, tenant_id=input.tenant_id).delete()
        return Added(added=input.widget_id)


Hook = Callable[[ModuleContext, str], Any]


@dataclass
class Script:
    """What the hook of one module does, and how often it was called for which tenant."""

    name: str
    hook: Hook
    calls: list[str] = field(default_factory=list)

    def __call__(self, ctx: ModuleContext, tenant_id: str) -> Any:
        self.calls.append(tenant_id)
        return self.hook(ctx, tenant_id)

    def spec(self) -> ModuleSpec:
        """A plugin that brings the hook."""
        return ModuleSpec(
            name=self.name,
            path=__name__,
            label=f"plg_{self.name}",
            plugin_id=self.name,
            tenant_deleted=self,
        )


def things() -> ModuleSpec:
    """The plugin ``script`` with its methods."""
    catalog = Catalog(actions=["compute:script:write"])
    bare = ModuleSpec(name="script", path=__name__, label="plg_script", plugin_id="script", catalog=catalog)
    methods, problems = read(bare, [Things])
    assert not problems, problems
    return ModuleSpec(
        name="script", path=__name__, label="plg_script", plugin_id="script", catalog=catalog, methods=methods
    )


@contextmanager
def hosting(*scripts: Script) -> Iterator[None]:
    """Host the scripted hooks beside what the example project hosts."""
    with registry.override(*registry.current().modules, *(script.spec() for script in scripts)):
        yield


@pytest.fixture(autouse=True)
def _things_hosted() -> Iterator[None]:
    Holding.reset()
    with registry.override(*registry.current().modules, things()):
        yield


@pytest.fixture
def swept(transactional_db: None) -> None:
    """The sweep has run for the first time, so that it comes again only when the clock moves."""
    tick()


def done(ctx: ModuleContext, tenant_id: str) -> Any:
    """A hook that has nothing of the tenant's."""
    return DONE


def delete(tenant_id: str) -> Any:
    """Delete a tenant through the envelope."""
    return compute.api.tenants.delete(OPERATOR, {"tenantId": tenant_id, "reason": "contract ended"})


def status(tenant_id: str) -> Any:
    """What ``tenants.deletionStatus`` answers."""
    return compute.api.tenants.deletion_status(OPERATOR, {"tenantId": tenant_id})


def tick() -> int:
    """One batch of the reconciler."""
    return compute.jobs["tenancy"].tick()


def tick_until_quiet(limit: int = 50) -> int:
    """Batches until no key is due; how many keys ran."""
    total = 0
    for _ in range(limit):
        ran = tick()
        if not ran:
            return total
        total += ran
    raise AssertionError(f"still keys due after {limit} batches")


def told(type: str) -> list[dict[str, Any]]:
    """Events of a type in the outbox."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT tenant_id, subject, data FROM compute_outbox WHERE type = %s ORDER BY id", [type])
        return [
            {"tenant": tenant, "subject": subject, "data": json.loads(data) if isinstance(data, str) else data}
            for tenant, subject, data in cursor.fetchall()
        ]


def in_thread(work: Callable[[], Any]) -> tuple[threading.Thread, list[Any]]:
    """Run ``work`` on another connection; the list gets its answer or its exception."""
    answers: list[Any] = []

    def run() -> None:
        try:
            answers.append(work())
        except BaseException as error:
            answers.append(error)
        finally:
            connections.close_all()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread, answers


def someone_waits_for_a_tenant(count: int = 1) -> bool:
    """Whether sessions of this database wait for an advisory lock."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND database ="
            " (SELECT oid FROM pg_database WHERE datname = current_database())"
        )
        return bool(cursor.fetchone()[0] >= count)
