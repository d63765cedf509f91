"""The records of this module that methods act on, and the tenant that owns each."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from better_compute import ResourceType

_UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)


def _owner(statement: str, *, uuid: bool) -> Callable[[Any, str], str | None]:
    def resolve(sql: Any, id: str) -> str | None:
        # An id of another shape would be an error of the database, and there is no such record anyway.
        if "\x00" in id or (uuid and _UUID.fullmatch(id) is None):
            return None
        rows = sql.query(statement, [id]).rows
        return rows[0]["tenant_id"] if rows else None

    return resolve


RESOURCE_TYPES: Final = {
    "iam-grant": ResourceType(
        resolve=_owner("SELECT tenant_id FROM compute_iam_grants WHERE id = %s", uuid=True),
    ),
    "iam-token": ResourceType(
        resolve=_owner("SELECT home_tenant_id AS tenant_id FROM compute_iam_tokens WHERE id = %s", uuid=True),
    ),
    "iam-role": ResourceType(
        resolve=_owner("SELECT tenant_id FROM compute_iam_roles WHERE id = %s AND deleted_at IS NULL", uuid=False),
    ),
    "iam-service": ResourceType(
        resolve=_owner("SELECT tenant_id FROM compute_iam_principals WHERE id = %s AND kind = 'service'", uuid=False),
    ),
}
