"""The outbox (schema/0003_outbox.sql): events that commit with the change they tell of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from django.db import connections

from better_compute.store import transaction

INSERT = """
INSERT INTO compute_outbox (type, tenant_id, subject, data, trace_context)
VALUES (%s, %s, %s, %s::jsonb, %s)
"""


def insert(
    *, type: str, tenant_id: str, subject: str, data: Mapping[str, Any], trace_context: str | None = None
) -> None:
    """Insert one event in the open transaction. Takes no lock that another writer waits for."""
    alias = transaction.require_open("ctx.events.publish")
    with connections[alias].cursor() as cursor:
        cursor.execute(INSERT, [type, tenant_id, subject, msgspec.json.encode(data).decode(), trace_context])
