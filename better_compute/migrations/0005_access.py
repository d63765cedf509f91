import uuid

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

from better_compute.contract.migrations import ComputeMigration
from better_compute.store.clock import ComputeNow


class Migration(ComputeMigration):
    dependencies = [("compute", "0004_audit"), migrations.swappable_dependency(settings.AUTH_USER_MODEL)]
    operations = [
        migrations.CreateModel(
            name="Action",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID"))
            ],
            options={
                "managed": False,
                "default_permissions": (),
                "permissions": (("any_tenant", "May act in every tenant"),),
            },
        ),
        migrations.CreateModel(
            name="Token",
            fields=[
                ("id", models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ("digest", models.BinaryField(max_length=32, unique=True)),
                ("hint", models.CharField(editable=False, max_length=16)),
                ("tenant_id", models.CharField(blank=True, db_index=True, max_length=128, null=True)),
                ("label", models.CharField(max_length=128)),
                ("created_at", models.DateTimeField(db_default=ComputeNow(), editable=False)),
                ("expires_at", models.DateTimeField(blank=True, null=True)),
                ("revoked_at", models.DateTimeField(blank=True, editable=False, null=True)),
                ("last_used_at", models.DateTimeField(blank=True, editable=False, null=True)),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="compute_tokens",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "db_table": "compute_tokens",
                "ordering": ("created_at", "id"),
                "default_permissions": ("add", "change", "view"),
            },
        ),
    ]
