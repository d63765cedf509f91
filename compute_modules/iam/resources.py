"""The records of this module that methods act on, and the tenant that owns each."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from better_compute import ResourceType

_UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)


def _owned(statement: str, *, uuid: bool) -> ResourceType:
    """A type whose statement reads (id, tenant) of the ids it is given."""

    def resolve_many(sql: Any, ids: Sequence[str]) -> Mapping[str, str]:
        # An id of another shape would be an error of the database, and there is no such record anyway.
        known = [id for id in ids if "\x00" not in id and (not uuid or _UUID.fullmatch(id) is not None)]
        rows = sql.query(statement, [known]).rows if known else ()
        return {str(row["id"]): row["tenant_id"] for row in rows}

    return ResourceType(resolve=lambda sql, id: resolve_many(sql, [id]).get(id), resolve_many=resolve_many)


RESOURCE_TYPES: Final = {
    "iam-grant": _owned("SELECT id, tenant_id FROM compute_iam_grants WHERE id = ANY(%s::uuid[])", uuid=True),
    "iam-token": _owned(
        "SELECT id, home_tenant_id AS tenant_id FROM compute_iam_tokens WHERE id = ANY(%s::uuid[])", uuid=True
    ),
    "iam-role": _owned(
        "SELECT id, tenant_id FROM compute_iam_roles WHERE id = ANY(%s) AND deleted_at IS NULL", uuid=False
    ),
    "iam-service": _owned(
        "SELECT id, tenant_id FROM compute_iam_principals WHERE id = ANY(%s) AND kind = 'service'", uuid=False
    ),
}
