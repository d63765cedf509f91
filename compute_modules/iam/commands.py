"""What an operator does at the command line."""

from __future__ import annotations

import argparse

from django.contrib.auth import get_user_model

from better_compute import CliCommand, ComputeError, ErrorCode, ModuleContext

from . import owners, principals, tree
from .apps import Options
from .projection import projection
from .roles import OWNER


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--user", required=True, help="name of the user who shall own the root tenant")


def bootstrap(ctx: ModuleContext, options: argparse.Namespace) -> int:
    """Make a user the first owner of the root tenant; refused once it has one.

    Raises
    ------
    ComputeError
        NOT_FOUND for a user that is not there; IN_USE when there is an owner.
    """
    settings: Options = ctx.options
    root = settings.root_tenant_id
    user = get_user_model()._default_manager.filter(**{get_user_model().USERNAME_FIELD: options.user}).first()
    if user is None:
        raise ComputeError(
            ErrorCode.NOT_FOUND, f"There is no user {options.user!r}.", mend="`manage.py createsuperuser` makes one."
        )
    tree.ensure_root(ctx)
    with ctx.sql.transaction():
        ctx.sql.query("SELECT compute_iam_raise()")
        reading = projection.read(ctx)
        found = owners.of(reading.facts, root, reading.at)
        if found:
            raise ComputeError(
                ErrorCode.IN_USE,
                f"The root tenant {root!r} has an owner: {', '.join(sorted(found))}.",
                mend="Let them grant what is needed.",
            )
        principal = f"user/{user.pk}"
        principals.ensure(ctx, principal, by="iam:bootstrap")
        ctx.sql.query(
            "INSERT INTO compute_iam_grants (id, principal_id, effect, role, patterns, tenant_id, resource_type,"
            " resource_id, inherit, reason, break_glass, created_by, revoked_by)"
            " VALUES (gen_random_uuid(), %s, 'permit', %s, '[]', %s, '', '', true, 'bootstrap', false,"
            " 'iam:bootstrap', '')",
            [principal, OWNER, root],
        )
        ctx.events.publish(
            type="iam.bootstrapped", tenant_id=root, subject=f"tenant/{root}", data={"principal": principal}
        )
    print(f"{options.user} owns {root} and every tenant below it.")
    return 0


commands = [
    CliCommand(name="bootstrap", summary="Make a user the first owner.", run=bootstrap, arguments=_arguments),
]
