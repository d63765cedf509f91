"""``compute_serve``: what the process of a role becomes."""

from __future__ import annotations

import io
import socket

import pytest
from celery import Celery
from django.core.management import CommandError, call_command


def test_serve_becomes_a_worker_or_a_server() -> None:
    output = io.StringIO()
    call_command("compute_serve", "--roles", "scheduler", "--print", stdout=output)
    assert "-m celery -A tests worker --pool threads" in output.getvalue()
    output = io.StringIO()
    call_command("compute_serve", "--roles", "api", "--port", "8123", "--threads", "3", "--print", stdout=output)
    assert output.getvalue().endswith(
        "-m granian --interface wsgi --workers 1 --blocking-threads 3 --no-ws --http 1 --respawn-failed-workers "
        "--host 127.0.0.1 --port 8123 example_project.wsgi:application\n"
    )


def test_a_worker_without_a_celery_app_is_told_what_to_write() -> None:
    with pytest.raises(CommandError, match=r"No Celery app is found in 'tests'\. Write tests/celery\.py as docs"):
        call_command("compute_serve")


def test_a_worker_that_would_run_no_reconcilers_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.celery_app", Celery("tests", set_as_current=False), raising=False)
    with pytest.raises(CommandError, match=r"runs no reconcilers\. Add better_compute\.install_celery\(app\) to "):
        call_command("compute_serve", "--app", "tests:celery_app")


@pytest.mark.parametrize("role", ["api", "stream"])
def test_a_port_that_is_taken_is_named_before_a_server_starts(role: str) -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        port = server.getsockname()[1]
        with pytest.raises(
            CommandError, match=rf"port {port} is in use by process .*; give another --port or --host\.$"
        ):
            call_command("compute_serve", "--roles", role, "--port", str(port))
