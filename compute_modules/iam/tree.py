"""The tree of tenants: made from the root down, and never rearranged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from better_compute import ComputeError, ErrorCode, Expression, ModuleContext

from .apps import Options
from .jsonb import decoded, encoded
from .models import MAX_DEPTH, TenantKind
from .patterns import Patterns, covers

#: kind -> the kinds that may stand right above it.
ABOVE: Final = {
    TenantKind.ORGANISATION: (TenantKind.ROOT, TenantKind.ORGANISATION),
    TenantKind.PROJECT: (TenantKind.ORGANISATION,),
}


@dataclass(frozen=True, slots=True)
class Node:
    """A tenant's place."""

    id: str
    parent_id: str | None
    kind: str
    name: str
    path: tuple[str, ...]
    ceiling: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class TreePort:
    """Port ``tenant-tree``."""

    ctx: ModuleContext

    def root(self) -> str | None:
        """The root's id."""
        options: Options = self.ctx.options
        return options.root_tenant_id

    def lineage(self, tenant_id: str) -> Expression:
        """The tenant and those above it, by its row; the tenant alone when it has no place."""
        return Expression(
            "ARRAY(SELECT %s UNION SELECT jsonb_array_elements_text(path) FROM compute_iam_tenants WHERE id = %s)",
            [tenant_id, tenant_id],
        )


def ensure_root(ctx: ModuleContext) -> None:
    """Make the root tenant exist."""
    options: Options = ctx.options
    if find(ctx, options.root_tenant_id) is not None:
        return
    with ctx.sql.transaction():
        ctx.sql.query(
            "INSERT INTO compute_iam_tenants (id, kind, name, path, depth) VALUES (%s, 'root', %s, '[]', 1)"
            " ON CONFLICT DO NOTHING",
            [options.root_tenant_id, options.root_tenant_id],
        )
    found = find(ctx, options.root_tenant_id)
    if found is None or found.kind != TenantKind.ROOT:
        raise ComputeError(
            ErrorCode.INVALID_CONFIG,
            f"The root tenant is not {options.root_tenant_id!r}: another one was made before.",
            mend="Set COMPUTE['iam']['ROOT_TENANT_ID'] to the tenant whose kind is root in compute_iam_tenants.",
        )


def find(ctx: ModuleContext, tenant_id: str) -> Node | None:
    """The tenant's place, None when it has none."""
    rows = ctx.sql.query(
        "SELECT id, parent_id, kind, name, path, ceiling FROM compute_iam_tenants WHERE id = %s", [tenant_id]
    ).rows
    return _node(rows[0]) if rows else None


def require(ctx: ModuleContext, tenant_id: str) -> Node:
    """The tenant's place. Raises NOT_FOUND when it has none."""
    node = find(ctx, tenant_id)
    if node is None:
        raise ComputeError(
            ErrorCode.NOT_FOUND, f"There is no tenant {tenant_id!r}.", mend="tenantTree.create makes one."
        )
    return node


def children(ctx: ModuleContext, tenant_id: str, *, after: str = "", limit: int = 1_000) -> list[Node]:
    """Tenants right below, by id."""
    rows = ctx.sql.query(
        "SELECT id, parent_id, kind, name, path, ceiling FROM compute_iam_tenants"
        " WHERE parent_id = %s AND id > %s ORDER BY id LIMIT %s",
        [tenant_id, after, limit],
    ).rows
    return [_node(row) for row in rows]


def create(
    ctx: ModuleContext, *, id: str, parent: Node, kind: TenantKind, name: str, ceiling: Sequence[str] | None
) -> Node:
    """Give a tenant its place below ``parent``.

    Raises
    ------
    ComputeError
        INVALID_INPUT for a place it cannot stand at; CONFLICT when it has one; ACCESS_DENIED for a ceiling that is
        higher than its parent's.
    """
    if id == parent.id or id in parent.path:
        raise _misplaced(f"The tenant {id!r} cannot stand below itself.", "Name another parent.")
    if parent.kind not in ABOVE[kind]:
        allowed = " or ".join(ABOVE[kind])
        article = "An" if kind is TenantKind.ORGANISATION else "A"
        raise _misplaced(
            f"{article} {kind} cannot stand below the {parent.kind} {parent.id!r}.", f"Name {allowed} as parent."
        )
    if len(parent.path) >= MAX_DEPTH:
        raise _misplaced(
            f"The tenant {parent.id!r} stands at depth {len(parent.path)} of at most {MAX_DEPTH}.",
            "Name a parent further up.",
        )
    check_ceiling(ctx, parent, ceiling)
    made = ctx.sql.query(
        "INSERT INTO compute_iam_tenants (id, parent_id, kind, name, ceiling, path, depth)"
        " VALUES (%s, %s, %s, %s, %s::jsonb, '[]', 1) ON CONFLICT (id) DO NOTHING",
        [id, parent.id, kind.value, name, None if ceiling is None else encoded(ceiling)],
    )
    if made.row_count != 1 or ctx.tenants.state(id) != "active":
        raise ComputeError(
            ErrorCode.CONFLICT,
            f"The tenant id {id!r} is taken, or was once.",
            mend="Choose another id; a torn down tenant's is not used again.",
        )
    return require(ctx, id)


def set_ceiling(ctx: ModuleContext, node: Node, ceiling: Sequence[str] | None) -> Node:
    """Bound what may be done in a tenant and below. The caller must be allowed to in the tenant's parent."""
    parent = require(ctx, node.parent_id) if node.parent_id else node
    check_ceiling(ctx, parent, ceiling)
    ctx.sql.query(
        "UPDATE compute_iam_tenants SET ceiling = %s::jsonb WHERE id = %s",
        [None if ceiling is None else encoded(ceiling), node.id],
    )
    return require(ctx, node.id)


def released(ctx: ModuleContext, node: Node, ceiling: Sequence[str] | None) -> tuple[str, ...]:
    """What another ceiling would let through that the tenant's present one holds back, as patterns."""
    if node.ceiling is None:
        return ()
    present = node.ceiling
    above = (require(ctx, place).ceiling for place in reversed(node.path[:-1]))
    wanted = next((each for each in above if each is not None), ("*",)) if ceiling is None else ceiling
    return tuple(pattern for pattern in wanted if not any(covers(wide, pattern) for wide in present))


def check_ceiling(ctx: ModuleContext, parent: Node, ceiling: Sequence[str] | None) -> None:
    """Refuse a ceiling with a pattern that no ceiling of the tenants above covers."""
    if ceiling is None:
        return
    Patterns.of(ceiling)
    for place in parent.path:
        above = require(ctx, place).ceiling
        for pattern in ceiling:
            if above is not None and not any(covers(wide, pattern) for wide in above):
                raise ComputeError(
                    ErrorCode.ACCESS_DENIED,
                    f"{pattern!r} is above the ceiling of {place!r}: a tenant never has more than the ones above it.",
                    mend=f"Leave it out, or raise the ceiling of {place!r} first.",
                    reason="CEILING",
                )


def _misplaced(message: str, mend: str) -> ComputeError:
    return ComputeError(ErrorCode.INVALID_INPUT, message, mend=mend, reason="INVALID_HIERARCHY")


def _node(row: dict[str, Any]) -> Node:
    return Node(
        row["id"], row["parent_id"], row["kind"], row["name"], tuple(decoded(row["path"])), _patterns(row["ceiling"])
    )


def _patterns(value: Any) -> tuple[str, ...] | None:
    texts = decoded(value)
    return None if texts is None else tuple(texts)
