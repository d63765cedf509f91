"""``manage.py compute_token``: make, list and revoke bearer tokens."""

from __future__ import annotations

import uuid
from argparse import ArgumentParser
from datetime import datetime, timedelta
from typing import Any

import msgspec
from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from better_compute import conf
from better_compute.access import Token
from better_compute.contract.durations import milliseconds
from better_compute.contract.errors import ComputeError
from better_compute.envelope import tokens
from better_compute.management.refusals import told
from better_compute.store import clock

_COLUMNS = ("id", "hint", "state", "user", "tenant", "label")


class Command(BaseCommand):
    """Create, list or revoke bearer tokens."""

    help = "Make, list and revoke bearer tokens. A new token's secret is printed once, on standard output."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        """One sub-command each for create, list and revoke."""
        verbs = parser.add_subparsers(dest="verb", required=True)
        create = verbs.add_parser("create", help="Make a token and print its secret.")
        create.add_argument("--user", required=True, help="Username of the user whose permissions it carries.")
        where = create.add_mutually_exclusive_group(required=True)
        where.add_argument("--tenant", help="The tenant it acts in.")
        where.add_argument(
            "--installation", action="store_true", help="It acts on the installation, and where its user may."
        )
        create.add_argument("--label", required=True, help="What it is for.")
        create.add_argument("--expires", help="When it ends: a time such as 2027-01-31T12:00:00Z, or 90d from now.")
        listing = verbs.add_parser("list", help="List tokens, without their secrets.")
        listing.add_argument("--user", help="Only this user's.")
        listing.add_argument("--tenant", help="Only this tenant's.")
        listing.add_argument("--format", choices=("table", "json"), default="table")
        revoke = verbs.add_parser("revoke", help="Revoke a token; the next call with it is refused.")
        revoke.add_argument("id", type=uuid.UUID, help="The token's id, from the list.")

    @told()
    def handle(self, *args: Any, **options: Any) -> None:
        """Do what the verb says."""
        try:
            getattr(self, f"_{options['verb']}")(options)
        except ComputeError as error:
            raise CommandError(f"{error.message} {error.mend}", returncode=1) from None

    def _create(self, options: dict[str, Any]) -> None:
        secret, token = tokens.create(
            user=_user(options["user"]),
            label=options["label"],
            tenant_id=options["tenant"],
            expires_at=_end(options["expires"]),
        )
        self.stderr.write(f"Token {token.id} for {_place(token)}. The secret is shown this once:")
        self.stdout.write(secret)

    def _list(self, options: dict[str, Any]) -> None:
        rows = Token.objects.using(conf.current().database).select_related("user")
        if options["user"]:
            rows = rows.filter(user=_user(options["user"]))
        if options["tenant"]:
            rows = rows.filter(tenant_id=options["tenant"])
        if options["format"] == "json":
            self.stdout.write(msgspec.json.encode([_described(token) for token in rows]).decode())
            return
        for token in rows:
            facts = _described(token)
            self.stdout.write("  ".join(str(facts[column]) for column in _COLUMNS))

    def _revoke(self, options: dict[str, Any]) -> None:
        token = tokens.revoke(options["id"])
        self.stdout.write(f"Token {token.id} ({token.label}) is revoked.")


def _user(name: str) -> Any:
    model = get_user_model()
    user = model._default_manager.using(conf.current().database).filter(**{model.USERNAME_FIELD: name}).first()
    if user is None:
        raise CommandError(f"There is no user {name!r}. `manage.py createsuperuser` makes one.", returncode=1)
    return user


def _end(text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        return clock.now() + timedelta(milliseconds=milliseconds(text))
    except ValueError:
        pass
    try:
        end = parse_datetime(text)
    except ValueError:
        end = None
    if end is None:
        raise CommandError(f"{text!r} is no time. Write 2027-01-31T12:00:00Z, or 90d.", returncode=1)
    return end if timezone.is_aware(end) else timezone.make_aware(end)


def _place(token: Token) -> str:
    return f"tenant {token.tenant_id}" if token.tenant_id is not None else "the installation"


def _described(token: Token) -> dict[str, Any]:
    ended = token.expires_at is not None and token.expires_at <= clock.now()
    state = "revoked" if token.revoked_at is not None else "expired" if ended else "live"
    return {
        "id": str(token.id),
        "hint": token.hint,
        "state": state,
        "user": token.user.get_username(),
        "tenant": token.tenant_id,
        "label": token.label,
        "createdAt": token.created_at,
        "expiresAt": token.expires_at,
        "lastUsedAt": token.last_used_at,
    }
