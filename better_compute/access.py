"""Who may call: bearer tokens, and the model that the permissions of catalog actions hang on."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.db import models

from better_compute.store.clock import ComputeNow


class Token(models.Model):
    """A bearer token. The secret itself is shown once and never stored, only its SHA-256."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    digest = models.BinaryField(max_length=32, unique=True, editable=False)
    #: First characters of the secret, to recognise it by.
    hint = models.CharField(max_length=16, editable=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="compute_tokens")
    #: The tenant it acts in; None for a token of the installation itself.
    tenant_id = models.CharField(max_length=128, null=True, blank=True, db_index=True)  # noqa: DJ001
    label = models.CharField(max_length=128)
    created_at = models.DateTimeField(db_default=ComputeNow(), editable=False)
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True, editable=False)
    #: Kept to the minute.
    last_used_at = models.DateTimeField(null=True, blank=True, editable=False)

    class Meta:
        app_label = "compute"
        db_table = "compute_tokens"
        ordering = ("created_at", "id")
        default_permissions = ("add", "change", "view")

    def __str__(self) -> str:
        return f"{self.label} ({self.hint}...)"


class Action(models.Model):
    """Has no table: its content type carries one Django permission for every action of the catalog."""

    class Meta:
        app_label = "compute"
        managed = False
        default_permissions = ()
        permissions = (("any_tenant", "May act in every tenant"),)

    def __str__(self) -> str:
        return f"action {self.pk}"
