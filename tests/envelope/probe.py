"""A plugin whose methods misbehave in one way each."""

from __future__ import annotations

import contextlib
import select
from functools import cache
from typing import Any

from django.db import IntegrityError, connection, transaction

from better_compute import (
    Catalog,
    ComputeError,
    ComputeViewSet,
    ErrorCode,
    Input,
    MethodContext,
    Output,
    Resource,
    ResourceType,
    TenantId,
    compute_method,
)
from better_compute.contract.module import ModuleSpec
from better_compute.registry.methods import read
from example_project.acme_widgets.models import Widget

WRITE = "compute:probe:write"
READ = "compute:probe:read"


class Where(Input):
    """The tenant a probe acts in, the widget it makes, and what else it is to do."""

    tenant_id: TenantId
    widget_id: str = "w1"
    extra: Any = None


class WidgetInput(Input):
    """A widget by its id."""

    widget_id: str


class Answer(Output):
    """Anything at all."""

    value: Any


class Number(Output):
    """A number."""

    value: float


#: What was noted after a commit.
AFTER_COMMIT: list[str] = []


def tenant(input: Any) -> Resource:
    """The tenant that the input names."""
    return Resource("tenant", input.tenant_id)


def write_everything(ctx: MethodContext, input: Where) -> None:
    """Write a row, an event and a work item."""
    Widget.objects.create(id=input.widget_id, tenant_id=input.tenant_id)
    ctx.events.publish(type="probe.written", tenant_id=input.tenant_id, subject="widget/w1", data={})
    ctx.work.enqueue("acme.widgets", input.tenant_id)


class Probes(ComputeViewSet):
    """Methods that write everything and then fail, each in its own way."""

    @compute_method(action=WRITE, kind="mutation", resource=tenant)
    def write(self, ctx: MethodContext, input: Where) -> Answer:
        """Succeed."""
        write_everything(ctx, input)
        return Answer(value=ctx.tenant_id)

    @compute_method(action=WRITE, kind="mutation", resource=tenant)
    def crash(self, ctx: MethodContext, input: Where) -> Answer:
        """Raise what nobody expects, with a secret in it."""
        write_everything(ctx, input)
        raise RuntimeError("the password is hunter2")

    @compute_method(action=WRITE, kind="mutation", resource=tenant)
    def refuse(self, ctx: MethodContext, input: Where) -> Answer:
        """Refuse with the code that the input names."""
        write_everything(ctx, input)
        raise ComputeError(input.extra, "Refused by the method.", mend="Ask otherwise.", retry_after=7)

    @compute_method(action=WRITE, kind="mutation", resource=tenant)
    def answer_unencodable(self, ctx: MethodContext, input: Where) -> Answer:
        """Answer with what JSON has no form for."""
        write_everything(ctx, input)
        return Answer(value=object())

    @compute_method(action=WRITE, kind="mutation", resource=tenant)
    def answer_surrogate(self, ctx: MethodContext, input: Where) -> Answer:
        """Answer with what UTF-8 has no form for."""
        write_everything(ctx, input)
        return Answer(value="\ud800")

    @compute_method(action=WRITE, kind="mutation", resource=tenant)
    def swallow(self, ctx: MethodContext, input: Where) -> Answer:
        """Swallow an error of the database without a savepoint."""
        write_everything(ctx, input)
        with contextlib.suppress(Exception), connection.cursor() as cursor:
            cursor.execute("SELECT 1 / 0")
        return Answer(value="as if nothing had happened")

    @compute_method(action=WRITE, kind="mutation", resource=tenant)
    def get_or_create(self, ctx: MethodContext, input: Where) -> Answer:
        """Meet a unique violation inside a savepoint, as get_or_create does."""
        write_everything(ctx, input)
        with contextlib.suppress(IntegrityError), ctx.sql.transaction():
            Widget.objects.create(id=input.widget_id, tenant_id=input.tenant_id)
        return Answer(value="kept")

    @compute_method(action=WRITE, kind="mutation", resource=tenant)
    def run_sql(self, ctx: MethodContext, input: Where) -> Answer:
        """Run the SQL that the input holds, after having written everything."""
        write_everything(ctx, input)
        ctx.sql.query(input.extra)
        return Answer(value="ran")

    @compute_method(action=WRITE, kind="mutation", resource=tenant)
    def end_the_transaction(self, ctx: MethodContext, input: Where) -> Answer:
        """End the call's transaction behind its back, in the way that the input names, after having written."""
        write_everything(ctx, input)
        if input.extra == "psycopg":
            connection.connection.rollback()
        else:
            with connection.cursor() as cursor:
                cursor.execute(input.extra)
        return Answer(value="as if it were still open")

    @compute_method(action=WRITE, kind="mutation", resource=tenant)
    def freeze(self, ctx: MethodContext, input: Where) -> Answer:
        """Send nothing until the database has ended the session, after having written everything."""
        write_everything(ctx, input)
        select.select([connection.connection.fileno()], [], [], 30)
        return Answer(value="as if it were still open")

    @compute_method(action=WRITE, kind="mutation", resource=tenant)
    def raise_after_commit(self, ctx: MethodContext, input: Where) -> Answer:
        """Leave a callback that raises once the change is committed, and one behind it."""

        def fail() -> None:
            raise RuntimeError("raised after commit")

        write_everything(ctx, input)
        transaction.on_commit(fail)
        transaction.on_commit(lambda: AFTER_COMMIT.append(input.widget_id))
        return Answer(value="kept")

    @compute_method(action=WRITE, kind="mutation", resource=tenant)
    def answer_undeclared(self, ctx: MethodContext, input: Where) -> Number:
        """Answer what the declaration does not allow, in the way that the input names."""
        write_everything(ctx, input)
        return {  # type: ignore[return-value]
            "none": None,
            "nan": Number(value=float("nan")),
            "text": {"value": "x"},
            "more": {"value": 1.5, "password": "hunter2"},
            "fine": {"value": 1.5},
        }[input.extra]

    @compute_method(action=WRITE, kind="mutation", resource=tenant)
    def publish(self, ctx: MethodContext, input: Where) -> Answer:
        """Publish an event of the tenant that the input names."""
        ctx.events.publish(type="probe.published", tenant_id=input.extra, subject="widget/w1", data={})
        return Answer(value="published")

    @compute_method(action=WRITE, kind="mutation", resource=lambda _: Resource("system", "probe"))
    def announce(self, ctx: MethodContext, input: Where) -> Answer:
        """Publish an event of the tenant that the input names, on behalf of the installation."""
        ctx.events.publish(type="probe.announced", tenant_id=input.tenant_id, subject="widget/w1", data={})
        return Answer(value="announced")

    @compute_method(action=READ, kind="query", resource=tenant)
    def escape(self, ctx: MethodContext, input: Where) -> Answer:
        """Leave the read-only transaction for another, and write."""
        with connection.cursor() as cursor:
            cursor.execute("COMMIT; BEGIN")
        Widget.objects.create(id=input.widget_id, tenant_id=input.tenant_id)
        return Answer(value="written")

    @compute_method(action=READ, kind="query", resource=tenant)
    def peek(self, ctx: MethodContext, input: Where) -> Answer:
        """Read."""
        return Answer(value=[input.tenant_id, input.extra])

    @compute_method(action=READ, kind="query", resource=tenant)
    def scribble(self, ctx: MethodContext, input: Where) -> Answer:
        """Write although a query may not."""
        Widget.objects.create(id=input.widget_id, tenant_id=input.tenant_id)
        return Answer(value="written")

    @compute_method(action=READ, kind="query", resource=tenant)
    def get(self, ctx: MethodContext, input: Where) -> Answer:
        """Be named like an HTTP verb."""
        return Answer(value="got")

    @compute_method(action=WRITE, kind="mutation", resource=tenant)
    def post(self, ctx: MethodContext, input: Where) -> Answer:
        """Be named like the other."""
        return Answer(value="posted")

    @compute_method(action=WRITE, kind="mutation", resource=lambda i: Resource("probe-widget", i.widget_id))
    def touch(self, ctx: MethodContext, input: WidgetInput) -> Answer:
        """Act on a record whose tenant the catalog resolves."""
        return Answer(value=ctx.tenant_id)

    @compute_method(action=WRITE, kind="mutation", resource=lambda i: 1 / 0)
    def unresourceful(self, ctx: MethodContext, input: Where) -> Answer:
        """Have a resource that cannot be told."""
        raise AssertionError("not reached")

    @compute_method(action=READ, kind="query", resource=lambda _: Resource("system", "probe"))
    def whoami(self, ctx: MethodContext) -> Answer:
        """Take no input."""
        return Answer(value=[ctx.principal.id, ctx.request_id, ctx.tenant_id])


def _widget_tenant(sql: Any, id: str) -> str | None:
    rows = sql.query("SELECT tenant_id FROM plg_acme_widget WHERE id = %s", [id]).rows
    return rows[0]["tenant_id"] if rows else None


@cache
def probe_module() -> ModuleSpec:
    """The plugin ``probe`` as the registry would read it."""
    catalog = Catalog(actions=[WRITE, READ], resource_types={"probe-widget": ResourceType(resolve=_widget_tenant)})
    bare = ModuleSpec(name="probe", path="tests.envelope.probe", label="plg_probe", plugin_id="probe", catalog=catalog)
    methods, problems = read(bare, [Probes])
    assert not problems, problems
    return ModuleSpec(
        name="probe",
        path="tests.envelope.probe",
        label="plg_probe",
        plugin_id="probe",
        catalog=catalog,
        methods=methods,
    )


REFUSALS = sorted(code.value for code in ErrorCode)
