"""Lets commands typed beside ``compute_dev`` speak to the database and the broker that it started."""

from __future__ import annotations

import fcntl
import json
import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

#: The file of a place in which a running installation says what its processes are given.
ENVIRONMENT_FILE: Final = "environment.json"
VARIABLES: Final = ("DATABASE_URL", "OWNER_DATABASE_URL", "COMPUTE_APP_ROLE", "CELERY_BROKER_URL", "SECRET_KEY")
#: Where what runs beside the API is found, which the settings may need.
_BESIDE: Final = re.compile(r"COMPUTE_DEV_[A-Z0-9_]+_URL", re.ASCII)

#: Whether this process's script calls :func:`adopt`, as every command of a project should that speaks beside one.
asked = False
#: What to do while an installation is starting in the place that was asked; None when none is.
starting: str | None = None


def of(environment: Mapping[str, str]) -> dict[str, str]:
    """What :func:`adopt` will need of ``environment``."""
    return {name: value for name, value in environment.items() if _told(name)}


def _told(name: str) -> bool:
    return name in VARIABLES or _BESIDE.fullmatch(name) is not None


def adopt(words: Sequence[str], place: Path | None = None) -> bool:
    """Set the running installation's variables, unless ``DATABASE_URL`` is set or there is none; says which.

    Parameters
    ----------
    words
        The command that is about to run; one that starts an installation of its own adopts nothing.
    place
        Where ``compute_dev`` keeps its state; ``.dev/demo`` by default.
    """
    global asked, starting
    asked, starting = True, None
    if "DATABASE_URL" in os.environ or list(words[:1]) in (["compute_dev"], ["test"]):
        return False
    file = (place or Path(os.environ.get("COMPUTE_DEV_DIR") or ".dev") / "demo") / ENVIRONMENT_FILE
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, json.JSONDecodeError):
        if _held(file.parent):
            starting = f"An installation is still starting in {file.parent}: wait until it tells its address"
            print(f"{starting}.", file=sys.stderr)
        return False
    for name, value in of(found).items():
        os.environ.setdefault(name, value)
    print(f"Speaking to the installation that runs in {file.parent}.", file=sys.stderr)
    return True


def _held(place: Path) -> bool:
    """Whether a process holds the place."""
    try:
        with (place / "lock").open() as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False
