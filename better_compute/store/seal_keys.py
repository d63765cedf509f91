"""Which secrets have sealed values (schema/0008_seal_keys.sql), so that doctor misses one that was taken away."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from django.db import connections

from better_compute import conf

# Waits only for another first use of the same secret, and holds nothing that a call needs.
NOTE: Final = "INSERT INTO compute_seal_keys (id) VALUES (%s) ON CONFLICT (id) DO NOTHING"
READ: Final = "SELECT id, first_used_at FROM compute_seal_keys ORDER BY first_used_at, id"


def note(key_id: str) -> None:
    """Note that a value is sealed with this secret."""
    with connections[conf.current().database].cursor() as cursor:
        cursor.execute(NOTE, [key_id])


def used(using: str) -> list[tuple[str, datetime]]:
    """Ids of the secrets that ever sealed a value, and since when."""
    with connections[using].cursor() as cursor:
        cursor.execute(READ)
        return list(cursor.fetchall())
