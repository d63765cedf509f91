"""The role that serves: checked before a run, given what it needs after it."""

from __future__ import annotations

from django.db.backends.base.base import BaseDatabaseWrapper

from better_compute import conf
from better_compute.ledger.errors import MigrationFailed, Refused
from better_compute.store import grants


def problem(connection: BaseDatabaseWrapper, role: str) -> str | None:
    """Say why ``role`` cannot be COMPUTE["APP_ROLE"], or return None."""
    found = grants.app_role(connection, role)
    setting = f"COMPUTE['APP_ROLE'] is {role!r}"
    if found is None:
        return f'{setting}, but there is no such role. Create it: CREATE ROLE "{role}" LOGIN.'
    if found.superuser:
        return f"{setting}, which is a superuser, so nothing protects the append-only tables. Use an ordinary role."
    if found.is_owner:
        return f"{setting}, which is the role that migrates. Serve as another role than the owner of the tables."
    if found.may_become_owner:
        return f"{setting}, which is a member of the role that migrates. Revoke that membership."
    if found.owned_tables:
        return f"{setting}, which owns {', '.join(found.owned_tables)}. Give these to the role that migrates."
    return None


def refuse(connection: BaseDatabaseWrapper) -> None:
    """Raise Refused when COMPUTE["APP_ROLE"] is set to a role that cannot serve."""
    role = conf.current().app_role
    found = problem(connection, role) if role else None
    if found:
        raise Refused(found)


def grant(connection: BaseDatabaseWrapper) -> list[str]:
    """Give COMPUTE["APP_ROLE"] what it needs and take what it must not have; returns the statements that ran.

    Raises
    ------
    MigrationFailed
        When the role keeps a privilege that it must not have.
    """
    role = conf.current().app_role
    if not role:
        return []
    ran, left = grants.bring_up_to_date(connection, role)
    if left:
        raise MigrationFailed(
            f"Role {role!r} has more than its own grants: {'; '.join(left)} changed nothing.",
            mend="Revoke what PUBLIC, or a role that it is a member of, holds on these.",
        )
    return ran
