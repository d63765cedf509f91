"""Commands that modules give to operators."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass

from better_compute.contract.contexts import ModuleContext


def _no_arguments(parser: argparse.ArgumentParser) -> None:
    del parser


@dataclass(frozen=True, slots=True, kw_only=True)
class CliCommand:
    """An operator's command, run as ``manage.py compute <module>:<name>``.

    ``run(ctx, options)`` returns the exit code (None is 0); ``arguments(parser)`` adds its options.
    """

    name: str
    summary: str
    run: Callable[[ModuleContext, argparse.Namespace], int | None]
    arguments: Callable[[argparse.ArgumentParser], None] = _no_arguments
