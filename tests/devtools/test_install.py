"""``make install``: the virtual environment is whole, or made again, and one make at a time makes it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
SECONDS = 120.0
#: Of an editable install of nothing, with a build backend of its own: nothing is fetched.
PYPROJECT = """
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]

[project]
name = "tiny"
version = "1"
"""
BACKEND = """
import zipfile
def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    with zipfile.ZipFile(wheel_directory + "/tiny-1-py3-none-any.whl", "w") as wheel:
        wheel.writestr("tiny.pth", "")
        wheel.writestr("tiny-1.dist-info/METADATA", "Metadata-Version: 2.1\\nName: tiny\\nVersion: 1\\n")
        wheel.writestr("tiny-1.dist-info/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr("tiny-1.dist-info/RECORD", "")
    return "tiny-1-py3-none-any.whl"
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    root = tmp_path / "checkout"
    (root / "requirements").mkdir(parents=True)
    shutil.copy(REPOSITORY / "Makefile", root)
    shutil.copy(REPOSITORY / "requirements" / "install.py", root / "requirements")
    for pins in ("dev.txt", "dev-py313.txt"):
        (root / "requirements" / pins).touch()
    (root / "pyproject.toml").write_text(PYPROJECT)
    (root / "backend.py").write_text(BACKEND)
    return root


def interpreter() -> str:
    """The one that this environment was made with: a venv made from a venv would share nothing but its name."""
    return str(Path(sysconfig.get_config_var("BINDIR")) / Path(sys.executable).resolve().name)


def make(checkout: Path, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        ["make", "install", f"PYTHON={interpreter()}", *words],
        cwd=checkout,
        # As from a shell, also where the tests themselves were begun by make.
        env={name: value for name, value in os.environ.items() if name not in {"MAKEFLAGS", "MFLAGS", "MAKELEVEL"}},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def until(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def ended(process: subprocess.Popen[str]) -> str:
    said, _ = process.communicate(timeout=SECONDS)
    return said


def is_installed(checkout: Path) -> bool:
    listed = [str(checkout / ".venv" / "bin" / "python"), "-m", "pip", "list"]
    return "tiny" in subprocess.run(listed, capture_output=True, text=True, timeout=SECONDS, check=True).stdout


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_an_install_that_was_interrupted_is_begun_anew(checkout: Path, number: signal.Signals) -> None:
    first = make(checkout)
    python = checkout / ".venv" / "bin" / "python"
    # The interpreter is there, pip is not yet: what a test of the interpreter alone takes for whole.
    until(python.exists)
    os.killpg(first.pid, number)
    ended(first)
    assert first.returncode != 0
    assert not (checkout / ".venv" / ".installed").exists()
    again = make(checkout)
    said = ended(again)
    assert again.returncode == 0, said
    assert "==> .venv is not whole; it is made again" in said
    assert is_installed(checkout)


@pytest.mark.slow
def test_a_second_make_waits_for_the_first_and_finds_everything_done(checkout: Path) -> None:
    first = make(checkout)
    until((checkout / ".venv").exists)
    second = make(checkout)
    said, waited = ended(first), ended(second)
    assert (first.returncode, second.returncode) == (0, 0), said + waited
    assert waited == "==> waiting for another make that installs here\n"
    third = make(checkout)
    assert (ended(third), third.returncode) == ("", 0)

    # What a moved environment's programs name is not there any more.
    moved = checkout.rename(checkout.with_name("moved"))
    again = make(moved)
    said = ended(again)
    assert again.returncode == 0, said
    pip = subprocess.run([moved / ".venv" / "bin" / "pip", "--version"], capture_output=True, text=True)
    assert str(moved) in pip.stdout


@pytest.mark.slow
def test_an_environment_of_ones_own_is_used_and_not_removed(checkout: Path) -> None:
    subprocess.run([interpreter(), "-m", "venv", ".venv"], cwd=checkout, check=True)
    own = checkout / ".venv" / "own"
    own.touch()
    process = make(checkout)
    said = ended(process)
    assert process.returncode == 0, said
    assert own.exists()
    assert is_installed(checkout)
    (checkout / "pyproject.toml").touch()
    again = make(checkout)
    assert "packages of requirements/dev" in ended(again)
    assert own.exists()


def test_a_python_without_ensurepip_is_told_which_package_to_install(checkout: Path) -> None:
    without = checkout / "python-without"
    code = (
        "import runpy, sys; sys.modules['ensurepip'] = None; sys.argv = sys.argv[1:]; "
        "runpy.run_path(sys.argv[0], run_name='__main__')"
    )
    without.write_text(f'#!/bin/sh\nexec {interpreter()} -c "{code}" "$@"\n')
    without.chmod(0o755)
    process = make(checkout, f"PYTHON={without}")
    said = ended(process).splitlines()
    assert process.returncode != 0
    release = f"{sys.version_info[0]}.{sys.version_info[1]}"
    assert said[0].endswith(f"cannot make virtual environments. On Debian or Ubuntu: apt install python{release}-venv")
    assert "make: ***" in said[1]
    assert len(said) == 2


def test_a_checkout_that_cannot_be_written_is_named(checkout: Path) -> None:
    (checkout / ".dev").write_text("no directory")
    process = make(checkout)
    said = ended(process).splitlines()
    assert said[0].startswith("Nothing can be installed here: ")
    assert ".dev" in said[0]
