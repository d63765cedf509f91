"""The module's one table, ``compute_tenant_states``."""

from __future__ import annotations

from django.db import models

from better_compute import ComputeNow

from .states import State


class TenantState(models.Model):
    """What was last said of a tenant. A tenant without a row is active."""

    tenant_id = models.CharField(primary_key=True, max_length=128, db_collation="C")
    state = models.CharField(max_length=16, choices=[(state.value, state.value) for state in State])
    reason = models.TextField(blank=True, default="")
    changed_at = models.DateTimeField(db_default=ComputeNow())
    teardown_done_at = models.DateTimeField(null=True, blank=True)
    #: What the last pass of the teardown met, by module; see ``blockers.Blocker``.
    blockers = models.JSONField(default=list, blank=True)
    passes = models.IntegerField(default=0)
    last_pass_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        db_table = "compute_tenant_states"
        ordering = ("tenant_id",)
        default_permissions = ("view",)
        constraints = (
            models.CheckConstraint(
                name="compute_tenant_states_state", condition=models.Q(state__in=[state.value for state in State])
            ),
            models.CheckConstraint(
                name="compute_tenant_states_done",
                condition=models.Q(state="torn_down", teardown_done_at__isnull=False)
                | (~models.Q(state="torn_down") & models.Q(teardown_done_at__isnull=True)),
            ),
        )
        indexes = (
            models.Index(
                name="compute_tenant_states_dying", fields=("tenant_id",), condition=models.Q(state="deleting")
            ),
        )

    def __str__(self) -> str:
        return f"{self.tenant_id} {self.state}"
