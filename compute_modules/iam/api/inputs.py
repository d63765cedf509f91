"""Types and bounds that several groups share."""

from __future__ import annotations

from typing import Annotated, Any, Final

from better_compute import Input, Meta, PageKey, Resource, TenantId
from compute_modules.iam.principals import PRINCIPAL_ID_PATTERN

READ: Final = "compute:iam:read"
MANAGE: Final = "compute:iam:manage"

PrincipalId = Annotated[str, Meta(pattern=PRINCIPAL_ID_PATTERN)]
Pattern = Annotated[str, Meta(max_length=200)]
Action = Annotated[str, Meta(pattern=r"^compute:[a-z][a-z0-9-]{0,63}:[a-z][a-z0-9-]{0,63}$(?!\n)")]
Name = Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9-]{0,62}$(?!\n)")]
#: Blanks alone name nothing and are no reason.
Label = Annotated[str, Meta(min_length=1, max_length=128, pattern=r"\S")]
Reason = Annotated[str, Meta(min_length=1, max_length=500, pattern=r"\S")]
Uuid = Annotated[str, Meta(pattern=r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$(?!\n)")]
#: Every state stays open to what takes rights away.
TAKING_AWAY: Final = ("suspended", "deleting")


class ResourceRef(Input):
    """A single record of the tenant."""

    type: Annotated[str, Meta(pattern=r"^[a-z][a-z0-9-]{0,63}$(?!\n)")]
    id: Annotated[str, Meta(min_length=1, max_length=512)]


class TenantInput(Input):
    """A tenant."""

    tenant_id: TenantId


def behind(after: PageKey | None) -> str | None:
    """The id behind which a page begins, in a list that is sorted by ids; None for the first page."""
    return None if after is None else str(after[0])


def of_tenant(input: Any) -> Resource:
    """The tenant that the input names."""
    return Resource("tenant", input.tenant_id)
