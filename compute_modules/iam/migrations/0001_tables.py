import uuid

import django.db.models.deletion
from django.db import migrations, models

from better_compute import ComputeMigration, ComputeNow, RunSqlFile


class Migration(ComputeMigration):
    initial = True

    dependencies = [("compute", "__first__")]

    operations = [
        migrations.CreateModel(
            name="Version",
            fields=[
                ("id", models.SmallIntegerField(primary_key=True, serialize=False)),
                ("version", models.BigIntegerField()),
                ("generation", models.UUIDField()),
            ],
            options={
                "db_table": "compute_iam_version",
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="GrantRow",
            fields=[
                ("id", models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ("principal_id", models.CharField(max_length=255)),
                ("effect", models.CharField(choices=[("permit", "permit"), ("forbid", "forbid")], max_length=8)),
                ("role", models.CharField(blank=True, max_length=255)),
                ("patterns", models.JSONField(default=list)),
                ("tenant_id", models.CharField(max_length=128)),
                ("resource_type", models.CharField(blank=True, max_length=64)),
                ("resource_id", models.TextField(blank=True)),
                ("inherit", models.BooleanField(default=False)),
                ("starts_at", models.DateTimeField(blank=True, null=True)),
                ("expires_at", models.DateTimeField(blank=True, null=True)),
                ("reason", models.TextField(blank=True)),
                ("break_glass", models.BooleanField(default=False)),
                ("created_at", models.DateTimeField(db_default=ComputeNow())),
                ("created_by", models.CharField(max_length=255)),
                ("revoked_at", models.DateTimeField(blank=True, null=True)),
                ("revoked_by", models.CharField(blank=True, max_length=255)),
                ("version", models.BigIntegerField(db_default=0, editable=False)),
            ],
            options={
                "verbose_name": "grant",
                "db_table": "compute_iam_grants",
                "default_permissions": ("view",),
                "indexes": [
                    models.Index(fields=["version"], name="compute_iam_grants_version"),
                    models.Index(fields=["tenant_id", "id"], name="compute_iam_grants_tenant"),
                    models.Index(fields=["principal_id"], name="compute_iam_grants_principal"),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(models.Q(("role", ""), _negated=True), ("patterns", [])),
                            models.Q(("role", ""), models.Q(("patterns", []), _negated=True)),
                            _connector="OR",
                        ),
                        name="compute_iam_grants_role_or_patterns",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("resource_id", ""), ("resource_type", "")),
                            models.Q(
                                models.Q(("resource_type", ""), _negated=True),
                                models.Q(("resource_id", ""), _negated=True),
                            ),
                            _connector="OR",
                        ),
                        name="compute_iam_grants_resource",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("break_glass", False),
                            models.Q(("expires_at__isnull", False), models.Q(("reason", ""), _negated=True)),
                            _connector="OR",
                        ),
                        name="compute_iam_grants_break_glass",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="PrincipalRow",
            fields=[
                ("id", models.CharField(db_collation="C", max_length=255, primary_key=True, serialize=False)),
                (
                    "kind",
                    models.CharField(
                        choices=[("user", "user"), ("service", "service"), ("external", "external")], max_length=16
                    ),
                ),
                ("tenant_id", models.CharField(blank=True, db_index=True, max_length=128, null=True)),
                ("name", models.CharField(blank=True, max_length=128)),
                ("disabled_at", models.DateTimeField(blank=True, null=True)),
                ("created_at", models.DateTimeField(db_default=ComputeNow())),
                ("created_by", models.CharField(max_length=255)),
                ("version", models.BigIntegerField(db_default=0, editable=False)),
            ],
            options={
                "verbose_name": "principal",
                "db_table": "compute_iam_principals",
                "default_permissions": ("view",),
                "indexes": [models.Index(fields=["version"], name="compute_iam_principals_version")],
            },
        ),
        migrations.CreateModel(
            name="RoleRow",
            fields=[
                ("id", models.CharField(db_collation="C", max_length=255, primary_key=True, serialize=False)),
                ("tenant_id", models.CharField(db_index=True, max_length=128)),
                ("name", models.CharField(max_length=64)),
                ("permits", models.JSONField()),
                ("but_not", models.JSONField(default=list)),
                ("created_at", models.DateTimeField(db_default=ComputeNow())),
                ("deleted_at", models.DateTimeField(blank=True, null=True)),
                ("version", models.BigIntegerField(db_default=0, editable=False)),
            ],
            options={
                "verbose_name": "role",
                "db_table": "compute_iam_roles",
                "default_permissions": ("view",),
                "indexes": [models.Index(fields=["version"], name="compute_iam_roles_version")],
            },
        ),
        migrations.CreateModel(
            name="ScopedToken",
            fields=[
                ("id", models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ("digest", models.BinaryField(max_length=32, unique=True)),
                ("hint", models.CharField(max_length=16)),
                ("principal_id", models.CharField(db_index=True, max_length=255)),
                ("home_tenant_id", models.CharField(max_length=128)),
                ("tenant_id", models.CharField(blank=True, max_length=128, null=True)),
                ("actions", models.JSONField(blank=True, null=True)),
                ("label", models.CharField(max_length=128)),
                ("created_at", models.DateTimeField(db_default=ComputeNow())),
                ("created_by", models.CharField(max_length=255)),
                ("expires_at", models.DateTimeField(blank=True, null=True)),
                ("revoked_at", models.DateTimeField(blank=True, null=True)),
                ("last_used_at", models.DateTimeField(blank=True, null=True)),
                ("replaced_by", models.UUIDField(blank=True, null=True)),
            ],
            options={
                "verbose_name": "scoped token",
                "db_table": "compute_iam_tokens",
                "default_permissions": ("view",),
                "indexes": [models.Index(fields=["home_tenant_id", "id"], name="compute_iam_tokens_tenant")],
            },
        ),
        migrations.CreateModel(
            name="TenantNode",
            fields=[
                ("id", models.CharField(db_collation="C", max_length=128, primary_key=True, serialize=False)),
                (
                    "kind",
                    models.CharField(
                        choices=[("root", "Root"), ("organisation", "Organisation"), ("project", "Project")],
                        max_length=16,
                    ),
                ),
                ("name", models.CharField(max_length=128)),
                ("path", models.JSONField(default=list, editable=False)),
                ("depth", models.SmallIntegerField(default=1, editable=False)),
                ("ceiling", models.JSONField(blank=True, null=True)),
                ("created_at", models.DateTimeField(db_default=ComputeNow())),
                ("version", models.BigIntegerField(db_default=0, editable=False)),
                (
                    "parent",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="children",
                        to="compute_iam.tenantnode",
                    ),
                ),
            ],
            options={
                "verbose_name": "tenant",
                "db_table": "compute_iam_tenants",
                "default_permissions": ("view",),
                "indexes": [models.Index(fields=["version"], name="compute_iam_tenants_version")],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("kind", "root")), fields=("kind",), name="compute_iam_tenants_one_root"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("kind", "root"), ("parent__isnull", True)),
                            models.Q(models.Q(("kind", "root"), _negated=True), ("parent__isnull", False)),
                            _connector="OR",
                        ),
                        name="compute_iam_tenants_parent",
                    ),
                    models.CheckConstraint(condition=models.Q(("depth__lte", 8)), name="compute_iam_tenants_depth"),
                ],
            },
        ),
        RunSqlFile("compute_modules.iam.schema", "0001_versions.sql", "0001_versions_down.sql"),
    ]
