"""Rows of ``compute_tenant_states``: read, changed by a verb, and written after a pass of the teardown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import msgspec

from better_compute import ModuleContext

from .blockers import Blocker
from .states import TABLE, State, Verb

#: How long a verb waits for calls that are changing the tenant right now.
LOCK_WAIT: Final = "5s"

_COLUMNS: Final = (
    "tenant_id, state, reason, changed_at, teardown_done_at, blockers, passes, last_pass_at, xmin::text AS version"
)

EVENT: Final = {
    Verb.SUSPEND: "tenant.suspended",
    Verb.RESUME: "tenant.resumed",
    Verb.DELETE: "tenant.deleting",
    Verb.FINISH: "tenant.torn-down",
}


@dataclass(frozen=True, slots=True)
class Record:
    """One tenant's row; ``changed_at`` is None where there is none."""

    tenant_id: str
    state: State = State.ACTIVE
    reason: str = ""
    changed_at: datetime | None = None
    teardown_done_at: datetime | None = None
    blockers: tuple[Blocker, ...] = ()
    passes: int = 0
    last_pass_at: datetime | None = None
    #: Another one after every change of the row, :func:`touch` included.
    version: str = ""


def read(ctx: ModuleContext, tenant_id: str, *, lock: bool = False) -> Record:
    """The tenant's row, locked FOR UPDATE on demand; an active record where there is none."""
    for_update = " FOR UPDATE" if lock else ""
    rows = ctx.sql.query(f"SELECT {_COLUMNS} FROM compute_tenant_states WHERE tenant_id = %s{for_update}", [tenant_id])  # noqa: S608
    return _record(rows.rows[0]) if rows.rows else Record(tenant_id)


def several(ctx: ModuleContext, tenant_ids: Sequence[str]) -> list[Record]:
    """The rows of those of these tenants that have one."""
    rows = ctx.sql.query(
        f"SELECT {_COLUMNS} FROM compute_tenant_states WHERE tenant_id = ANY(%s::text[])",  # noqa: S608
        [list(tenant_ids)],
    )
    return [_record(row) for row in rows.rows]


def page(ctx: ModuleContext, *, state: State | None, after: str, limit: int) -> list[Record]:
    """Up to ``limit`` rows whose tenant's id is greater than ``after``, in code-point order."""
    only = " AND state = %s" if state else ""
    rows = ctx.sql.query(
        f"SELECT {_COLUMNS} FROM compute_tenant_states WHERE tenant_id > %s{only} ORDER BY tenant_id LIMIT %s",  # noqa: S608
        [after, *([state.value] if state else []), limit],
    )
    return [_record(row) for row in rows.rows]


def dying(ctx: ModuleContext, after: str, limit: int) -> list[str]:
    """Ids of tenants whose teardown has not ended, by id."""
    rows = ctx.sql.query(
        "SELECT tenant_id FROM compute_tenant_states WHERE state = 'deleting' AND tenant_id > %s"
        " ORDER BY tenant_id LIMIT %s",
        [after, limit],
    ).rows
    return [row["tenant_id"] for row in rows]


def lock(ctx: ModuleContext, tenant_id: str) -> None:
    """Take the tenant's lock exclusively until the open transaction ends: no call adds to the tenant meanwhile."""
    # Statements of their own, so that what is read next is read by a snapshot taken after the lock was had.
    ctx.sql.query("SELECT set_config('lock_timeout', %s, true)", [LOCK_WAIT])
    ctx.sql.query("SELECT pg_advisory_xact_lock(compute_tenant_lock(%s))", [tenant_id])


def apply(ctx: ModuleContext, tenant_id: str, verb: Verb, reason: str) -> Record:
    """Change the tenant's state in the open transaction, tell of it, and wake the teardown when it begins.

    Takes the tenant's lock exclusively first: it waits for calls that are adding to the tenant, and later ones
    see the new state. Then the row.

    Raises
    ------
    ComputeError
        INVALID_STATE listing the legal verbs; STORAGE_BUSY when a call holds the tenant for longer than the wait.
    """
    lock(ctx, tenant_id)
    target = TABLE.after(tenant_id, read(ctx, tenant_id, lock=True).state, verb)
    ctx.sql.query(
        """
        INSERT INTO compute_tenant_states (tenant_id, state, reason, changed_at, blockers, passes)
        VALUES (%s, %s, %s, compute_now(), '[]', 0)
        ON CONFLICT (tenant_id) DO UPDATE SET
          state = EXCLUDED.state, reason = EXCLUDED.reason, changed_at = EXCLUDED.changed_at
        """,
        [tenant_id, target.value, reason],
    )
    _tell(ctx, tenant_id, verb, {"reason": reason})
    if target is State.DELETING:
        ctx.work.enqueue("tenancy", tenant_id)
    return read(ctx, tenant_id)


def touch(ctx: ModuleContext, tenant_id: str) -> bool:
    """Keep a teardown from ending with the pass that is under way; False when it has ended.

    Locks the row until the open transaction ends, after the tenant's lock; a pass that would end it waits for that.
    """
    return bool(
        ctx.sql.query(
            "UPDATE compute_tenant_states SET state = state WHERE tenant_id = %s AND state = 'deleting'", [tenant_id]
        ).row_count
    )


def write_pass(ctx: ModuleContext, record: Record, blockers: Sequence[Blocker]) -> State:
    """Note a pass of the teardown; one that nothing blocked ends it. Runs in the open, fenced transaction.

    The row is locked and its state checked, so that the end is written and told once whoever else passes. A row that
    changed since ``record`` was read does not end: a call may have added what no hook was asked about.
    """
    current = read(ctx, record.tenant_id, lock=True)
    if current.state is not State.DELETING:
        return current.state
    if blockers:
        ctx.sql.query(
            """
            UPDATE compute_tenant_states
            SET blockers = %s::jsonb, passes = passes + 1, last_pass_at = compute_now() WHERE tenant_id = %s
            """,
            [msgspec.json.encode(list(blockers)).decode(), record.tenant_id],
        )
        return State.DELETING
    if current.version != record.version:
        return State.DELETING
    ended = TABLE.after(record.tenant_id, current.state, Verb.FINISH)
    ctx.sql.query(
        """
        UPDATE compute_tenant_states
        SET state = %s, blockers = '[]', passes = passes + 1, last_pass_at = compute_now(),
            teardown_done_at = compute_now()
        WHERE tenant_id = %s
        """,
        [ended.value, record.tenant_id],
    )
    _tell(ctx, record.tenant_id, Verb.FINISH, {"passes": current.passes + 1})
    return ended


def _tell(ctx: ModuleContext, tenant_id: str, verb: Verb, data: dict[str, Any]) -> None:
    ctx.events.publish(type=EVENT[verb], tenant_id=tenant_id, subject=f"tenant/{tenant_id}", data=data)


def _record(row: dict[str, Any]) -> Record:
    # A raw cursor of Django leaves jsonb as text.
    stored = row["blockers"]
    decoded = msgspec.json.decode(stored) if isinstance(stored, str | bytes) else stored
    return Record(
        tenant_id=row["tenant_id"],
        state=State(row["state"]),
        reason=row["reason"],
        changed_at=row["changed_at"],
        teardown_done_at=row["teardown_done_at"],
        blockers=tuple(msgspec.convert(decoded, list[Blocker])),
        passes=row["passes"],
        last_pass_at=row["last_pass_at"],
        version=row["version"],
    )
