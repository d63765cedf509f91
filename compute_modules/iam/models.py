"""The module's tables. Rows are never deleted: what ends is marked, so that every process can follow (schema/)."""

from __future__ import annotations

import uuid

from django.db import models
from django.db.models import Func, Q, TextField, Value
from django.db.models.functions import Cast, Collate

from better_compute import ComputeNow

#: A tenant's path as text: without its closing bracket it begins those of the tenants below it, and so sorts right
#: before them.
PATH_TEXT = Collate(Func(Cast("path", TextField()), Value(-1), function="LEFT", output_field=TextField()), "C")

#: Deepest that a tenant may stand; the root's depth is 1.
MAX_DEPTH = 8


class TenantKind(models.TextChoices):
    """What may stand below what: the root over organisations, those over each other and over projects."""

    ROOT = "root"
    ORGANISATION = "organisation"
    PROJECT = "project"


class TenantNode(models.Model):
    """A tenant's place in the tree, which never changes."""

    id = models.CharField(primary_key=True, max_length=128, db_collation="C")
    parent = models.ForeignKey("self", null=True, on_delete=models.PROTECT, related_name="children")
    kind = models.CharField(max_length=16, choices=TenantKind.choices)
    name = models.CharField(max_length=128)
    #: The root first, itself last; kept by a trigger.
    path = models.JSONField(editable=False, default=list)
    depth = models.SmallIntegerField(editable=False, default=1)
    #: Patterns of actions that may be done in it and below; null sets no bound.
    ceiling = models.JSONField(null=True, blank=True)
    created_at = models.DateTimeField(db_default=ComputeNow())
    version = models.BigIntegerField(db_default=0, editable=False)

    class Meta:
        db_table = "compute_iam_tenants"
        verbose_name = "tenant"
        default_permissions = ("view",)
        constraints = (
            models.UniqueConstraint(fields=("kind",), condition=Q(kind="root"), name="compute_iam_tenants_one_root"),
            models.CheckConstraint(
                condition=Q(kind="root", parent__isnull=True) | (~Q(kind="root") & Q(parent__isnull=False)),
                name="compute_iam_tenants_parent",
            ),
            models.CheckConstraint(condition=Q(depth__lte=MAX_DEPTH), name="compute_iam_tenants_depth"),
        )
        indexes = (
            models.Index(fields=("version",), name="compute_iam_tenants_version"),
            models.Index(PATH_TEXT, name="compute_iam_tenants_place"),
        )

    def __str__(self) -> str:
        return self.id


class PrincipalRow(models.Model):
    """Somebody or something that rights are granted to: ``user/<pk>``, ``service/<name>`` or ``external/<...>``."""

    id = models.CharField(primary_key=True, max_length=255, db_collation="C")
    kind = models.CharField(max_length=16, choices=[(kind, kind) for kind in ("user", "service", "external")])
    #: Where a service account belongs; null for people.
    tenant_id = models.CharField(max_length=128, null=True, blank=True, db_index=True)  # noqa: DJ001
    name = models.CharField(max_length=128, blank=True)
    disabled_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(db_default=ComputeNow())
    created_by = models.CharField(max_length=255)
    version = models.BigIntegerField(db_default=0, editable=False)

    class Meta:
        db_table = "compute_iam_principals"
        verbose_name = "principal"
        default_permissions = ("view",)
        indexes = (models.Index(fields=("version",), name="compute_iam_principals_version"),)

    def __str__(self) -> str:
        return self.id


class RoleRow(models.Model):
    """A role that a tenant made; the built-in ones have no row."""

    #: ``<tenant>/<name>``.
    id = models.CharField(primary_key=True, max_length=255, db_collation="C")
    tenant_id = models.CharField(max_length=128, db_index=True)
    name = models.CharField(max_length=64)
    permits = models.JSONField()
    but_not = models.JSONField(default=list)
    created_at = models.DateTimeField(db_default=ComputeNow())
    deleted_at = models.DateTimeField(null=True, blank=True)
    version = models.BigIntegerField(db_default=0, editable=False)

    class Meta:
        db_table = "compute_iam_roles"
        verbose_name = "role"
        default_permissions = ("view",)
        indexes = (models.Index(fields=("version",), name="compute_iam_roles_version"),)

    def __str__(self) -> str:
        return self.id


class GrantRow(models.Model):
    """A permit or a forbid for one principal at one tenant, or on one resource of it."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    principal_id = models.CharField(max_length=255)
    effect = models.CharField(max_length=8, choices=[("permit", "permit"), ("forbid", "forbid")])
    role = models.CharField(max_length=255, blank=True)
    patterns = models.JSONField(default=list)
    tenant_id = models.CharField(max_length=128)
    resource_type = models.CharField(max_length=64, blank=True)
    resource_id = models.TextField(blank=True)
    inherit = models.BooleanField(default=False)
    starts_at = models.DateTimeField(null=True, blank=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    reason = models.TextField(blank=True)
    break_glass = models.BooleanField(default=False)
    created_at = models.DateTimeField(db_default=ComputeNow())
    created_by = models.CharField(max_length=255)
    revoked_at = models.DateTimeField(null=True, blank=True)
    revoked_by = models.CharField(max_length=255, blank=True)
    version = models.BigIntegerField(db_default=0, editable=False)

    class Meta:
        db_table = "compute_iam_grants"
        verbose_name = "grant"
        default_permissions = ("view",)
        constraints = (
            models.CheckConstraint(
                condition=(~Q(role="") & Q(patterns=[])) | (Q(role="") & ~Q(patterns=[])),
                name="compute_iam_grants_role_or_patterns",
            ),
            models.CheckConstraint(
                condition=Q(resource_type="", resource_id="") | (~Q(resource_type="") & ~Q(resource_id="")),
                name="compute_iam_grants_resource",
            ),
            models.CheckConstraint(
                condition=Q(break_glass=False) | (Q(expires_at__isnull=False) & ~Q(reason="")),
                name="compute_iam_grants_break_glass",
            ),
        )
        indexes = (
            models.Index(fields=("version",), name="compute_iam_grants_version"),
            models.Index(fields=("tenant_id", "id"), name="compute_iam_grants_tenant"),
            models.Index(fields=("principal_id",), name="compute_iam_grants_principal"),
            # The log of broken glass: few rows among many.
            models.Index(fields=("version",), condition=Q(break_glass=True), name="compute_iam_grants_glass"),
        )

    def __str__(self) -> str:
        return f"{self.effect} {self.role or self.patterns} to {self.principal_id} at {self.tenant_id}"


class ScopedToken(models.Model):
    """A bearer token of a principal. The secret is shown once and never stored, only its SHA-256."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    digest = models.BinaryField(max_length=32, unique=True, editable=False)
    #: First characters of the secret, to recognise it by.
    hint = models.CharField(max_length=16)
    principal_id = models.CharField(max_length=255, db_index=True)
    #: The tenant whose managers see it.
    home_tenant_id = models.CharField(max_length=128)
    #: The tenant it acts in, with those below; null for every tenant of its principal.
    tenant_id = models.CharField(max_length=128, null=True, blank=True)  # noqa: DJ001
    #: Patterns it narrows its principal's rights to; null narrows nothing.
    actions = models.JSONField(null=True, blank=True)
    label = models.CharField(max_length=128)
    created_at = models.DateTimeField(db_default=ComputeNow())
    created_by = models.CharField(max_length=255)
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    #: Kept to the minute.
    last_used_at = models.DateTimeField(null=True, blank=True)
    #: The token that took its place.
    replaced_by = models.UUIDField(null=True, blank=True)
    #: Principals who made it for another one, and so have its secret: it is worth no more than each of them.
    makers = models.JSONField(default=list, db_default=Value([], output_field=models.JSONField()), blank=True)

    class Meta:
        db_table = "compute_iam_tokens"
        verbose_name = "scoped token"
        default_permissions = ("view",)
        indexes = (
            models.Index(fields=("home_tenant_id", "id"), name="compute_iam_tokens_tenant"),
            models.Index(fields=("created_at",), name="compute_iam_tokens_created"),
        )

    def __str__(self) -> str:
        return f"{self.label} ({self.hint}...)"


class InboxEvent(models.Model):
    """An event of where tenants are kept, by its id, so that each is taken once; ``problem`` for what was none."""

    id = models.CharField(primary_key=True, max_length=255, db_collation="C")
    type = models.CharField(max_length=128, blank=True)
    tenant_id = models.CharField(max_length=128, blank=True)
    problem = models.TextField(blank=True)
    received_at = models.DateTimeField(db_default=ComputeNow())

    class Meta:
        db_table = "compute_iam_inbox"
        verbose_name = "tenant event"
        default_permissions = ("view",)
        indexes = (
            models.Index(fields=("received_at",), name="compute_iam_inbox_received"),
            models.Index(fields=("received_at",), condition=~Q(problem=""), name="compute_iam_inbox_problems"),
        )

    def __str__(self) -> str:
        return self.id


class OutsideRow(models.Model):
    """What was last made so of a tenant that is kept elsewhere, and what stands in the way."""

    tenant_id = models.CharField(primary_key=True, max_length=128, db_collation="C")
    #: Its state outside, the last time it could be followed; empty before that.
    state = models.CharField(max_length=16, blank=True)
    problem = models.TextField(blank=True)
    problem_since = models.DateTimeField(null=True, blank=True)
    read_at = models.DateTimeField(db_default=ComputeNow())

    class Meta:
        db_table = "compute_iam_outside"
        verbose_name = "followed tenant"
        default_permissions = ("view",)
        indexes = (models.Index(fields=("tenant_id",), condition=~Q(problem=""), name="compute_iam_outside_problems"),)

    def __str__(self) -> str:
        return self.tenant_id


class Version(models.Model):
    """One row: raised by triggers on every change of the tables that decisions are made from."""

    id = models.SmallIntegerField(primary_key=True)
    version = models.BigIntegerField()
    generation = models.UUIDField()

    class Meta:
        db_table = "compute_iam_version"
        default_permissions = ()

    def __str__(self) -> str:
        return str(self.version)
