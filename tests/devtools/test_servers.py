"""The servers that development and tests start: real ones, in places of their own."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
import redis

from better_compute.devtools.account import Account
from better_compute.devtools.broker import Broker
from better_compute.devtools.child import Child
from better_compute.devtools.place import Place
from better_compute.devtools.postgres import APP_ROLE, OWNER_ROLE, STOP_SIGNAL, Postgres

REPOSITORY = Path(__file__).resolve().parents[2]
SECONDS = 60.0


def until(ready: Callable[[], bool], child: Child) -> None:
    deadline = time.monotonic() + SECONDS
    while not ready():
        assert not child.wait(0.05), "\n".join(child.tail)
        assert time.monotonic() < deadline, "\n".join(child.tail)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    for directory in (tmp_path, *tmp_path.parents[:3]):
        if os.geteuid() == 0 and directory.stat().st_uid == 0 and directory != Path("/"):
            directory.chmod(directory.stat().st_mode | 0o011)
    held = Place(tmp_path / "place")
    yield held
    held.release()


@pytest.fixture
def running(place: Place) -> Iterator[Callable[[], tuple[Postgres, Child]]]:
    started: list[Child] = []

    def start() -> tuple[Postgres, Child]:
        server = Postgres(place, durable=False)
        child = server.start(lambda line: None)
        started.append(child)
        until(server.is_ready, child)
        return server, child

    yield start
    for child in started:
        child.stop(with_signal=STOP_SIGNAL)


Start = Callable[[], tuple[Postgres, Child]]


def test_a_second_start_finds_the_data_of_the_first(running: Start) -> None:
    server, child = running()
    with psycopg.connect(server.url(OWNER_ROLE)) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 42 AS n")
    assert child.stop(with_signal=STOP_SIGNAL)
    server, _ = running()
    with psycopg.connect(server.url(OWNER_ROLE)) as connection:
        assert connection.execute("SELECT n FROM kept").fetchone() == (42,)


def test_a_start_after_a_crash_ignores_the_pid_file_that_something_else_bears_now(running: Start) -> None:
    server, child = running()
    pid_file = server.data / "postmaster.pid"
    left = pid_file.read_bytes().splitlines()
    os.kill(child.pid, signal.SIGKILL)
    assert child.wait(SECONDS)
    # This test's own process is no PostgreSQL, and must survive.
    pid_file.write_bytes(b"\n".join([str(os.getpid()).encode(), *left[1:]]) + b"\n")
    server, _ = running()
    assert server.is_ready()


def test_a_start_ends_the_server_that_a_crashed_start_left_running(running: Start) -> None:
    _, left = running()
    server, _ = running()
    assert left.exit_code is not None
    assert server.is_ready()


def test_the_roles_cannot_do_what_they_must_not(running: Start) -> None:
    server, _ = running()
    with psycopg.connect(server.url(APP_ROLE)) as connection:
        row = connection.execute(
            "SELECT rolsuper, rolcreatedb, rolcreaterole, rolbypassrls FROM pg_roles WHERE rolname = current_user"
        ).fetchone()
    assert row == (False, False, False, False)
    with psycopg.connect(server.url(OWNER_ROLE)) as connection:
        row = connection.execute(
            "SELECT rolsuper, rolcreatedb, rolcreaterole FROM pg_roles WHERE rolname = current_user"
        ).fetchone()
    assert row == (False, True, True)


def test_a_start_whose_passwords_are_forgotten_sets_new_ones_and_finds_the_data(running: Start, place: Place) -> None:
    server, child = running()
    old = server.password(OWNER_ROLE)
    with psycopg.connect(server.url(OWNER_ROLE)) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 42 AS n")
    assert child.stop(with_signal=STOP_SIGNAL)
    (place.directory / "remembered.json").unlink()
    server, _ = running()
    assert server.password(OWNER_ROLE) != old
    with psycopg.connect(server.url(OWNER_ROLE)) as connection:
        assert connection.execute("SELECT n FROM kept").fetchone() == (42,)


def test_a_password_that_the_database_does_not_take_ends_the_wait(running: Start, place: Place) -> None:
    server, _ = running()
    memory = place.read("remembered.json")
    place.write("remembered.json", {**memory, "secret:postgres postgres": "of another cluster"})
    with pytest.raises(RuntimeError, match=r"does not take the password that .*remembered\.json holds .* Remove that"):
        server.is_ready()


def test_nobody_gets_in_without_the_password(running: Start) -> None:
    server, _ = running()
    wrong = server.url(OWNER_ROLE).replace(server.password(OWNER_ROLE), "guessed")
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(wrong)


def test_an_initdb_that_was_cut_short_is_begun_anew(running: Start, place: Place) -> None:
    server = Postgres(place, durable=False)
    half = server.data.with_name(server.data.name + ".new")
    half.mkdir()
    (half / "PG_VERSION").write_text("18\n")
    server, _ = running()
    assert server.is_ready()


@pytest.mark.needs("root")
def test_root_in_a_directory_that_others_cannot_enter_gets_a_server_elsewhere(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    place = Place(tmp_path / "place")
    server = Postgres(place, durable=False)
    child = server.start(lambda line: None)
    try:
        until(server.is_ready, child)
        elsewhere = (place.directory / "elsewhere").readlink()
        assert server.data.parent == elsewhere
        assert tmp_path.stat().st_mode & 0o777 == 0o700
    finally:
        child.stop(with_signal=STOP_SIGNAL)
        place.release()
        shutil.rmtree((place.directory / "elsewhere").readlink())


def test_reach_follows_the_bits_of_the_class_a_user_is_in(tmp_path: Path) -> None:
    stranger = Account("stranger", 54321, 54321)
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    for directory in (tmp_path, tmp_path / "a", *tmp_path.parents[:3]):
        if directory.stat().st_uid == os.geteuid():
            directory.chmod(directory.stat().st_mode | 0o001)
    assert stranger.can_pass(inner)
    (tmp_path / "a").chmod(0o700)
    assert not stranger.can_pass(inner)


def test_the_broker_wants_its_password_and_listens_on_the_loopback_only(place: Place) -> None:
    server = Broker(place)
    child = server.start()
    try:
        until(server.is_ready, child)
        port = int(server.url().rsplit(":", 1)[1].split("/")[0])
        with redis.Redis(host="127.0.0.1", port=port) as stranger, pytest.raises(redis.AuthenticationError):
            stranger.ping()
        with redis.Redis.from_url(server.url(), decode_responses=True) as client:
            assert client.config_get("bind")["bind"] == "127.0.0.1"
        assert server.url() not in " ".join(server.argv())
    finally:
        child.stop()


@pytest.mark.slow
@pytest.mark.needs("root", "python-for-everyone")
def test_an_ordinary_user_can_start_both(python_for_everyone: str) -> None:
    home = Path(tempfile.mkdtemp(prefix="better-compute-"))
    shutil.chown(home, "nobody")
    script = (
        "from better_compute.devtools.services import Services\n"
        "import os, psycopg, redis\n"
        "services = Services()\n"
        "services.start()\n"
        "print(psycopg.connect(os.environ['DATABASE_URL']).execute('SELECT current_user').fetchone())\n"
        "print(redis.Redis.from_url(os.environ['CELERY_BROKER_URL']).ping())\n"
        "services.stop()\n"
    )
    clean = {k: v for k, v in os.environ.items() if k not in ("DATABASE_URL", "CELERY_BROKER_URL")}
    try:
        ran = subprocess.run(
            [python_for_everyone, "-c", script],
            user="nobody",
            group="nogroup",
            extra_groups=[],
            cwd=home,
            env={
                **clean,
                "HOME": str(home),
                "PYTHONPATH": os.pathsep.join([str(REPOSITORY), sysconfig.get_path("purelib")]),
            },
            capture_output=True,
            text=True,
            timeout=SECONDS * 2,
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr
        assert "('bc_owner',)\nTrue\n" in ran.stdout
        owners = {data.owner() for data in (home / ".dev" / "test").glob("postgres-*") if data.is_dir()}
        assert owners == {"nobody"}
    finally:
        shutil.rmtree(home)
