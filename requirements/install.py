"""``python install.py VENV``: the virtual environment of this checkout, whole or made again. Standard library only.

``VENV/.installed`` is there exactly while everything in it is whole; ``VENV/.unfinished`` while it is not.
So what was interrupted, at whatever step, is recognised by the next run and made from the beginning. One run at a time:
a second one waits, then finds everything done.
"""

from __future__ import annotations

import contextlib
import fcntl
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REQUIREMENTS = ROOT / "requirements"
#: What an installation is made of; a change of one of them is installed by the next run.
SOURCES = (ROOT / "pyproject.toml", REQUIREMENTS / "dev.txt", REQUIREMENTS / "dev-py313.txt")
#: Printed by the environment's own interpreter: its release, which decides the pins.
RELEASE = "import sys; print('%d.%d' % sys.version_info[:2])"


class Refused(Exception):
    """Why nothing can be installed, and the mend, on one line."""


def main(venv: Path) -> None:
    """Do nothing when ``venv`` is whole and of today's pins, else make it so."""
    done, unfinished = venv / ".installed", venv / ".unfinished"
    if is_whole(venv, done):
        return
    with one_at_a_time(ROOT / ".dev" / f"install{venv.name}.lock") as lock:
        if is_whole(venv, done):
            return
        if done.exists():
            done.replace(unfinished)
            usable = (venv / "bin" / "python").exists() and was_here(unfinished, venv)
        else:
            # Without a mark of ours it is a person's own, and is used as it is when it can be.
            usable = not unfinished.exists() and has_pip(venv, lock)
        if not usable:
            make(venv, unfinished, lock)
        install(venv, unfinished, lock)
        unfinished.write_text(f"{venv.absolute()}\n", encoding="utf-8")
        os.utime(unfinished)
        unfinished.replace(done)
        print("==> installed", flush=True)


def is_whole(venv: Path, done: Path) -> bool:
    """Whether the last run ended, here, after the last change of what is installed."""
    return (
        done.exists()
        and (venv / "bin" / "python").exists()
        and was_here(done, venv)
        and all(done.stat().st_mtime >= source.stat().st_mtime for source in SOURCES)
    )


def was_here(mark: Path, venv: Path) -> bool:
    """False for an environment that was moved: its programs and the editable install name the old place."""
    return mark.read_text(encoding="utf-8").strip() in ("", str(venv.absolute()))


def has_pip(venv: Path, lock: int) -> bool:
    """Whether ``venv`` has an interpreter that runs, and a pip."""
    python = venv / "bin" / "python"
    return python.exists() and run([str(python), "-m", "pip", "--version"], lock, quiet=True) == 0


def make(venv: Path, unfinished: Path, lock: int) -> None:
    """Make an empty environment, in place of whatever stands there."""
    if importlib.util.find_spec("ensurepip") is None:
        package = f"python{sys.version_info[0]}.{sys.version_info[1]}-venv"
        raise Refused(f"{sys.executable} cannot make virtual environments. On Debian or Ubuntu: apt install {package}")
    if venv.exists():
        print(f"==> {venv} is not whole; it is made again", flush=True)
        shutil.rmtree(venv)
    venv.mkdir(parents=True)
    unfinished.touch()
    succeed("python -m venv", [sys.executable, "-m", "venv", str(venv)], lock)


def install(venv: Path, unfinished: Path, lock: int) -> None:
    """Install the pins for its interpreter's release, then this checkout, editable."""
    unfinished.touch()
    python = str(venv / "bin" / "python")
    release = subprocess.run([python, "-c", RELEASE], capture_output=True, text=True, check=True).stdout.strip()  # noqa: S603
    # Django 6 needs Python 3.12, so each generation has pins of its own.
    pins = REQUIREMENTS / ("dev.txt" if release == "3.11" else "dev-py313.txt")
    print(f"==> {venv} with Python {release}, packages of {pins.relative_to(ROOT)}", flush=True)
    pip = [python, "-m", "pip", "install", "--disable-pip-version-check"]
    succeed("pip install", [*pip, "--require-hashes", "-r", str(pins)], lock)
    succeed("pip install", [*pip, "--quiet", "--no-deps", "--no-build-isolation", "--editable", str(ROOT)], lock)


def succeed(name: str, command: list[str], lock: int) -> None:
    """Run ``command``; its own words stand above the one line of a failure."""
    if code := run(command, lock):
        raise Refused(f"{name} failed with exit code {code}; its own words stand above. The next make begins anew.")


def run(command: list[str], lock: int, *, quiet: bool = False) -> int:
    """Run ``command`` to its end; it holds the lock too, so that no second run begins beside an orphan."""
    output = subprocess.DEVNULL if quiet else None
    return subprocess.run(command, pass_fds=[lock], stdout=output, stderr=output, check=False).returncode  # noqa: S603


@contextlib.contextmanager
def one_at_a_time(file: Path) -> Iterator[int]:
    """Hold ``file``'s lock, which ends with the processes that hold it, however they end."""
    file.parent.mkdir(exist_ok=True)
    with file.open("a") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("==> waiting for another make that installs here", flush=True)
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield handle.fileno()


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]))
    except Refused as refused:
        sys.exit(str(refused))
    except OSError as error:
        sys.exit(f"Nothing can be installed here: {error}")
    except KeyboardInterrupt:
        print("==> interrupted; the next make begins anew", file=sys.stderr)
        sys.exit(128 + signal.SIGINT)
