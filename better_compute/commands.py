"""The core's commands for operators: ``manage.py compute api``, ``pause``, ``resume`` and ``paused``."""

from __future__ import annotations

import argparse
import getpass
import sys
from typing import Any

import msgspec
from django.db import DatabaseError

from better_compute import registry
from better_compute.client import calling, shell
from better_compute.client.errors import error_of
from better_compute.client.options import Options
from better_compute.contract.commands import CliCommand
from better_compute.contract.contexts import ModuleContext
from better_compute.contract.errors import ComputeError, ErrorCode
from better_compute.contract.principals import Principal
from better_compute.engine import pausing
from better_compute.envelope import act, call, openapi, problem
from better_compute.store.failures import NOT_MIGRATED


def _scope(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--kind", help="a reconciler, e.g. acme.widgets")
    parser.add_argument("--member", help="a live member's id")


def _scope_and_reason(parser: argparse.ArgumentParser) -> None:
    _scope(parser)
    parser.add_argument("--reason", default="paused at the shell", help="why, for whoever sees it")


def _at_the_shell() -> Principal:
    """Whoever is at the shell, who may do anything to the database anyway; the audit record says who it was."""
    return Principal(id=f"shell/{getpass.getuser()}", kind="internal")


def _work(method: str, **input: Any) -> None:
    # Read first, so that a database that is away or not migrated is told as that and not as a call that failed.
    pausing.paused()
    call.call(registry.current().methods[f"work/{method}"], _at_the_shell(), input)


def _pause(ctx: ModuleContext, options: argparse.Namespace) -> int:
    scope = pausing.scope_of(kind=options.kind, member=options.member)
    _work("pause", kind=options.kind, member=options.member, reason=options.reason)
    sys.stdout.write(f"{scope} is paused; keys wait in the queue until `compute resume`.\n")
    return 0


def _resume(ctx: ModuleContext, options: argparse.Namespace) -> int:
    # What is paused may be gone: a member that ended, a kind that is hosted no more.
    scope = pausing.scope_of(kind=options.kind, member=options.member)
    try:
        _work("resume", kind=options.kind, member=options.member)
    except ComputeError as error:
        if error.reason != "NOT_PAUSED":
            raise
        sys.stdout.write(f"{scope} was not paused.\n")
        return 1
    sys.stdout.write(f"{scope} goes on.\n")
    return 0


def _paused(ctx: ModuleContext, options: argparse.Namespace) -> int:
    for pause in pausing.paused():
        sys.stdout.write(f"{pause.scope}  since {pause.since.isoformat()} by {pause.by}  {pause.reason}\n")
    return 0


def _call_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = shell.EXIT_CODES
    calling.arguments(parser)


class _InProcess:
    """Makes calls in this process as whoever is at the shell."""

    def call(self, method: str, input: Any, answer: Any = Any, *, mutation: bool = True, options: Options) -> Any:
        """Call it, and return the answer as a client would read it; a refusal is what a client raises."""
        request_id = options.request_id or act.new_request_id()
        spec = registry.current().methods.get(method.replace(".", "/"))
        try:
            if spec is None:
                raise ComputeError(ErrorCode.NOT_FOUND, f"No hosted module offers the method {method!r}.")
            made = call.call(
                spec,
                _at_the_shell(),
                input,
                request_id=request_id,
                idempotency_key=options.idempotency_key,
                dry_run=options.dry_run,
            )
        except ComputeError as error:
            if isinstance(error.__cause__, DatabaseError) and problem.sql_state(error.__cause__) in NOT_MIGRATED:
                raise error.__cause__ from error.__cause__.__cause__
            raise error_of(error.status, problem.encode(error, request_id), error.retry_after) from error
        return msgspec.json.decode(msgspec.json.encode(made))

    def document(self) -> Any:
        """What the server would answer."""
        return msgspec.json.decode(openapi.encode())


def _call(ctx: ModuleContext, options: argparse.Namespace) -> int:
    if not options.list and options.method is not None:
        # Read first, as above.
        pausing.paused()
    return calling.run(_InProcess(), options, "manage.py compute api")


commands = (
    CliCommand(name="api", summary="Call a method: api work.list limit:=5", run=_call, arguments=_call_arguments),
    CliCommand(
        name="pause",
        summary="Start no key of a reconciler or on a member.",
        run=_pause,
        arguments=_scope_and_reason,
    ),
    CliCommand(name="resume", summary="Let a paused reconciler or member go on.", run=_resume, arguments=_scope),
    CliCommand(name="paused", summary="List what is paused.", run=_paused),
)
