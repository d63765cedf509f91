"""The projection: :class:`Facts` that a process keeps, brought up to date by what changed since.

A reader asks for the tables' version in its own transaction and then for what changed, in one statement, so that
all of it is of one snapshot. Only what others have committed is kept for the next reader: a transaction that has
written itself gets facts of its own.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import msgspec

from better_compute import ModuleContext

from .facts import Changes, Facts, Grant, Tenant, Who
from .patterns import Patterns, Rights

#: The tables' version, the database's time, and whether this transaction has written nothing yet.
VERSION: Final = """
SELECT coalesce(v.version, 0) AS version, coalesce(v.generation::text, '') AS generation, compute_now() AS at,
       pg_current_xact_id_if_assigned() IS NULL AS untouched
FROM (VALUES (1)) AS one_row LEFT JOIN compute_iam_version AS v ON v.id = 1
"""

#: The first of these in the first statement of a call, whose time it knows already.
AHEAD: Final = """(
  SELECT coalesce(max(version), 0) || ' ' || coalesce(max(generation::text), '')
         || CASE WHEN pg_current_xact_id_if_assigned() IS NULL THEN ' untouched' ELSE '' END
  FROM compute_iam_version
)"""

# One statement, one snapshot. The first four read an index on version; a first load reads whole tables.
CHANGED: Final = """
SELECT
  (SELECT json_build_object('version', coalesce(max(version), 0), 'generation', coalesce(max(generation::text), ''))
   FROM compute_iam_version)::text AS head,
  (SELECT coalesce(json_agg(json_build_object('id', id, 'kind', kind, 'path', path, 'ceiling', ceiling)), '[]')
   FROM compute_iam_tenants WHERE version > %(after)s)::text AS tenants,
  (SELECT coalesce(json_agg(json_build_object('id', id, 'kind', kind, 'tenant', tenant_id,
                                              'disabled', disabled_at IS NOT NULL)), '[]')
   FROM compute_iam_principals WHERE version > %(after)s)::text AS principals,
  (SELECT coalesce(json_agg(json_build_object('id', id, 'permits', permits, 'butNot', but_not,
                                              'gone', deleted_at IS NOT NULL)), '[]')
   FROM compute_iam_roles WHERE version > %(after)s)::text AS roles,
  (SELECT coalesce(json_agg(json_build_object(
            'id', id, 'principal', principal_id, 'effect', effect, 'role', role, 'patterns', patterns,
            'tenant', tenant_id, 'resourceType', resource_type, 'resourceId', resource_id, 'inherit', inherit,
            'startsAt', starts_at, 'expiresAt', expires_at, 'breakGlass', break_glass,
            'gone', revoked_at IS NOT NULL)), '[]')
   FROM compute_iam_grants WHERE version > %(after)s AND (revoked_at IS NULL OR %(after)s > 0))::text AS grants
"""


class _Head(msgspec.Struct):
    version: int
    generation: str


class _TenantRow(msgspec.Struct):
    id: str
    kind: str
    path: tuple[str, ...]
    ceiling: tuple[str, ...] | None


class _PrincipalRow(msgspec.Struct):
    id: str
    kind: str
    tenant: str | None
    disabled: bool


class _RoleRow(msgspec.Struct, rename="camel"):
    id: str
    permits: tuple[str, ...]
    but_not: tuple[str, ...]
    gone: bool


class _GrantRow(msgspec.Struct, rename="camel"):
    id: str
    principal: str
    effect: Any
    role: str
    patterns: tuple[str, ...]
    tenant: str
    resource_type: str
    resource_id: str
    inherit: bool
    starts_at: datetime | None
    expires_at: datetime | None
    break_glass: bool
    gone: bool


@dataclass(frozen=True, slots=True)
class Reading:
    """Facts as of this transaction, and the database's time."""

    facts: Facts
    at: datetime


class Projection:
    """Shared by the threads of a process; each reading is immutable."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._facts = Facts()

    @property
    def known(self) -> Facts:
        """What was last kept, which may be old."""
        return self._facts

    def forget(self) -> None:
        """Start anew with the next reading."""
        with self._lock:
            self._facts = Facts()

    def read(self, ctx: ModuleContext) -> Reading:
        """The facts as the open transaction sees them; one statement while nothing changed, two otherwise."""
        return self._at(ctx, ctx.sql.query(VERSION).rows[0])

    def read_ahead(self, ctx: ModuleContext, read: str, at: datetime) -> Reading:
        """As :meth:`read`, by what :data:`AHEAD` came to in this transaction: no statement while nothing changed."""
        version, generation, *untouched = read.split(" ")
        row = {"version": int(version), "generation": generation, "untouched": bool(untouched), "at": at}
        return self._at(ctx, row)

    def _at(self, ctx: ModuleContext, row: Mapping[str, Any]) -> Reading:
        known = self._facts
        if _is_current(known, row):
            return Reading(known, row["at"])
        if not row["untouched"]:
            return Reading(_caught_up(ctx, known, row), row["at"])
        with self._lock:
            # Another thread may have caught up meanwhile, even further than this transaction sees.
            known = self._facts
            if not _is_current(known, row):
                caught_up = _caught_up(ctx, known, row)
                if caught_up.version >= known.version or caught_up.generation != known.generation:
                    self._facts = caught_up
                known = caught_up
        return Reading(known, row["at"])


def _is_current(known: Facts, row: Mapping[str, Any]) -> bool:
    return bool(known.version == row["version"] and known.generation == row["generation"])


def _caught_up(ctx: ModuleContext, known: Facts, row: Mapping[str, Any]) -> Facts:
    if known.generation != row["generation"] or known.version > row["version"]:
        # Other tables (restored, emptied) or a change that was rolled back: nothing known can be built upon.
        known = Facts()
    changed = ctx.sql.query(CHANGED, {"after": known.version}).rows[0]
    head = msgspec.json.decode(changed["head"], type=_Head)
    if head.generation != row["generation"] and known.version:
        return _caught_up(ctx, Facts(), {"version": head.version, "generation": head.generation})
    return known.changed(_changes(changed), head.version, head.generation)


def _changes(row: Mapping[str, Any]) -> Changes:
    grants = msgspec.json.decode(row["grants"], type=list[_GrantRow])
    share: dict[tuple[str, ...], Patterns] = {}

    def patterns(texts: tuple[str, ...]) -> Patterns:
        return share.setdefault(texts, Patterns(texts))

    return Changes(
        tenants=tuple(
            Tenant(each.id, each.kind, each.path, None if each.ceiling is None else patterns(each.ceiling))
            for each in msgspec.json.decode(row["tenants"], type=list[_TenantRow])
        ),
        principals=tuple(
            Who(each.id, each.kind, each.tenant, each.disabled)
            for each in msgspec.json.decode(row["principals"], type=list[_PrincipalRow])
        ),
        roles=tuple(
            (each.id, None if each.gone else Rights(patterns(each.permits), patterns(each.but_not)))
            for each in msgspec.json.decode(row["roles"], type=list[_RoleRow])
        ),
        grants=tuple(_grant(each, patterns(each.patterns)) for each in grants if not each.gone),
        gone=tuple((each.principal, each.id) for each in grants if each.gone),
    )


def _grant(row: _GrantRow, patterns: Patterns) -> Grant:
    return Grant(
        id=row.id,
        principal=row.principal,
        effect=row.effect,
        role=row.role,
        patterns=patterns,
        tenant=row.tenant,
        resource=(row.resource_type, row.resource_id) if row.resource_type else None,
        inherit=row.inherit,
        starts_at=row.starts_at,
        expires_at=row.expires_at,
        break_glass=row.break_glass,
    )


#: The projection of this process.
projection: Final = Projection()
