"""Programs as a person at a shell runs them, in an environment that knows nothing of this checkout."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path


def clean_environment(**env: str) -> dict[str, str]:
    """This process's environment without what points at this checkout, and with ``env``."""
    hidden = ("PYTHONPATH", "DJANGO_SETTINGS_MODULE", "VIRTUAL_ENV", "DATABASE_URL", "CELERY_BROKER_URL")
    return {**{name: value for name, value in os.environ.items() if name not in hidden}, **env}


def run(*argv: str | Path, cwd: Path, **env: str) -> str:
    """Run a program to its end and return what it printed; anything but exit code 0 fails the test."""
    ran = subprocess.run(
        [str(word) for word in argv],
        cwd=cwd,
        env=clean_environment(**env),
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert ran.returncode == 0, f"{argv} ended with {ran.returncode}\n{ran.stdout}\n{ran.stderr}"
    return ran.stdout
