"""What happens to a tenant's widgets when the tenant is deleted."""

from better_compute import DONE, SYNC_AGAIN, ModuleContext, Outcome

BATCH = 100


def tenant_deleted(ctx: ModuleContext, tenant_id: str) -> Outcome:
    """Delete a bounded number of the tenant's widgets; once none is left, a second call finds nothing."""
    deleted = ctx.sql.query(
        """DELETE FROM plg_acme_widget WHERE id IN (
             SELECT id FROM plg_acme_widget WHERE tenant_id = %s LIMIT %s)""",
        [tenant_id, BATCH],
    )
    return SYNC_AGAIN if deleted.row_count == BATCH else DONE
