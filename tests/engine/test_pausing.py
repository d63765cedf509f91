"""Pause and resume, by command, seen by a real worker."""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from contextlib import redirect_stdout

import pytest
from django.core.management import CommandError, call_command

from better_compute import doctor
from better_compute.engine import pausing

from .conftest import Worker, ask, enqueue, eventually, queued, told
from .test_worker import ready


def run(*arguments: str) -> str:
    with redirect_stdout(io.StringIO()) as output:
        call_command("compute", *arguments)
    return output.getvalue()


@pytest.mark.django_db(transaction=True)
def test_a_kind_is_paused_listed_and_resumed() -> None:
    assert run("pause", "--kind", "acme.widgets", "--reason", "incident 7") == (
        "kind:acme.widgets is paused; keys wait in the queue until `compute resume`.\n"
    )
    assert "kind:acme.widgets  since" in run("paused")
    assert "incident 7" in run("paused")
    [finding] = [each for each in doctor.report().findings if each.check == "work.paused"]
    assert finding.message.startswith("The kind acme.widgets has been paused by ")
    assert finding.fix == "Run `manage.py compute resume --kind acme.widgets` when the incident is over."
    assert run("resume", "--kind", "acme.widgets") == "kind:acme.widgets goes on.\n"
    assert run("paused") == ""


@pytest.mark.django_db
def test_an_unknown_kind_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(CommandError, match=r"No kind is named 'acme\.x'\. Known are .*acme\.widgets"):
        run("pause", "--kind", "acme.x")
    with pytest.raises(CommandError, match="Name either a kind or a member"):
        run("pause")


@pytest.mark.django_db(transaction=True)
def test_a_paused_kind_waits_and_others_go_on(start_worker: Callable[..., Worker]) -> None:
    worker = start_worker()
    ready(worker)
    pausing.pause("kind:plant.marks", reason="", by="test")
    time.sleep(1.0)  # longer than a look, so that the worker has seen it
    enqueue("plant.marks", "waits")
    enqueue("plant.nodes", "goes")
    eventually(lambda: told("ran", "goes"))
    assert queued("plant.marks") == ["waits"]
    assert pausing.resume("kind:plant.marks")
    eventually(lambda: not queued("plant.marks"), 5)


@pytest.mark.django_db(transaction=True)
def test_a_paused_member_starts_nothing(start_worker: Callable[..., Worker]) -> None:
    worker = start_worker()
    ready(worker)
    for (member,) in ask("SELECT id FROM compute_workers"):
        pausing.pause(f"member:{member}", reason="", by="test")
    time.sleep(1.0)  # longer than a look, so that the worker has seen it
    enqueue("plant.nodes", "waits")
    time.sleep(1.5)  # longer than a poll
    assert queued("plant.nodes") == ["waits"]
    for pause in pausing.paused():
        pausing.resume(pause.scope)
    eventually(lambda: told("ran", "waits"))


def test_serve_becomes_a_worker_or_a_server() -> None:
    output = io.StringIO()
    call_command("compute_serve", "--roles", "scheduler", "--print", stdout=output)
    assert "-m celery -A tests worker --pool threads" in output.getvalue()
    output = io.StringIO()
    call_command("compute_serve", "--roles", "api", "--port", "8123", "--print", stdout=output)
    assert "--interface wsgi --host 127.0.0.1 --port 8123 example_project.wsgi:application" in output.getvalue()
