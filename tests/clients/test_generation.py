"""The same registry always gives the same clients, and a written one that differs is found."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from better_compute.envelope import clients, openapi
from better_compute.envelope.clients import surface

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("language", ["python", "typescript"])
def test_processes_of_different_hash_seeds_write_the_same_client(language: str) -> None:
    written = set()
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "DJANGO_SETTINGS_MODULE": "tests.settings"}
        command = [sys.executable, "manage.py", "compute_client", language]
        ran = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, check=True)
        written.add(ran.stdout)
    assert len(written) == 1
    assert len(written.pop()) > 10_000


@pytest.mark.parametrize("write", [clients.python, clients.typescript])
def test_the_order_of_components_and_paths_does_not_count(write: Any) -> None:
    document = json.loads(openapi.encode())
    turned = {**document, "paths": backwards(document["paths"])}
    turned["components"] = {**document["components"], "schemas": backwards(document["components"]["schemas"])}
    assert write(turned) == write(document)


def backwards(value: dict[str, Any]) -> dict[str, Any]:
    return {name: value[name] for name in reversed(value)}


@pytest.mark.parametrize("language", ["python", "typescript"])
def test_a_written_client_that_differs_fails_the_check(language: str, tmp_path: Path) -> None:
    path = tmp_path / "client"
    with pytest.raises(CommandError, match="writes it anew"):
        call_command("compute_client", language, "--output", str(path), "--check")
    assert not path.exists()
    call_command("compute_client", language, "--output", str(path))
    call_command("compute_client", language, "--output", str(path), "--check")
    path.write_text(path.read_text().replace("plugins.acme.widgets.poke", "plugins.acme.widgets.pull"))
    with pytest.raises(CommandError, match=r"(?s)-.*widgets\.pull.*\+.*widgets\.poke"):
        call_command("compute_client", language, "--output", str(path), "--check")


def test_a_check_without_a_file_is_misuse() -> None:
    with pytest.raises(CommandError, match="give it with --output"):
        call_command("compute_client", "python", "--check")


@pytest.mark.parametrize("taken", ["Watch", "Change", "Options", "Client", "ApiError"])
def test_a_type_of_a_module_never_hides_what_the_clients_stand_on(taken: str) -> None:
    schemas: dict[str, Any] = {taken: {"type": "object", "properties": {}}}
    read = surface.read({"components": {"schemas": schemas}, "paths": {}})
    assert [each.name for each in read.types] == [f"{taken}_"]
