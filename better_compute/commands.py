"""The core's commands for operators: ``manage.py compute api``, ``pause``, ``resume`` and ``paused``."""

from __future__ import annotations

import argparse
import getpass
import sys
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import msgspec

from better_compute import registry
from better_compute.client import shell, waiting
from better_compute.client.errors import Problem
from better_compute.client.options import Options
from better_compute.contract.commands import CliCommand
from better_compute.contract.contexts import ModuleContext
from better_compute.contract.errors import ComputeError
from better_compute.contract.methods import MethodSpec
from better_compute.contract.principals import Principal
from better_compute.engine import pausing
from better_compute.envelope import act, call, problem


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
    parser.add_argument("method", help="dotted name, as `manage.py authz_matrix` shows it")
    parser.add_argument("input", nargs="*", default=[], metavar="name=text|name:=json", help="the method's input")
    parser.add_argument("--json", action="store_true", help="answer as JSON instead of a table")
    parser.add_argument("--dry-run", action="store_true", help="make every check and keep nothing")
    parser.add_argument("--idempotency-key", help="repeat a call under this key safely")
    waiting.arguments(parser)


@dataclass(frozen=True, slots=True)
class _InProcess:
    """Makes calls of one method as whoever is at the shell."""

    spec: MethodSpec

    def call(self, method: str, input: Any, answer: Any = Any, *, mutation: bool = True, options: Options) -> Any:
        """Call it, and return the answer as a client would read it."""
        made = call.call(
            self.spec,
            _at_the_shell(),
            input,
            request_id=options.request_id,
            idempotency_key=options.idempotency_key,
            dry_run=options.dry_run,
        )
        return msgspec.json.decode(msgspec.json.encode(made))


def _call(ctx: ModuleContext, options: argparse.Namespace) -> int:
    spec = registry.current().methods.get(options.method.replace(".", "/"))
    if spec is None:
        near = get_close_matches(options.method, [each.dotted for each in registry.current().methods.values()], n=3)
        hint = f"Did you mean {' or '.join(near)}?" if near else "`manage.py authz_matrix` lists them."
        sys.stderr.write(f"No hosted module offers the method {options.method!r}. {hint}\n")
        return shell.USAGE
    request_id = act.new_request_id()
    asked = Options(idempotency_key=options.idempotency_key, dry_run=options.dry_run, request_id=request_id)
    asker = _InProcess(spec)
    try:
        input = shell.arguments(options.input)
        if waiting.wanted(options):
            return waiting.run(
                asker,
                input,
                options,
                mutation=spec.kind == "mutation",
                listed={"items", "next_cursor"} <= {field.name for field in msgspec.structs.fields(spec.output_type)},
                asked=asked,
            )
        plain = asker.call(options.method, input, options=asked)
    except shell.Misused as error:
        sys.stderr.write(f"{error}\n")
        return shell.USAGE
    except ValueError as error:
        # What a watch cannot tell apart.
        sys.stderr.write(f"{error}\n".replace("`identify`", "--key"))
        return shell.USAGE
    except ComputeError as error:
        refused = msgspec.convert(problem.document(error, request_id), Problem)
        sys.stderr.write(f"{shell.refusal(refused)}\n")
        return shell.REFUSED
    sys.stdout.write((shell.as_json(plain) if options.json else shell.as_table(plain)) + "\n")
    return shell.DONE


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
