"""``manage.py compute <module>:<command>``: operators' commands that modules bring."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

from django.core.management.base import BaseCommand, CommandError, CommandParser

from better_compute import registry
from better_compute.client.shell import read_enough
from better_compute.contract.commands import CliCommand
from better_compute.contract.errors import ComputeError
from better_compute.engine.contexts import module_context
from better_compute.management.refusals import told
from better_compute.registry.order import CORE

_REFUSED: Final = 1
_USAGE: Final = 2
#: Exit code where the database does not answer or is not migrated, as of a shell that no installation answers.
_AWAY: Final = 3


class Command(BaseCommand):
    """Runs one command of one module; without arguments it lists them all.

    A name without a module is the core's: ``compute pause`` is ``compute core:pause``.
    """

    help = "Run a hosted module's command, <module>:<command>; without arguments, list them."
    _program = "manage.py"

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        """Remember how the program was called, which the help of a module's command tells."""
        self._program = Path(prog_name).name or self._program
        return super().create_parser(prog_name, subcommand, **kwargs)

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """The command, and everything after it for the command itself."""
        parser.add_argument("name", nargs="?", metavar="module:command", help="which command to run")
        parser.add_argument("arguments", nargs=argparse.REMAINDER, help="its own arguments; --help shows them")

    def handle(self, *args: Any, **options: Any) -> None:
        """Run the command and exit with what it returned, or 1 refused, 2 wrong usage, 3 no database."""
        try:
            hosted = registry.current()
        except ComputeError as refusal:
            raise CommandError(str(refusal), returncode=_USAGE) from None
        try:
            code = self._perform(hosted, options)
            if sys.stdout is not None:
                sys.stdout.flush()
        except BrokenPipeError:
            code = read_enough()
        if code:
            sys.exit(code)

    def _perform(self, hosted: registry.Registry, options: Mapping[str, Any]) -> int:
        if options["name"] is None:
            self._list(hosted.commands)
            return 0
        name = options["name"] if ":" in options["name"] else f"{CORE}:{options['name']}"
        command = hosted.commands.get(name)
        if command is None:
            raise CommandError(unknown(options["name"], list(hosted.commands)), returncode=_USAGE)
        return self._run(name, command, hosted, options["arguments"])

    @told(away=_AWAY)
    def _run(self, name: str, command: CliCommand, hosted: registry.Registry, arguments: Sequence[str]) -> int:
        parser = argparse.ArgumentParser(
            prog=f"{self._program} compute {shown(name)}", description=command.summary, allow_abbrev=False
        )
        command.arguments(parser)
        try:
            # Options may stand between arguments.
            parsed = parser.parse_intermixed_args(list(arguments))
        except TypeError:
            # A parser with commands of its own.
            parsed = parser.parse_args(list(arguments))
        spec = hosted.module(name.partition(":")[0])
        try:
            return command.run(module_context(spec), parsed) or 0
        except ComputeError as refusal:
            raise CommandError(str(refusal), returncode=_REFUSED) from refusal

    def _list(self, commands: Mapping[str, CliCommand]) -> None:
        if not commands:
            self.stdout.write("No hosted module brings a command.")
            return
        width = max(len(shown(name)) for name in commands)
        for name, command in commands.items():
            self.stdout.write(f"{shown(name).ljust(width)}  {command.summary}")


def shown(name: str) -> str:
    """How a command is written: the core's need no module."""
    return name.removeprefix(f"{CORE}:")


def unknown(name: str, commands: Sequence[str]) -> str:
    """Say that no command is named ``name``, and which ones come near."""
    near = get_close_matches(name, [shown(each) for each in commands], n=3)
    if near:
        return f"No hosted module brings the command {name!r}. Did you mean {' or '.join(near)}?"
    return f"No hosted module brings the command {name!r}. `manage.py compute` lists them all."
