"""Pause and resume, by command, seen by a real worker."""

from __future__ import annotations

import getpass
import io
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
    with pytest.raises(SystemExit, match="1"):
        run("resume", "--kind", "acme.widgets")


@pytest.mark.django_db(transaction=True)
def test_what_is_paused_at_the_shell_is_audited_like_any_call() -> None:
    run("pause", "--kind", "acme.widgets")
    run("resume", "--kind", "acme.widgets")
    who = f"shell/{getpass.getuser()}"
    recorded = "SELECT method, principal, outcome FROM compute_audit_events ORDER BY xid"
    assert ask(recorded) == [("work.pause", who, "allowed"), ("work.resume", who, "allowed")]


@pytest.mark.django_db
def test_an_unknown_kind_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(CommandError, match=r"No kind is named 'acme\.x'\. Known are .*acme\.widgets"):
        run("pause", "--kind", "acme.x")


@pytest.mark.django_db
@pytest.mark.parametrize("verb", ["pause", "resume"])
@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "Neither a kind nor a member is named. Name one of the two."),
        (("--kind", "acme.widgets", "--member", "m"), "Both a kind and a member are named. Name one of the two."),
    ],
    ids=["neither", "both"],
)
def test_exactly_one_of_kind_and_member_is_named(verb: str, options: tuple[str, ...], said: str) -> None:
    with pytest.raises(CommandError, match=said):
        run(verb, *options)


@pytest.mark.django_db
def test_what_is_gone_can_be_resumed() -> None:
    pausing.pause("member:gone", reason="", by="test")
    assert run("resume", "--member", "gone") == "member:gone goes on.\n"


def seen_paused(worker: Worker, *scopes: str) -> None:
    """Wait until every member of the worker knows that exactly ``scopes`` are paused."""
    told = f"paused are {', '.join(sorted(scopes))}"
    members = ask("SELECT id FROM compute_workers WHERE pid = %s", worker.pid)
    eventually(lambda: all(f"member {member}: {told}\n" in worker.text() for (member,) in members))


def polled(worker: Worker) -> None:
    """Wait for as many beats as are longer than a poll."""
    ends = "SELECT min(extract(epoch FROM expires_at)) FROM compute_workers WHERE pid = %s"
    [(before,)] = ask(ends, worker.pid)
    eventually(lambda: ask(ends, worker.pid)[0][0] - before > 1.5)


@pytest.mark.django_db(transaction=True)
def test_a_paused_kind_waits_and_others_go_on(start_worker: Callable[..., Worker]) -> None:
    worker = start_worker()
    ready(worker)
    pausing.pause("kind:plant.marks", reason="", by="test")
    seen_paused(worker, "kind:plant.marks")
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
    scopes = [f"member:{member}" for (member,) in ask("SELECT id FROM compute_workers")]
    for scope in scopes:
        pausing.pause(scope, reason="", by="test")
    seen_paused(worker, *scopes)
    enqueue("plant.nodes", "waits")
    polled(worker)
    assert queued("plant.nodes") == ["waits"]
    for pause in pausing.paused():
        pausing.resume(pause.scope)
    eventually(lambda: told("ran", "waits"))
