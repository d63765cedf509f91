"""Teardowns that take too long, with what blocks them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from better_compute import Finding, ModuleContext

from . import records
from .states import TEARDOWN_DEADLINE, State

#: Most teardowns that are named; the count says how many there are.
_NAMED: Final = 5


def self_check(ctx: ModuleContext) -> Iterator[Finding]:
    """Warn of teardowns older than an hour."""
    late = ctx.sql.query(
        """
        SELECT tenant_id, count(*) OVER () AS n FROM compute_tenant_states
        WHERE state = %s AND changed_at < compute_now() - %s::interval
        ORDER BY changed_at, tenant_id LIMIT %s
        """,
        [State.DELETING.value, f"{TEARDOWN_DEADLINE.total_seconds()} s", _NAMED],
    ).rows
    for row in late:
        record = records.read(ctx, row["tenant_id"])
        names = "; ".join(f"{each.message} {each.mend}" for each in record.blockers)
        yield Finding(
            check="tenancy.teardown-late",
            severity="warning",
            message=f"The teardown of tenant {record.tenant_id!r} began at {record.changed_at:%Y-%m-%dT%H:%M:%SZ} and "
            f"has not ended after {record.passes} pass{'' if record.passes == 1 else 'es'}.",
            fix=names or "See that a worker runs the reconciler `tenancy`: no pass has been made yet.",
            count=row["n"],
        )
