from django.db import migrations, models

from better_compute import ComputeMigration, ComputeNow


class Migration(ComputeMigration):
    dependencies = [("compute_iam", "0001_tables")]

    operations = [
        migrations.CreateModel(
            name="InboxEvent",
            fields=[
                ("id", models.CharField(db_collation="C", max_length=255, primary_key=True, serialize=False)),
                ("type", models.CharField(blank=True, max_length=128)),
                ("tenant_id", models.CharField(blank=True, max_length=128)),
                ("problem", models.TextField(blank=True)),
                ("received_at", models.DateTimeField(db_default=ComputeNow())),
            ],
            options={
                "verbose_name": "tenant event",
                "db_table": "compute_iam_inbox",
                "default_permissions": ("view",),
                "indexes": [
                    models.Index(fields=["received_at"], name="compute_iam_inbox_received"),
                    models.Index(
                        condition=models.Q(("problem", ""), _negated=True),
                        fields=["received_at"],
                        name="compute_iam_inbox_problems",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="OutsideRow",
            fields=[
                ("tenant_id", models.CharField(db_collation="C", max_length=128, primary_key=True, serialize=False)),
                ("state", models.CharField(blank=True, max_length=16)),
                ("problem", models.TextField(blank=True)),
                ("problem_since", models.DateTimeField(blank=True, null=True)),
                ("read_at", models.DateTimeField(db_default=ComputeNow())),
            ],
            options={
                "verbose_name": "followed tenant",
                "db_table": "compute_iam_outside",
                "default_permissions": ("view",),
                "indexes": [
                    models.Index(
                        condition=models.Q(("problem", ""), _negated=True),
                        fields=["tenant_id"],
                        name="compute_iam_outside_problems",
                    ),
                ],
            },
        ),
    ]
