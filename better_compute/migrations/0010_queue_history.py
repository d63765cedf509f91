from django.db import migrations, models

from better_compute.contract.migrations import ComputeMigration, RunSqlFile


class Migration(ComputeMigration):
    """The queue's history, and read models of tables that were made before (state only)."""

    dependencies = [("compute", "0009_event_requests")]

    operations = [
        RunSqlFile("better_compute.store.schema", "0010_queue_history.sql", "0010_queue_history_down.sql"),
        migrations.CreateModel(
            name="IdempotencyRecord",
            fields=[
                ("key", models.TextField(primary_key=True, serialize=False)),
                ("principal", models.TextField()),
                ("tenant_id", models.TextField()),
                ("method", models.TextField()),
                ("request_id", models.TextField()),
                ("created_at", models.DateTimeField()),
                ("expires_at", models.DateTimeField()),
            ],
            options={
                "verbose_name": "idempotency record",
                "db_table": "compute_idempotency",
                "managed": False,
                "default_permissions": ("view",),
            },
        ),
        migrations.CreateModel(
            name="Pause",
            fields=[
                ("scope", models.TextField(primary_key=True, serialize=False)),
                ("reason", models.TextField()),
                ("paused_by", models.TextField()),
                ("paused_at", models.DateTimeField()),
            ],
            options={
                "db_table": "compute_pauses",
                "managed": False,
                "default_permissions": ("view",),
            },
        ),
        migrations.CreateModel(
            name="RateLimit",
            fields=[
                ("bucket", models.TextField(primary_key=True, serialize=False)),
            ],
            options={
                "verbose_name": "rate limit",
                "managed": False,
                "default_permissions": ("view",),
            },
        ),
    ]
