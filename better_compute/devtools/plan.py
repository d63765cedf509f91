"""What an installation on one machine consists of, as data: the table that ``manage.py compute_dev`` runs."""

from __future__ import annotations

import os
import socket
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any

from better_compute.devtools import broker, postgres
from better_compute.devtools.broker import Broker
from better_compute.devtools.child import Child
from better_compute.devtools.place import Place
from better_compute.devtools.ports import LOOPBACK, PortRefused, free_port, reserve
from better_compute.devtools.postgres import APP_ROLE, OWNER_ROLE, Postgres
from better_compute.devtools.supervisor import Service, Task

#: The file of a place in which the seed leaves what a person logs in with.
LOGIN_FILE = "login.json"
PREFERRED_PORT = 8000
#: How long one question whether the API answers may take; a stop that is asked for waits for its end.
PROBE_SECONDS = 2


@dataclass(frozen=True, slots=True)
class Project:
    """The host project's own entry points."""

    manage: Path
    #: ``module:application`` for WSGI.
    wsgi: str
    #: What ``celery -A`` takes.
    celery: str
    #: What runs beside the API: name -> a module that serves HTTP on the port it is given. Every process finds its
    #: address in ``COMPUTE_DEV_<NAME>_URL``.
    beside: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Plan:
    """Services and tasks in the order they start; the last service to start is the last to be needed."""

    steps: Sequence[Callable[[], Service | Task]]
    #: Where the API answers; asked for when it has started.
    url: Callable[[], str]
    #: What a program that drives the running installation needs to know.
    driver_env: Callable[[], Mapping[str, str]]


def make(project: Project, place: Place, port: int, progress: Callable[[str], None]) -> Plan:
    """Lay out the installation of ``project`` in ``place``; port 0 takes a free one, the same in every start if it can.

    ``DATABASE_URL`` and ``CELERY_BROKER_URL`` in the environment stand for servers that run already. The port is kept
    from now on until the place is released, so that no other start takes it while the migrations run.

    Raises
    ------
    PortRefused
        When nothing can be served on ``port``.
    """
    served = _keep_port(place, port)
    database = None if "DATABASE_URL" in os.environ else Postgres(place)
    messages = None if "CELERY_BROKER_URL" in os.environ else Broker(place)

    def url() -> str:
        return f"http://{LOOPBACK}:{served}"

    @cache
    def beside(name: str) -> int:
        return free_port(int(place.remembered(f"{name} port", free_port)))

    def env() -> dict[str, str]:
        return {
            **os.environ,
            **(_database_env(database) if database else {}),
            **({"CELERY_BROKER_URL": messages.url()} if messages else {}),
            "SECRET_KEY": os.environ.get("SECRET_KEY") or place.secret("django"),
            **{f"COMPUTE_DEV_{name.upper()}_URL": f"http://{LOOPBACK}:{beside(name)}" for name in project.beside},
            "PYTHONUNBUFFERED": "1",
        }

    def manage(*words: str) -> list[str]:
        return [sys.executable, str(project.manage), *words]

    def start_database(server: Postgres) -> Service:
        server.prepare(progress)
        return Service(
            name=server.name,
            argv=server.argv(),
            account=server.account,
            ready=lambda child: server.is_ready(),
            stop_signal=postgres.STOP_SIGNAL,
            stop_seconds=postgres.STOP_SECONDS,
            quiet=True,
        )

    def start_broker(server: Broker) -> Service:
        server.prepare()
        return Service(
            name=server.name,
            argv=server.argv(),
            ready=lambda child: server.is_ready(),
            stop_signal=broker.STOP_SIGNAL,
            stop_seconds=broker.STOP_SECONDS,
            quiet=True,
        )

    def migrate() -> Task:
        return Task(name="migrate", argv=manage("compute_migrate"), env=env())

    def seed() -> Task:
        argv = [sys.executable, "-m", "better_compute.devtools.seed", str(place.directory / LOGIN_FILE)]
        return Task(name="seed", argv=argv, env=env())

    def companion(name: str, module: str) -> Service:
        return Service(
            name=name,
            argv=[sys.executable, "-m", module, str(beside(name))],
            env=env(),
            ready=lambda child: listens(beside(name)),
        )

    def api() -> Service:
        return Service(
            name="api",
            argv=[
                *(sys.executable, "-m", "granian", "--interface", "wsgi", "--host", LOOPBACK, "--port", str(served)),
                *("--workers", "1", "--blocking-threads", "4", "--no-ws", "--http", "1", "--respawn-failed-workers"),
                project.wsgi,
            ],
            env=env(),
            ready=lambda child: answers(f"{url()}/api/compute/system/version", place.read(LOGIN_FILE)),
            # While it loads the application it heeds no signal, and there is nothing that it could lose.
            unready_stop_seconds=0.5,
        )

    def worker() -> Service:
        return Service(
            name="worker",
            argv=[
                *(sys.executable, "-m", "celery", "--quiet", "-A", project.celery, "worker", "--pool", "threads"),
                *("--concurrency", "4", "--loglevel", "INFO", "--without-gossip", "--without-mingle"),
            ],
            env=env(),
            ready=said(" ready."),
            stop_seconds=30.0,
        )

    steps: list[Callable[[], Service | Task]] = []
    if database is not None:
        steps.append(lambda: start_database(database))
    if messages is not None:
        steps.append(lambda: start_broker(messages))
    steps += [migrate, seed]
    steps += [partial(companion, name, module) for name, module in project.beside.items()]
    steps += [api, worker]

    def driver_env() -> dict[str, str]:
        return {**env(), "COMPUTE_DEMO_URL": url(), "COMPUTE_DEMO_LOGIN": str(place.directory / LOGIN_FILE)}

    return Plan(steps, url, driver_env)


def _keep_port(place: Place, port: int) -> int:
    if port:
        port, kept = reserve(port)
    else:
        try:
            _, kept = reserve(port := int(place.remembered("api port", lambda: free_port(PREFERRED_PORT))))
        except PortRefused:
            port, kept = reserve(0)
    place.keep(kept)
    return port


def _database_env(server: Postgres) -> dict[str, str]:
    """The API and the workers serve as one role; another one owns the tables and migrates."""
    return {
        "DATABASE_URL": server.url(APP_ROLE),
        "OWNER_DATABASE_URL": server.url(OWNER_ROLE),
        "COMPUTE_APP_ROLE": APP_ROLE,
    }


def listens(port: int) -> bool:
    """Whether somebody listens on the port."""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex((LOOPBACK, port)) == 0


def answers(url: str, login: Mapping[str, Any]) -> bool:
    """Whether the API answers a caller with the installation's token."""
    request = urllib.request.Request(  # noqa: S310  (the URL is http on the loopback)
        url, headers={"Authorization": f"Bearer {login.get('installation_token')}"}
    )
    try:
        with urllib.request.urlopen(request, timeout=PROBE_SECONDS) as response:  # noqa: S310
            return bool(response.status == 200)
    except urllib.error.HTTPError as refusal:
        refusal.close()
        return False
    except OSError:
        return False


def said(words: str) -> Callable[[Child], bool]:
    """A probe that is true once the process has printed ``words``."""
    return lambda child: any(words in line for line in tuple(child.tail))
