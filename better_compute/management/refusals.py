"""What the core refuses, as the one line that a command ends with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from django.core.management.base import CommandError

from better_compute.contract.errors import ComputeError

#: Exit code of a command that could not begin, as argparse has it.
REFUSED: Final = 2


@contextmanager
def told() -> Iterator[None]:
    """Let a command end with the core's refusal and its mend instead of a traceback; also a decorator of ``handle``."""
    try:
        yield
    except ComputeError as refusal:
        raise CommandError(str(refusal), returncode=REFUSED) from refusal
