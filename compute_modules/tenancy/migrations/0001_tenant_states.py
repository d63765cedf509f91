from django.db import migrations, models

from better_compute import ComputeMigration, ComputeNow, RunSqlFile

STATES = ("active", "suspended", "deleting", "torn_down")


class Migration(ComputeMigration):
    initial = True
    dependencies = [("compute", "__first__")]
    operations = [
        migrations.CreateModel(
            name="TenantState",
            fields=[
                ("tenant_id", models.CharField(db_collation="C", max_length=128, primary_key=True, serialize=False)),
                ("state", models.CharField(choices=[(state, state) for state in STATES], max_length=16)),
                ("reason", models.TextField(blank=True, default="")),
                ("changed_at", models.DateTimeField(db_default=ComputeNow())),
                ("teardown_done_at", models.DateTimeField(blank=True, null=True)),
                ("blockers", models.JSONField(blank=True, default=list)),
                ("passes", models.IntegerField(default=0)),
                ("last_pass_at", models.DateTimeField(blank=True, null=True)),
            ],
            options={
                "db_table": "compute_tenant_states",
                "ordering": ("tenant_id",),
                "default_permissions": ("view",),
                "indexes": [
                    models.Index(
                        condition=models.Q(("state", "deleting")),
                        fields=["tenant_id"],
                        name="compute_tenant_states_dying",
                    )
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("state__in", list(STATES))), name="compute_tenant_states_state"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(state="torn_down", teardown_done_at__isnull=False)
                        | (~models.Q(state="torn_down") & models.Q(teardown_done_at__isnull=True)),
                        name="compute_tenant_states_done",
                    ),
                ],
            },
        ),
        RunSqlFile("compute_modules.tenancy.schema", "0001_gate.sql", "0001_gate_down.sql"),
    ]
