from django.db import migrations, models

from better_compute.contract.migrations import ComputeMigration, RunSqlFile


class Migration(ComputeMigration):
    """The read models (state only: their tables are made by 0001 to 0004) and the indexes their pages use."""

    dependencies = [("compute", "0005_access")]

    operations = [
        RunSqlFile("better_compute.store.schema", "0006_pages.sql", "0006_pages_down.sql"),
        migrations.CreateModel(
            name="AuditEvent",
            fields=[
                ("id", models.UUIDField(primary_key=True, serialize=False)),
                ("xid", models.TextField()),
                ("at", models.DateTimeField()),
                ("tenant_id", models.TextField()),
                ("principal", models.TextField()),
                ("method", models.TextField()),
                ("action", models.TextField()),
                ("resource_type", models.TextField()),
                ("resource_id", models.TextField()),
                (
                    "outcome",
                    models.TextField(choices=[("allowed", "allowed"), ("denied", "denied"), ("failed", "failed")]),
                ),
                ("code", models.TextField(null=True)),
                ("request_id", models.TextField()),
                ("canonical", models.BinaryField()),
                ("salt", models.BinaryField()),
                ("leaf_hash", models.BinaryField()),
            ],
            options={
                "verbose_name": "audit event",
                "verbose_name_plural": "audit",
                "db_table": "compute_audit_events",
                "managed": False,
                "default_permissions": ("view",),
            },
        ),
        migrations.CreateModel(
            name="Lease",
            fields=[
                ("name", models.TextField(primary_key=True, serialize=False)),
                ("holder", models.TextField(null=True)),
                ("epoch", models.BigIntegerField()),
                ("acquired_at", models.DateTimeField(null=True)),
            ],
            options={
                "db_table": "compute_leases",
                "managed": False,
                "default_permissions": ("view",),
            },
        ),
        migrations.CreateModel(
            name="MigrationRecord",
            fields=[
                ("seq", models.BigIntegerField(primary_key=True, serialize=False)),
                ("owner", models.TextField()),
                ("name", models.TextField()),
                (
                    "action",
                    models.TextField(
                        choices=[
                            ("started", "started"),
                            ("applied", "applied"),
                            ("faked", "faked"),
                            ("adopted", "adopted"),
                            ("reverted", "reverted"),
                            ("removed", "removed"),
                            ("rehashed", "rehashed"),
                        ]
                    ),
                ),
                ("checksum", models.TextField()),
                ("reason", models.TextField(null=True)),
                ("applied_at", models.DateTimeField()),
                ("applied_by", models.TextField()),
                ("version", models.TextField()),
                ("duration_ms", models.IntegerField()),
            ],
            options={
                "verbose_name": "ledger record",
                "verbose_name_plural": "migration ledger",
                "db_table": "compute_migrations",
                "managed": False,
                "default_permissions": ("view",),
            },
        ),
        migrations.CreateModel(
            name="OutboxEvent",
            fields=[
                ("id", models.BigIntegerField(primary_key=True, serialize=False)),
                ("xid", models.TextField()),
                ("created_at", models.DateTimeField()),
                ("type", models.TextField()),
                ("tenant_id", models.TextField()),
                ("subject", models.TextField()),
                ("data", models.JSONField()),
                ("trace_context", models.TextField(null=True)),
            ],
            options={
                "verbose_name": "outbox event",
                "verbose_name_plural": "outbox",
                "db_table": "compute_outbox",
                "managed": False,
                "default_permissions": ("view",),
            },
        ),
        migrations.CreateModel(
            name="Process",
            fields=[
                ("id", models.UUIDField(primary_key=True, serialize=False)),
                ("role", models.TextField()),
                ("host", models.TextField()),
                ("pid", models.IntegerField()),
                ("fingerprint", models.TextField()),
                ("modules", models.JSONField()),
                ("connections", models.IntegerField()),
                ("started_at", models.DateTimeField()),
                ("seen_at", models.DateTimeField()),
            ],
            options={
                "verbose_name_plural": "processes",
                "db_table": "compute_processes",
                "managed": False,
                "default_permissions": ("view",),
            },
        ),
        migrations.CreateModel(
            name="Worker",
            fields=[
                ("id", models.TextField(primary_key=True, serialize=False)),
                ("role", models.TextField(choices=[("controllers", "controllers"), ("scheduler", "scheduler")])),
                ("host", models.TextField()),
                ("pid", models.IntegerField()),
                ("backend_pid", models.IntegerField(null=True)),
                ("started_at", models.DateTimeField()),
                ("expires_at", models.DateTimeField()),
                ("draining", models.BooleanField()),
                ("connections", models.IntegerField()),
                ("inflight", models.JSONField()),
            ],
            options={
                "db_table": "compute_workers",
                "managed": False,
                "default_permissions": ("view",),
            },
        ),
        migrations.CreateModel(
            name="WorkItem",
            fields=[
                ("id", models.BigIntegerField(primary_key=True, serialize=False)),
                ("kind", models.TextField()),
                ("key", models.TextField()),
                ("shard", models.SmallIntegerField()),
                ("generation", models.BigIntegerField()),
                ("not_before", models.DateTimeField()),
                ("retry_floor", models.DateTimeField(null=True)),
                ("attempts", models.IntegerField()),
                ("every_ms", models.BigIntegerField(null=True)),
                ("enqueued_at", models.DateTimeField()),
                ("last_error", models.TextField(null=True)),
                ("last_error_at", models.DateTimeField(null=True)),
            ],
            options={
                "verbose_name": "work item",
                "db_table": "compute_work",
                "managed": False,
                "default_permissions": ("view",),
            },
        ),
    ]
