"""Commands beside a running installation are given what its own processes are."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from better_compute.devtools import running
from better_compute.devtools.place import Place


def test_a_command_finds_the_database_and_what_runs_beside_the_api(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {
        "DATABASE_URL": "postgresql://app@127.0.0.1:1/x",
        "COMPUTE_DEV_IDENTITY_URL": "http://127.0.0.1:2",
        "COMPUTE_DEV_PGBIN": "/not/told",
        "HOME": "/not/told",
    }
    (tmp_path / running.ENVIRONMENT_FILE).write_text(json.dumps(running.of(given)))
    monkeypatch.setattr(running, "asked", False)
    # Set first, so that what is adopted is taken back after the test.
    for name in ("DATABASE_URL", "COMPUTE_DEV_IDENTITY_URL"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", "/home/mine")
    monkeypatch.delenv("COMPUTE_DEV_PGBIN", raising=False)
    assert running.adopt(["doctor"], tmp_path)
    adopted = {name: os.environ.get(name) for name in given}
    assert adopted == {**given, "COMPUTE_DEV_PGBIN": None, "HOME": "/home/mine"}


def test_beside_one_that_is_starting_a_command_is_told_to_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(running, "asked", False)
    monkeypatch.setattr(running, "starting", None)
    monkeypatch.delenv("DATABASE_URL", raising=False)
    assert not running.adopt(["doctor"], tmp_path)
    assert capsys.readouterr().err == ""
    place = Place(tmp_path)
    try:
        assert not running.adopt(["doctor"], tmp_path)
    finally:
        place.release()
    told = f"An installation is still starting in {tmp_path}: wait until it tells its address"
    assert running.starting == told
    assert capsys.readouterr().err == f"{told}.\n"
    assert not running.adopt(["doctor"], tmp_path)
    assert running.starting is None
