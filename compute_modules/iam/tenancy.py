"""What happens to a tenant's people, grants and tokens, and to the tenants below it."""

from __future__ import annotations

from typing import Final

from better_compute import DONE, SYNC_AGAIN, ModuleContext, Outcome

from . import tree

#: Most rows of each kind that one call ends, and most tenants below that it begins to delete: each of those takes a
#: lock until the call's transaction ends, and the server has room for a few thousand only.
BATCH: Final = 100
#: Tenants below that one statement reads.
_PAGE: Final = 1_000

_ENDING: Final = {
    "grants": "UPDATE compute_iam_grants SET revoked_at = compute_now(), revoked_by = 'tenancy' WHERE id IN"
    " (SELECT id FROM compute_iam_grants WHERE tenant_id = %s AND revoked_at IS NULL LIMIT %s)",
    "tokens": "UPDATE compute_iam_tokens SET revoked_at = compute_now() WHERE id IN"
    " (SELECT id FROM compute_iam_tokens WHERE home_tenant_id = %s AND revoked_at IS NULL LIMIT %s)",
    "services": "UPDATE compute_iam_principals SET disabled_at = compute_now() WHERE id IN"
    " (SELECT id FROM compute_iam_principals WHERE tenant_id = %s AND disabled_at IS NULL LIMIT %s)",
    "roles": "UPDATE compute_iam_roles SET deleted_at = compute_now() WHERE id IN"
    " (SELECT id FROM compute_iam_roles WHERE tenant_id = %s AND deleted_at IS NULL LIMIT %s)",
}
_LEFT: Final = """
SELECT EXISTS (SELECT FROM compute_iam_grants WHERE tenant_id = %(tenant)s AND revoked_at IS NULL)
    OR EXISTS (SELECT FROM compute_iam_tokens WHERE home_tenant_id = %(tenant)s AND revoked_at IS NULL)
    OR EXISTS (SELECT FROM compute_iam_principals WHERE tenant_id = %(tenant)s AND disabled_at IS NULL)
    OR EXISTS (SELECT FROM compute_iam_roles WHERE tenant_id = %(tenant)s AND deleted_at IS NULL) AS left
"""


def tenant_deleted(ctx: ModuleContext, tenant_id: str) -> Outcome:
    """Delete the tenants below, wait for their end and for every other module, and then end what stands at this one.

    Its people keep their rights until nothing else blocks the end: they may have to mend what does.
    """
    if _delete_below(ctx, tenant_id):
        return SYNC_AGAIN
    if not ctx.sql.query(_LEFT, {"tenant": tenant_id}).rows[0]["left"]:
        return DONE
    if list(ctx.tenants.blocked_by(tenant_id)) != [ctx.module]:
        return SYNC_AGAIN
    full = [ctx.sql.query(statement, [tenant_id, BATCH]).row_count == BATCH for statement in _ENDING.values()]
    return SYNC_AGAIN if any(full) else DONE


def _delete_below(ctx: ModuleContext, tenant_id: str) -> bool:
    """Begin to delete up to a batch of the tenants below; whether any of them has not ended."""
    remaining, begun, after = False, 0, ""
    while page := tree.children(ctx, tenant_id, after=after, limit=_PAGE):
        standings = ctx.tenants.standings([child.id for child in page])
        for child in page:
            state = standings[child.id].state if child.id in standings else "active"
            remaining = remaining or state != "torn_down"
            if state in ("deleting", "torn_down"):
                continue
            if begun == BATCH:
                return True
            ctx.tenants.delete(child.id, reason=f"{tenant_id} is deleted")
            begun += 1
        after = page[-1].id
    return remaining
