"""Bringing one tenant to where it is outside: its place, its name and its state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal

import msgspec

from better_compute import ComputeError, ErrorCode, ModuleContext

from . import grants, tree
from .apps import Options
from .models import MAX_DEPTH, TenantKind
from .outside import OutsideTenant, State, TenantSource

#: Refusals that pass by themselves; they are retried with backoff and are nobody's problem.
_PASSING: Final = (ErrorCode.STORAGE_BUSY,)

_NOTE: Final = """
INSERT INTO compute_iam_outside (tenant_id, state, problem, problem_since, read_at)
VALUES (%s, %s, %s, CASE WHEN %s <> '' THEN compute_now() END, compute_now())
ON CONFLICT (tenant_id) DO UPDATE SET
  state = CASE WHEN EXCLUDED.problem = '' THEN EXCLUDED.state ELSE compute_iam_outside.state END,
  problem = EXCLUDED.problem,
  problem_since = CASE WHEN EXCLUDED.problem <> '' THEN coalesce(compute_iam_outside.problem_since, compute_now()) END,
  read_at = EXCLUDED.read_at
"""


def follow(ctx: ModuleContext, source: TenantSource, tenant_id: str) -> None:
    """Ask how the tenant is and make it so here; what cannot be done is noted as a problem, and tried again later.

    A tenant that is missing outside is never deleted for that: only ``deleted`` deletes. A tenant that was suspended
    here stays so until it is resumed here; one that was suspended because it is outside is resumed with it.

    Raises
    ------
    Exception
        Whatever the source raises, and STORAGE_BUSY.
    """
    options: Options = ctx.options
    if tenant_id == options.root_tenant_id:
        return
    try:
        line = _line(source, tenant_id, options.root_tenant_id)
    except _Refused as refused:
        _note(ctx, tenant_id, "", str(refused))
        return
    if not line:
        if _noted(ctx, tenant_id) is not None:
            _note(
                ctx, tenant_id, "", "It is followed and not there any more; only a state of `deleted` deletes it here."
            )
        return
    wanted = line[-1]
    gone = [each.id for each in line[:-1] if each.state == "deleted"]
    if gone and wanted.state != "deleted":
        _note(ctx, tenant_id, "", f"It is {wanted.state} and stands below {gone[-1]!r}, which is deleted.")
        return
    try:
        if wanted.state != "deleted":
            _place(ctx, line)
        _converge(ctx, wanted)
    except ComputeError as error:
        if error.code in _PASSING:
            raise
        _note(ctx, tenant_id, wanted.state, f"{error.message} {error.mend}".strip())


class _Refused(Exception):
    """What the source answers makes no sense."""


def _line(source: TenantSource, tenant_id: str, root: str) -> Sequence[OutsideTenant]:
    """The tenant and those above it, topmost first; empty when it is not there."""
    line: list[OutsideTenant] = []
    wanted: str | None = tenant_id
    while wanted is not None and wanted != root:
        if any(each.id == wanted for each in line):
            raise _Refused(f"It stands below itself: {' < '.join(each.id for each in line)} < {wanted}.")
        if len(line) >= MAX_DEPTH - 1:
            raise _Refused(f"It stands deeper than {MAX_DEPTH}, the root included.")
        found = _read(source, wanted)
        if found is None:
            if line:
                raise _Refused(f"Its parent {wanted!r} is not there.")
            return []
        line.append(found)
        wanted = found.parent_id
    return line[::-1]


def _read(source: TenantSource, tenant_id: str) -> OutsideTenant | None:
    answer = source.tenant(tenant_id)
    if answer is None:
        return None
    try:
        found = msgspec.convert(msgspec.to_builtins(answer), OutsideTenant)
    except (msgspec.ValidationError, TypeError) as error:
        raise _Refused(f"The source's answer about {tenant_id!r} is no tenant: {error}") from error
    if found.id != tenant_id:
        raise _Refused(f"Asked about {tenant_id!r}, the source answered about {found.id!r}.")
    return found


def _place(ctx: ModuleContext, line: Sequence[OutsideTenant]) -> None:
    """Give those of the line that have no place theirs. Tenants' locks first, then the tree's, as calls take them."""
    options: Options = ctx.options
    above = options.root_tenant_id
    for each in line:
        with ctx.sql.transaction():
            node = tree.find(ctx, each.id)
            if node is None:
                ctx.tenants.admit(above, kind="mutation", also_while=frozenset({"suspended"}))
                grants.begin(ctx)
                tree.ensure_root(ctx)
                node = tree.find(ctx, each.id) or _made(ctx, each, above)
            if node.parent_id != above or node.kind != each.kind:
                raise ComputeError(
                    ErrorCode.INVALID_STATE,
                    f"The tenant {each.id!r} is a {node.kind} below {node.parent_id!r} here, and a {each.kind} below"
                    f" {above!r} outside; a tenant never changes its place.",
                    mend="Delete it and make another one under another id.",
                )
            if each.name and node.name != each.name:
                ctx.sql.query("UPDATE compute_iam_tenants SET name = %s WHERE id = %s", [each.name, each.id])
        above = each.id


def _made(ctx: ModuleContext, wanted: OutsideTenant, above: str) -> tree.Node:
    node = tree.create(
        ctx,
        id=wanted.id,
        parent=tree.require(ctx, above),
        kind=TenantKind(wanted.kind),
        name=wanted.name or wanted.id,
        ceiling=None,
    )
    ctx.events.publish(
        type="iam.tenant-created",
        # As tenantTree.create tells it: in the tenant above.
        tenant_id=above,
        subject=f"tenant/{node.id}",
        data={"parent": above, "kind": node.kind, "owner": None},
    )
    return node


def _converge(ctx: ModuleContext, wanted: OutsideTenant) -> None:
    with ctx.sql.transaction():
        noted = _noted(ctx, wanted.id)
        here = ctx.tenants.state(wanted.id)
        if wanted.state == "deleted":
            ctx.tenants.delete(wanted.id, reason="It was deleted where it is kept.")
        elif here in ("deleting", "torn_down"):
            raise ComputeError(
                ErrorCode.INVALID_STATE,
                f"The tenant {wanted.id!r} is {wanted.state} outside and {here} here, which it never leaves.",
                mend="Delete it outside too, or make another one under another id.",
            )
        elif wanted.state != "active":
            ctx.tenants.suspend(wanted.id, reason=f"It is {wanted.state} where it is kept.")
        elif noted is not None and noted["state"] in ("suspended", "pending"):
            ctx.tenants.resume(wanted.id, reason="It is active again where it is kept.")
        _note(ctx, wanted.id, wanted.state, "")


def _noted(ctx: ModuleContext, tenant_id: str) -> dict[str, Any] | None:
    rows = ctx.sql.query("SELECT state, problem FROM compute_iam_outside WHERE tenant_id = %s", [tenant_id]).rows
    return rows[0] if rows else None


def _note(ctx: ModuleContext, tenant_id: str, state: State | Literal[""], problem: str) -> None:
    text = problem[:1_000].replace("\x00", "\N{REPLACEMENT CHARACTER}").encode("utf-8", "replace").decode()
    with ctx.sql.transaction():
        ctx.sql.query(_NOTE, [tenant_id, state, text, text])


# One statement for a page: what is here, beside what the source says, and what is followed here and not on the page.
_DIFFERING: Final = """
WITH outside AS (
  SELECT * FROM unnest(%(ids)s::text[], %(states)s::text[], %(names)s::text[]) AS each (id, state, name)
)
SELECT outside.id
FROM outside
LEFT JOIN compute_iam_outside AS noted ON noted.tenant_id = outside.id
LEFT JOIN compute_iam_tenants AS place ON place.id = outside.id
LEFT JOIN compute_tenant_states AS here ON here.tenant_id = outside.id
WHERE noted.state IS DISTINCT FROM outside.state OR noted.problem <> ''
   OR CASE outside.state
        WHEN 'deleted' THEN coalesce(here.state, 'active') NOT IN ('deleting', 'torn_down')
        ELSE place.id IS NULL OR outside.name NOT IN ('', place.name)
             -- One that is active outside may have been suspended here, by somebody here.
             OR coalesce(here.state, 'active') NOT IN ('suspended', replace(outside.state, 'pending', 'suspended'))
      END
UNION
SELECT noted.tenant_id FROM compute_iam_outside AS noted
WHERE noted.tenant_id > %(after)s AND (%(last)s::text IS NULL OR noted.tenant_id <= %(last)s)
  AND noted.state <> 'deleted' AND noted.tenant_id <> ALL (%(ids)s::text[])
ORDER BY 1
"""


def differing(ctx: ModuleContext, page: Sequence[OutsideTenant], after: str, last: str | None) -> list[str]:
    """Ids on the page that are otherwise here, and followed ones between ``after`` and ``last`` that are not on it."""
    return [
        row["id"]
        for row in ctx.sql.query(
            _DIFFERING,
            {
                "ids": [each.id for each in page],
                "states": [each.state for each in page],
                "names": [each.name for each in page],
                "after": after,
                "last": last,
            },
        ).rows
    ]
