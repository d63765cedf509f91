"""The core's commands for operators: ``manage.py compute pause``, ``resume`` and ``paused``."""

from __future__ import annotations

import argparse
import getpass
import sys

from better_compute.contract.commands import CliCommand
from better_compute.contract.ports import ModuleContext
from better_compute.engine import pausing


def _scope(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--kind", help="a reconciler, e.g. acme.widgets")
    parser.add_argument("--member", help="a live member's id")


def _scope_and_reason(parser: argparse.ArgumentParser) -> None:
    _scope(parser)
    parser.add_argument("--reason", default="", help="why, for whoever sees it")


def _pause(ctx: ModuleContext, options: argparse.Namespace) -> int:
    scope = pausing.scope_of(kind=options.kind, member=options.member)
    pausing.pause(scope, reason=options.reason, by=getpass.getuser())
    sys.stdout.write(f"{scope} is paused; keys wait in the queue until `compute resume`.\n")
    return 0


def _resume(ctx: ModuleContext, options: argparse.Namespace) -> int:
    scope = f"member:{options.member}" if options.member else f"kind:{options.kind}"
    if pausing.resume(scope):
        sys.stdout.write(f"{scope} goes on.\n")
        return 0
    sys.stdout.write(f"{scope} was not paused.\n")
    return 1


def _paused(ctx: ModuleContext, options: argparse.Namespace) -> int:
    for pause in pausing.paused():
        sys.stdout.write(f"{pause.scope}  since {pause.since.isoformat()} by {pause.by}  {pause.reason}\n")
    return 0


commands = (
    CliCommand(
        name="pause",
        summary="Start no key of a reconciler or on a member.",
        run=_pause,
        arguments=_scope_and_reason,
    ),
    CliCommand(name="resume", summary="Let a paused reconciler or member go on.", run=_resume, arguments=_scope),
    CliCommand(name="paused", summary="List what is paused.", run=_paused),
)
