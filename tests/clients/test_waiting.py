"""``--wait`` and ``--watch``: what they show on a terminal and elsewhere, and how they end."""

from __future__ import annotations

import fcntl
import io
import json
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pytest
from django.core.management import call_command
from django.db import connection

from better_compute import Principal, compute
from better_compute.client import cli, shell, waiting
from better_compute.client.errors import ConnectionLost
from better_compute.client.progress import Progress
from better_compute.client.transport import Transport
from better_compute.store import transaction
from better_compute.store.work import WorkRow
from tests.clients.conftest import Running

ROOT = Path(__file__).parents[2]
OPERATOR = Principal(id="internal/test", kind="internal")

db = pytest.mark.django_db(transaction=True)


@pytest.fixture
def run(running: Running, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run the command line against the server."""
    monkeypatch.setenv(cli.URL, running.url)
    monkeypatch.setenv(cli.TOKEN, running.token)

    def run(*arguments: str) -> tuple[int, str, str]:
        code = cli.main(arguments)
        out, err = capsys.readouterr()
        return code, out, err

    return run


@contextmanager
def program(running: Running, *arguments: str, **streams: Any) -> Iterator[subprocess.Popen[bytes]]:
    """The command line in a process of its own."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "TERM": "xterm",
        cli.URL: running.url,
        cli.TOKEN: running.token,
    }
    command = [sys.executable, "-m", "better_compute.client.cli", *arguments]
    process = subprocess.Popen(command, env=environment, **streams)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        for stream in filter(None, (process.stdout, process.stderr)):
            stream.close()


def enqueue(key: str) -> None:
    with transaction.transaction():
        transaction.enqueue([WorkRow("acme.widgets", key, -1)])


def suspend() -> None:
    compute.api.tenants.suspend(OPERATOR, {"tenantId": "t1", "reason": "why"})


def meanwhile(act: Callable[[], Any]) -> threading.Thread:
    """Do it in another thread, which leaves no connection behind."""

    def acting() -> None:
        try:
            act()
        finally:
            connection.close()

    thread = threading.Thread(target=acting)
    thread.start()
    return thread


@db
class TestWait:
    def test_it_ends_when_the_state_is_reached_and_shows_the_answer(self, run: Any) -> None:
        suspending = threading.Timer(0.5, lambda: meanwhile(suspend).join())
        suspending.start()
        code, out, err = run("tenants.get", "tenantId=t1", "--wait", "state=suspended", "--every", "0.05s", "--json")
        suspending.join()
        assert (code, json.loads(out)["state"]) == (0, "suspended")
        # No terminal, so a line for each change.
        assert [line.split(" ", 1)[1] for line in err.splitlines()] == ["state active", "state suspended"]

    def test_it_gives_up_after_its_time(self, run: Any) -> None:
        ask = ("tenants.get", "tenantId=t1", "--wait", "state=suspended", "--timeout", "0.3s", "--every", "0.05s")
        code, out, err = run(*ask)
        assert (code, out) == (shell.NOT_REACHED, "")
        assert err.endswith("state=suspended did not come within 0.3s.\n")

    def test_it_gives_up_when_it_can_come_no_more(self, run: Any) -> None:
        suspend()
        code, out, err = run("tenants.get", "tenantId=t1", "--wait", "state=deleting", "--unless", "state=suspended")
        assert code == shell.NOT_REACHED
        assert "suspended" in out
        assert err.endswith("state=deleting was waited for, and now state=suspended.\n")

    def test_a_mutation_is_not_repeated(self, run: Any) -> None:
        code, _, err = run("tenants.suspend", "tenantId=t1", "reason=why", "--wait", "state=suspended")
        assert (code, err) == (
            shell.USAGE,
            "tenants.suspend changes something; --wait and --watch are for what only looks.\n",
        )
        assert compute.api.tenants.get(OPERATOR, {"tenantId": "t1"}).state == "active"

    def test_an_installation_that_is_away_for_a_while_is_told_of(self, run: Any, monkeypatch: Any) -> None:
        real, away = Transport.call, [ConnectionLost("gone"), ConnectionLost("gone")]

        def once_away(*arguments: Any, **named: Any) -> Any:
            answered = real(*arguments, **named)
            if len(looked) == 1 and away:
                raise away.pop()
            looked.append(answered)
            if len(looked) == 2:
                suspend()
            return answered

        looked: list[Any] = []
        monkeypatch.setattr(Transport, "call", once_away)
        code, _, err = run("tenants.get", "tenantId=t1", "--wait", "state=suspended", "--every", "0.05s")
        assert code == 0
        assert [line.split(" ", 1)[1] for line in err.splitlines()] == [
            "state active",
            "no answer yet, looking again: gone",
            "state active",
            "state suspended",
        ]

    def test_a_refusal_ends_it(self, run: Any) -> None:
        code, _, err = run("tenants.get", "tenantId=", "--wait", "state=active")
        assert (code, err.partition(":")[0]) == (shell.USAGE, "INVALID_INPUT")

    def test_a_terminal_shows_a_bar_that_is_gone_in_the_end(self, running: Running) -> None:
        reading, writing = pty.openpty()
        fcntl.ioctl(writing, termios.TIOCSWINSZ, struct.pack("HHHH", 10, 60, 0, 0))
        ask = ("plugins.acme.widgets.count", "tenantId=t1", "--wait", "count:=2", "--progress", "count/count")
        with program(running, *ask, "--every", "0.1s", stdout=subprocess.PIPE, stderr=writing) as process:
            os.close(writing)
            shown = os.read(reading, 65536).decode()
            while "count 0" not in shown:
                shown += os.read(reading, 65536).decode()
            for name in ("w1", "w2"):
                compute.api.plugins.acme.widgets.poke(OPERATOR, {"tenantId": "t1", "widgetId": name})
            shown += rest(reading)
            out, _ = process.communicate(timeout=60)
        os.close(reading)
        assert (process.returncode, out) == (0, b"count  2\n")
        drawn = shown.split("\r\x1b[K")
        assert re.search(r"^\[\.*###\.*\] 0:\d\d count 0$", "\n".join(drawn), re.MULTILINE), drawn
        assert re.search(r"^\[#{24}\] 0:\d\d count 2$", "\n".join(drawn), re.MULTILINE), drawn
        assert drawn[-1] == ""
        assert all(len(each) < 60 for each in drawn)

    def test_in_process_it_is_the_same(self, capsys: Any) -> None:
        suspend()
        ask = ("tenants.get", "tenantId=t1", "--wait", "state=suspended")
        call_command("compute", "api", *ask, stdout=io.StringIO())
        out, err = capsys.readouterr()
        assert "suspended" in out
        assert err.endswith(" state suspended\n")
        with pytest.raises(SystemExit) as ended:
            call_command("compute", "api", *ask[:2], "--wait", "state=active", "--timeout", "0.2", stdout=io.StringIO())
        assert ended.value.code == shell.NOT_REACHED


@db
class TestWatch:
    def test_a_list_shows_each_change_until_it_is_interrupted(self, running: Running) -> None:
        enqueue("t1")
        ask = ("work.list", "--watch", "--key", "kind,key", "--every", "0.1s")
        with program(running, *ask, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            assert process.stdout is not None
            first = process.stdout.readline().decode()
            assert first.startswith("+ acme.widgets/t1 kind=acme.widgets key=t1 ")
            enqueue("t1")
            # Of what changed, only what is another now.
            assert re.fullmatch(r"~ acme\.widgets/t1 generation=2( \w+=\S+)*\n", process.stdout.readline().decode())
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=60)
        assert (process.returncode, err) == (shell.INTERRUPTED, b"")

    def test_json_is_a_line_for_each_change(self, running: Running) -> None:
        with program(running, "plugins.acme.widgets.count", "tenantId=t1", "--watch", "--json", stdout=-1) as process:
            assert process.stdout is not None
            assert json.loads(process.stdout.readline()) == {"count": 0}
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=60) == shell.INTERRUPTED

    def test_items_that_have_no_id_need_a_key(self, run: Any) -> None:
        enqueue("t1")
        code, out, err = run("work.list", "--watch")
        assert (code, out, err) == (
            shell.USAGE,
            "",
            "The items have no id; say with --key what tells them apart.\n",
        )

    def test_a_reader_that_has_read_enough_is_no_failure(self, running: Running) -> None:
        with transaction.transaction():
            transaction.enqueue([WorkRow("acme.widgets", f"t{number}", -1) for number in range(3000)])
        with program(running, "work.list", "--all", "--json", "limit:=200", stdout=-1, stderr=-1) as process:
            assert process.stdout is not None
            process.stdout.readline()
            process.stdout.close()
            assert process.stderr is not None
            err = process.stderr.read().decode()
            assert process.wait(timeout=60) == shell.DONE
        assert "Traceback" not in err
        assert "Broken pipe" not in err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--wait", "state"], "is none of name=text, name!=text and name:=json"),
        (["--wait", "a:=x"], "is not JSON"),
        (["--wait", "a=1", "--watch"], "give one of them"),
        (["--timeout", "3s"], "--timeout goes with --wait."),
        (["--key", "a"], "--key goes with --watch."),
        (["--wait", "a=1", "--timeout", "soon"], "--timeout is 'soon'; give 90s, 10m or 2h."),
        (["--wait", "a=1", "--every", "0s"], "--every is '0s'"),
        (["--wait", "a=1", "--progress", "done"], "does not name two members"),
    ],
)
@db
def test_misuse_is_said(arguments: list[str], told: str, run: Any) -> None:
    code, _, err = run("plugins.acme.widgets.count", "tenantId=t1", *arguments)
    assert code == shell.USAGE
    assert told in err


@pytest.mark.parametrize(
    ("text", "answer", "holds"),
    [
        ("state=done", {"state": "done"}, True),
        ("state!=done", {"state": "done"}, False),
        ("state!=done", {"state": "new"}, True),
        ("count:=3", {"count": 3}, True),
        ("count=3", {"count": 3}, True),
        ("count:=3", {"count": "3"}, False),
        ("items:=[]", {"items": []}, True),
        ("ok=yes", {"ok": True}, True),
        ("a.b!:=null", {"a": {"b": 1}}, True),
        ("a.b=-", {"a": None}, True),
        ("text=a=b", {"text": "a=b"}, True),
    ],
)
def test_conditions(text: str, answer: Any, holds: bool) -> None:
    assert waiting.Condition.of(text).holds(answer) is holds


@pytest.mark.parametrize(("text", "seconds"), [("90s", 90), ("10m", 600), ("2h", 7200), ("1d", 86400), ("0.5", 0.5)])
def test_times(text: str, seconds: float) -> None:
    assert waiting.seconds("--timeout", text) == seconds


class TestProgress:
    def test_elsewhere_each_change_is_a_line(self) -> None:
        out = io.StringIO()
        with Progress(out) as progress:
            progress.show("a")
            progress.show("a")
            progress.show("b", share=0.5)
        assert out.getvalue() == "0:00 a\n0:00 50% b\n"

    def test_a_terminal_that_cannot_go_back_gets_lines(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("TERM", "dumb")
        reading, file = terminal()
        with file, Progress(file) as progress:
            progress.show("a")
            file.flush()
            assert os.read(reading, 100) == b"0:00 a\r\n"
        os.close(reading)

    @pytest.mark.parametrize(("share", "filled"), [(0.0, 0), (0.5, 12), (1.0, 24), (7.0, 24), (-1.0, 0)])
    def test_the_bar_is_as_full_as_the_share(self, share: float, filled: int, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("TERM", "xterm")
        reading, file = terminal()
        with file, Progress(file) as progress:
            progress.show("a", share=share)
            shown = os.read(reading, 100).decode()
            assert f"[{'#' * filled}{'.' * (24 - filled)}] 0:00 a" in shown
        os.close(reading)


def terminal() -> tuple[int, IO[str]]:
    reading, writing = pty.openpty()
    return reading, os.fdopen(writing, "w")


def rest(reading: int) -> str:
    """Everything until the terminal is closed."""
    text = b""
    try:
        while part := os.read(reading, 65536):
            text += part
    except OSError:  # Linux says so when the last writer is gone
        pass
    return text.decode()
