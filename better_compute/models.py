"""The core's tables as Django models that only read: for the admin, for shells and for reports.

The tables are made by the SQL of ``store/schema`` and written by ``store``; a write through one of these
models would go round the lease, the fence or the append-only rule, so every write is refused.
"""

from __future__ import annotations

from typing import Any, NoReturn, TypeVar

from django.db import models

from better_compute import conf
from better_compute.access import Action as Action, Token as Token

_Row = TypeVar("_Row", bound=models.Model)


class ReadOnlyTableError(TypeError):
    """A write to a table that only the core itself writes."""

    def __init__(self, table: str) -> None:
        super().__init__(
            f"{table} is written by the core only, and its model only reads. "
            f"Call a method (compute.api) or a port (ctx.work, ctx.events) instead."
        )


class ReadOnlyQuerySet(models.QuerySet[_Row]):
    """Reads from the compute database; every write raises :class:`ReadOnlyTableError`."""

    def _refuse(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise ReadOnlyTableError(self.model._meta.db_table)

    create = get_or_create = update_or_create = bulk_create = bulk_update = _refuse
    update = delete = _raw_delete = _update = _insert = select_for_update = _refuse
    acreate = aget_or_create = aupdate_or_create = abulk_create = abulk_update = aupdate = adelete = _refuse


class ReadOnlyManager(models.Manager[_Row]):
    """Reads on the alias ``COMPUTE["DATABASE"]`` names, whatever the host's router says."""

    def get_queryset(self) -> ReadOnlyQuerySet[_Row]:
        """All rows of the compute database."""
        return ReadOnlyQuerySet(self.model, using=conf.current().database)


class ReadModel(models.Model):
    """Base of the read models: unmanaged, with only Django's ``view`` permission."""

    class Meta:
        abstract = True

    def save(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refuse."""
        raise ReadOnlyTableError(self._meta.db_table)

    async def asave(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refuse."""
        self.save()

    def delete(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refuse."""
        raise ReadOnlyTableError(self._meta.db_table)

    async def adelete(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refuse."""
        self.delete()


class MigrationRecord(ReadModel):
    """A line of the migration ledger: what was applied, faked, adopted, reverted or removed, and when."""

    seq = models.BigIntegerField(primary_key=True)
    owner = models.TextField()
    name = models.TextField()
    action = models.TextField(
        choices=[
            (action, action) for action in ("started", "applied", "faked", "adopted", "reverted", "removed", "rehashed")
        ]
    )
    checksum = models.TextField()
    reason = models.TextField(null=True)  # noqa: DJ001  (the column says NULL)
    applied_at = models.DateTimeField()
    applied_by = models.TextField()
    version = models.TextField()
    duration_ms = models.IntegerField()

    objects = ReadOnlyManager()

    class Meta:
        managed = False
        db_table = "compute_migrations"
        default_permissions = ("view",)
        verbose_name = "ledger record"
        verbose_name_plural = "migration ledger"

    def __str__(self) -> str:
        return f"{self.name} {self.action}"


class WorkItem(ReadModel):
    """A queued key of a reconciler. The table's key is (kind, key); ``id`` is the row's incarnation."""

    id = models.BigIntegerField(primary_key=True)
    kind = models.TextField()
    key = models.TextField()
    shard = models.SmallIntegerField()
    generation = models.BigIntegerField()
    not_before = models.DateTimeField()
    retry_floor = models.DateTimeField(null=True)
    attempts = models.IntegerField()
    every_ms = models.BigIntegerField(null=True)
    enqueued_at = models.DateTimeField()
    last_error = models.TextField(null=True)  # noqa: DJ001
    last_error_at = models.DateTimeField(null=True)

    objects = ReadOnlyManager()

    class Meta:
        managed = False
        db_table = "compute_work"
        default_permissions = ("view",)
        verbose_name = "work item"

    def __str__(self) -> str:
        return f"{self.kind}:{self.key}"


class Worker(ReadModel):
    """A member that holds leases, live until ``expires_at``."""

    id = models.TextField(primary_key=True)
    role = models.TextField(choices=[("controllers", "controllers"), ("scheduler", "scheduler")])
    host = models.TextField()
    pid = models.IntegerField()
    backend_pid = models.IntegerField(null=True)
    started_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    draining = models.BooleanField()
    connections = models.IntegerField()
    inflight = models.JSONField()

    objects = ReadOnlyManager()

    class Meta:
        managed = False
        db_table = "compute_workers"
        default_permissions = ("view",)

    def __str__(self) -> str:
        return self.id


class Lease(ReadModel):
    """Who may run a shard or a singleton, and at which epoch."""

    name = models.TextField(primary_key=True)
    holder = models.TextField(null=True)  # noqa: DJ001
    epoch = models.BigIntegerField()
    acquired_at = models.DateTimeField(null=True)

    objects = ReadOnlyManager()

    class Meta:
        managed = False
        db_table = "compute_leases"
        default_permissions = ("view",)

    def __str__(self) -> str:
        return self.name


class Process(ReadModel):
    """A process that hosts modules, and which set of them."""

    id = models.UUIDField(primary_key=True)
    role = models.TextField()
    host = models.TextField()
    pid = models.IntegerField()
    fingerprint = models.TextField()
    modules = models.JSONField()
    connections = models.IntegerField()
    started_at = models.DateTimeField()
    seen_at = models.DateTimeField()

    objects = ReadOnlyManager()

    class Meta:
        managed = False
        db_table = "compute_processes"
        default_permissions = ("view",)
        verbose_name_plural = "processes"

    def __str__(self) -> str:
        return f"{self.role} {self.host}:{self.pid}"


class OutboxEvent(ReadModel):
    """An event as it was committed. The table's key is (id, created_at); ids come from one sequence."""

    id = models.BigIntegerField(primary_key=True)
    xid = models.TextField()
    created_at = models.DateTimeField()
    type = models.TextField()
    tenant_id = models.TextField()
    subject = models.TextField()
    data = models.JSONField()
    trace_context = models.TextField(null=True)  # noqa: DJ001

    objects = ReadOnlyManager()

    class Meta:
        managed = False
        db_table = "compute_outbox"
        default_permissions = ("view",)
        verbose_name = "outbox event"
        verbose_name_plural = "outbox"

    def __str__(self) -> str:
        return f"{self.id} {self.type}"


class AuditEvent(ReadModel):
    """An act that was allowed, denied or failed, with the bytes that sealing hashes."""

    id = models.UUIDField(primary_key=True)
    xid = models.TextField()
    at = models.DateTimeField()
    tenant_id = models.TextField()
    principal = models.TextField()
    method = models.TextField()
    action = models.TextField()
    resource_type = models.TextField()
    resource_id = models.TextField()
    outcome = models.TextField(choices=[(outcome, outcome) for outcome in ("allowed", "denied", "failed")])
    code = models.TextField(null=True)  # noqa: DJ001
    request_id = models.TextField()
    canonical = models.BinaryField()
    salt = models.BinaryField()
    leaf_hash = models.BinaryField()

    objects = ReadOnlyManager()

    class Meta:
        managed = False
        db_table = "compute_audit_events"
        default_permissions = ("view",)
        verbose_name = "audit event"
        verbose_name_plural = "audit"

    def __str__(self) -> str:
        return f"{self.method} {self.outcome}"


class IdempotencyRecord(ReadModel):
    """An answer kept for an Idempotency-Key. The table's key is (principal, tenant, method, key)."""

    key = models.TextField(primary_key=True)
    principal = models.TextField()
    tenant_id = models.TextField()
    method = models.TextField()
    request_id = models.TextField()
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()

    objects = ReadOnlyManager()

    class Meta:
        managed = False
        db_table = "compute_idempotency"
        default_permissions = ("view",)
        verbose_name = "idempotency record"

    def __str__(self) -> str:
        return f"{self.method} {self.key}"


class Pause(ReadModel):
    """What an operator has paused: ``kind:<reconciler>`` or ``member:<id>``."""

    scope = models.TextField(primary_key=True)
    reason = models.TextField()
    paused_by = models.TextField()
    paused_at = models.DateTimeField()

    objects = ReadOnlyManager()

    class Meta:
        managed = False
        db_table = "compute_pauses"
        default_permissions = ("view",)

    def __str__(self) -> str:
        return self.scope


class RateLimit(models.Model):
    """Has no table: limits stand in the settings, levels in a store; this carries the permission of their page."""

    bucket = models.TextField(primary_key=True)

    class Meta:
        managed = False
        default_permissions = ("view",)
        verbose_name = "rate limit"

    def __str__(self) -> str:
        return self.bucket
