"""The plugin's one table, ``plg_acme_widget``."""

from django.db import models

from better_compute import ComputeNow


class Widget(models.Model):
    """A widget of a tenant."""

    id = models.CharField(primary_key=True, max_length=64)
    tenant_id = models.CharField(max_length=128, db_index=True)
    created_at = models.DateTimeField(db_default=ComputeNow())

    def __str__(self) -> str:
        return self.id
