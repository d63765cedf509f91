"""The supervisor, with real child processes."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from better_compute.devtools.child import Child
from better_compute.devtools.place import Place, PlaceRefused, PlaceTaken
from better_compute.devtools.supervisor import Died, Service, Stopped, Supervisor, Task

SLEEP = [sys.executable, "-c", "print('up', flush=True); import time; time.sleep(600)"]
STUBBORN = [
    sys.executable,
    "-c",
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(600)",
]


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def is_up(child: Child) -> bool:
    return "up" in child.tail


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    held = Place(tmp_path / "place")
    yield held
    held.release()


@pytest.fixture
def supervisor(place: Place) -> Iterator[Supervisor]:
    made = Supervisor(place, out=io.StringIO())
    yield made
    made.stop()


def output(supervisor: Supervisor) -> str:
    assert isinstance(supervisor.out, io.StringIO)
    return supervisor.out.getvalue()


def test_one_dying_ends_the_watch_with_its_last_lines(supervisor: Supervisor) -> None:
    supervisor.start(Service(name="steady", argv=SLEEP, ready=is_up))
    supervisor.start(Service(name="weak", argv=python("print('the disk is full'); raise SystemExit(7)")))
    with pytest.raises(
        Died, match=r"weak \(process \d+\) ended with exit code 7\.\nIts last lines:\n  the disk is full"
    ):
        supervisor.watch()


def test_a_death_by_signal_names_the_signal(supervisor: Supervisor) -> None:
    child = supervisor.start(Service(name="victim", argv=SLEEP, ready=is_up))
    os.kill(child.pid, signal.SIGKILL)
    with pytest.raises(Died, match=r"victim .* ended by signal SIGKILL"):
        supervisor.watch()


def test_a_service_that_dies_before_it_is_ready_is_reported(supervisor: Supervisor) -> None:
    with pytest.raises(Died, match="no such table"):
        supervisor.start(Service(name="api", argv=python("raise SystemExit('no such table')"), ready=is_up))


def test_a_service_that_never_becomes_ready_is_reported(supervisor: Supervisor) -> None:
    with pytest.raises(Died, match=r"slow is not ready after 0 s\.\nIt said nothing\."):
        supervisor.start(
            Service(name="slow", argv=python("import time; time.sleep(600)"), ready=is_up, ready_seconds=0.3)
        )


def test_stop_ends_everything_that_was_started_last_first(supervisor: Supervisor) -> None:
    first = supervisor.start(Service(name="first", argv=SLEEP, ready=is_up))
    second = supervisor.start(Service(name="second", argv=SLEEP, ready=is_up))
    order: list[str] = []
    watchers = [
        threading.Thread(target=lambda child=child, name=name: (child.wait(30), order.append(name)))
        for name, child in (("first", first), ("second", second))
    ]
    for watcher in watchers:
        watcher.start()
    supervisor.stop()
    for watcher in watchers:
        watcher.join()
    assert order == ["second", "first"]


def test_stop_leaves_what_it_did_not_start(supervisor: Supervisor) -> None:
    stranger = subprocess.Popen(SLEEP, stdout=subprocess.DEVNULL)
    try:
        supervisor.start(Service(name="ours", argv=SLEEP, ready=is_up))
        supervisor.stop()
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


def test_stop_kills_what_does_not_heed_it(supervisor: Supervisor) -> None:
    child = supervisor.start(Service(name="stubborn", argv=STUBBORN, ready=is_up, stop_seconds=0.3))
    supervisor.stop()
    assert child.exit_code == -signal.SIGKILL
    assert "stubborn did not stop in 0 s and was killed" in output(supervisor)


def test_what_was_not_ready_yet_may_have_less_time_to_stop(supervisor: Supervisor) -> None:
    def ready(child: Child) -> bool:
        if is_up(child):
            supervisor.ask_stop()
        return False

    with pytest.raises(Stopped):
        supervisor.start(Service(name="api", argv=STUBBORN, ready=ready, stop_seconds=60.0, unready_stop_seconds=0.1))
    began = time.monotonic()
    supervisor.stop()
    assert time.monotonic() - began < 30
    assert "was killed" not in output(supervisor)


def test_stop_ends_the_children_of_a_service(supervisor: Supervisor) -> None:
    code = (
        f"import subprocess, sys; print(subprocess.Popen({SLEEP!r}, stdout=2).pid, 'up', flush=True); sys.stdin.read()"
    )
    parent = [*python(code.replace("sys.stdin.read()", "import time; time.sleep(600)"))]
    child = supervisor.start(Service(name="parent", argv=parent, ready=lambda c: any("up" in line for line in c.tail)))
    grandchild = psutil.Process(int(next(line for line in child.tail if " up" in line).split()[0]))
    supervisor.stop()
    assert not psutil.wait_procs([grandchild], timeout=5)[1]


def test_ask_stop_ends_the_watch_quietly(supervisor: Supervisor) -> None:
    supervisor.start(Service(name="steady", argv=SLEEP, ready=is_up))
    threading.Timer(0.2, supervisor.ask_stop).start()
    supervisor.watch()


def test_ask_stop_ends_a_wait_for_readiness(supervisor: Supervisor) -> None:
    threading.Timer(0.2, supervisor.ask_stop).start()
    with pytest.raises(Stopped):
        supervisor.start(Service(name="never", argv=python("import time; time.sleep(600)"), ready=is_up))


def test_a_task_returns_its_exit_code_and_its_lines_stand_in_the_output(supervisor: Supervisor) -> None:
    code = supervisor.run(Task(name="migrate", argv=python("print('three applied'); raise SystemExit(4)")))
    assert code == 4
    assert "  migrate | three applied\n" in output(supervisor)


def test_a_service_that_dies_during_a_task_ends_the_task(supervisor: Supervisor) -> None:
    supervisor.start(Service(name="brief", argv=python("import time; time.sleep(0.5)")))
    began = time.monotonic()
    with pytest.raises(Died, match="brief"):
        supervisor.run(Task(name="long", argv=python("import time; time.sleep(600)")))
    assert time.monotonic() - began < 30


def test_a_terminal_gets_colours_and_a_file_none(place: Place) -> None:
    plain, coloured = io.StringIO(), io.StringIO()
    Supervisor(place, out=plain).say("hello", "api", 33)
    Supervisor(place, out=coloured, colour=True).say("hello", "api", 33)
    assert plain.getvalue() == "      api | hello\n"
    assert coloured.getvalue() == "\x1b[33m      api\x1b[0m | hello\n"


def test_a_place_is_held_by_one_installation(place: Place) -> None:
    with pytest.raises(PlaceTaken, match=rf"in use by process {os.getpid()}\. Stop that one"):
        Place(place.directory)


def test_a_released_place_can_be_held_again(tmp_path: Path) -> None:
    Place(tmp_path / "p").release()
    Place(tmp_path / "p").release()


def test_slots_give_each_concurrent_run_its_own_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMPUTE_DEV_DIR", str(tmp_path))
    first, second = Place.claim("test", slots=2), Place.claim("test", slots=2)
    assert [first.directory.name, second.directory.name] == ["test", "test-2"]
    with pytest.raises(PlaceTaken):
        Place.claim("test", slots=2)
    first.release()
    second.release()


def test_a_secret_is_the_same_in_every_start_and_only_ours_to_read(place: Place) -> None:
    secret = place.secret("x")
    assert place.secret("x") == secret
    assert place.secret("y") != secret
    assert (place.directory / "remembered.json").stat().st_mode & 0o077 == 0


def test_a_memory_that_was_cut_short_is_refused_and_never_written_over(tmp_path: Path) -> None:
    place = Place(tmp_path / "place")
    place.secret("x")
    place.release()
    memory = place.directory / "remembered.json"
    half = memory.read_text()[:20]
    memory.write_text(half)
    for _ in range(2):
        with pytest.raises(PlaceRefused, match=r"remembered\.json, which .* Put it back from a copy, or remove it"):
            Place(place.directory)
    assert memory.read_text() == half
    memory.unlink()
    Place(place.directory).release()


def test_a_crash_while_it_is_written_leaves_the_old_memory(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = place.secret("x")

    def crash(handle: int) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", crash)
        with pytest.raises(KeyboardInterrupt):
            place.secret("y")
    assert place.secret("x") == secret
    assert not place.remembers_secret("y")


def test_what_is_kept_is_closed_when_the_place_is_released(tmp_path: Path) -> None:
    place = Place(tmp_path / "place")
    kept = io.StringIO()
    place.keep(kept)
    place.release()
    assert kept.closed


@pytest.mark.needs("root")
def test_a_place_that_is_not_ours_to_write_is_named(tmp_path: Path) -> None:
    tmp_path.chmod(0o711)
    before = os.geteuid()
    os.seteuid(65534)
    try:
        with pytest.raises(PlaceRefused, match=r"is not yours to write\. Run as its owner, or set COMPUTE_DEV_DIR"):
            Place(tmp_path / "place")
    finally:
        os.seteuid(before)


def test_leftovers_of_a_crashed_start_are_ended(place: Place) -> None:
    left = Child(SLEEP)
    place.record("api", left.pid)
    assert place.end_leftovers() == ["api"]
    assert left.wait(5)
    assert place.end_leftovers() == []


def test_a_recorded_process_id_that_something_else_bears_now_is_left_alone(place: Place) -> None:
    stranger = Child(SLEEP)
    place.write("started.json", {"api": {"pid": stranger.pid, "created": 1.0}})
    assert place.end_leftovers() == []
    assert stranger.exit_code is None
    stranger.stop()
