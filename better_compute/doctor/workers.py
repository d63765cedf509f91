"""Leases that no live worker holds: nothing behind them runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import get_args

from better_compute import registry
from better_compute.contract.findings import Finding
from better_compute.contract.reconcilers import Reconciler, Role
from better_compute.engine.shards import SHARDS
from better_compute.store import health, leases

#: Most leases that a finding names.
_NAMED = 5


def unheld(using: str) -> Iterator[Finding]:
    """Shards and singletons of each role without a live holder."""
    reconcilers = registry.current().reconcilers
    live = health.live_roles(using)
    for role in get_args(Role):
        wanted = _wanted(role, reconcilers)
        missing = health.unheld(wanted, using) if wanted else []
        if not missing:
            continue
        more = f" and {len(missing) - _NAMED} more" if len(missing) > _NAMED else ""
        named = f"{', '.join(missing[:_NAMED])}{more}"
        why = "no holder" if role in live else "no holder, and no live worker has the role"
        yield Finding(
            check="leases.unheld",
            severity="warning",
            message=f"{role}: {len(missing)} of {len(wanted)} leases have {why}: {named}.",
            fix=f"Start a worker with the role {role}; a new one takes free leases within seconds.",
            count=len(missing),
        )


def _wanted(role: Role, reconcilers: Mapping[str, Reconciler]) -> list[str]:
    mine = [each for each in reconcilers.values() if each.role == role]
    singletons = [leases.singleton_lease(each.name) for each in mine if each.shard_by == "none"]
    sharded = any(each.shard_by != "none" for each in mine)
    return singletons + ([leases.shard_lease(role, shard) for shard in range(SHARDS)] if sharded else [])
