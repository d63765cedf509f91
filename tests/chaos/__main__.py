"""``python -m tests.chaos --seconds 60``: everything goes wrong for a while, and then nothing may be missing.

Four or more worker processes run under load on a database and a broker of their own, while they are killed, frozen
past their leases and cut off, the broker is flushed and restarted, and the database restarted, in good order and
as if its machine had died. Afterwards the queue is drained and the evidence judged (``record``). Exit code 1 when
a wake-up is lost, runs of a key overlapped, a loser of a lease committed, or a key stays queued.
"""

from __future__ import annotations

import argparse
import os
import random
import secrets
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg

from tests.chaos.breaks import RULES, SCHEMA
from tests.chaos.record import FILL, HURRY, LEFT_QUEUED, TABLES, Verdict, judge
from tests.chaos.servers import FAST, IMMEDIATE, Servers, servers
from tests.chaos.trouble import Mishap, plan
from tests.chaos.watch import Watch
from tests.chaos.workers import ROOT, Slot

TTL_MS = 3_000
DRAIN_SECONDS = 150.0
READY_SECONDS = 120.0
STEP_SECONDS = 0.02


class Chaos:
    """One run."""

    def __init__(self, running: Servers, slots: list[Slot], say: Callable[[str], None]) -> None:
        self._servers = running
        self._slots = slots
        self._say = say
        self._maintenance: threading.Thread | None = None
        self.done: Counter[str] = Counter()

    def run(self, mishaps: list[Mishap], seconds: float) -> None:
        """Let them happen, and keep the processes running, for so long."""
        began = time.monotonic()
        ahead = list(mishaps)
        while (now := time.monotonic() - began) < seconds:
            while ahead and ahead[0].at <= now:
                self._happen(ahead.pop(0))
            self.keep()
        if self._maintenance is not None:
            self._maintenance.join()
        for slot in self._slots:
            slot.wake()

    def keep(self) -> None:
        """One look at every process."""
        for slot in self._slots:
            slot.keep()
        time.sleep(STEP_SECONDS)

    def _happen(self, mishap: Mishap) -> None:
        slot = self._slots[mishap.slot]
        if mishap.what.startswith("restart"):
            if self._maintenance is not None and self._maintenance.is_alive():
                return
            how = IMMEDIATE if self.done["restart the database"] % 2 else FAST
            self._maintenance = threading.Thread(
                target=self._servers.restart_broker if "broker" in mishap.what else self._servers.restart_postgres,
                args=(mishap.long if "broker" in mishap.what else how,),
            )
            self._maintenance.start()
        elif mishap.what == "kill":
            slot.kill()
        elif mishap.what == "flush the broker":
            self._servers.flush_broker()
        elif mishap.what == "cut connections":
            self._cut(mishap.lot)
        else:
            slot.freeze(mishap.long)
            if "heartbeat" in mishap.what:
                self._cut_heartbeat(slot.pid)
        self.done[mishap.what] += 1
        self._say(f"{mishap.at:6.2f} s  {mishap.what}")

    def _cut(self, lot: int) -> None:
        def cut(connection: psycopg.Connection[Any]) -> None:
            found = [
                pid
                for (pid,) in connection.execute(
                    "SELECT pid FROM pg_stat_activity WHERE usename = 'bc_owner' ORDER BY pid"
                )
            ]
            lots = random.Random(lot)  # noqa: S311 - a schedule, no secret
            chosen = [pid for pid in found if lots.random() < 0.4]
            connection.execute("SELECT pg_terminate_backend(pid) FROM unnest(%s::int[]) AS pid", [chosen])

        self._as_superuser(cut)

    def _cut_heartbeat(self, worker: int) -> None:
        self._as_superuser(
            lambda connection: connection.execute(
                "SELECT pg_terminate_backend(backend_pid) FROM compute_workers WHERE pid = %s", [worker]
            )
        )

    def _as_superuser(self, act: Callable[[psycopg.Connection[Any]], Any]) -> None:
        try:
            with self._servers.connect() as connection:
                act(connection)
        except psycopg.Error:
            # The database is being restarted, which is mishap enough.
            return


def _environment(running: Servers, seed: int, rule: str) -> dict[str, str]:
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("COMPUTE_", "CHAOS_", "DATABASE"))
    }
    return {
        **kept,
        "DJANGO_SETTINGS_MODULE": "tests.chaos.settings",
        "DATABASE_URL": running.postgres.url(),
        "CELERY_BROKER_URL": running.broker.url(),
        "C_FORCE_ROOT": "1",
        "CHAOS_SEED": str(seed),
        "CHAOS_TTL_MS": str(TTL_MS),
        "CHAOS_BREAK": rule,
        "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]),
    }


def _prepare(running: Servers, environment: dict[str, str], rule: str) -> None:
    subprocess.run(
        [sys.executable, "manage.py", "compute_migrate"],
        env=environment, cwd=ROOT, check=True, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    from tests.chaos.load import KEYS, KINDS

    with psycopg.connect(running.postgres.url(), autocommit=True) as connection:
        connection.execute(TABLES)
        for table in ("arena_wants", "arena_visits"):
            connection.execute(FILL.format(table=table), [list(KINDS), KEYS])
        if rule in SCHEMA:
            connection.execute(SCHEMA[rule])


def _wait_ready(running: Servers, chaos: Chaos, slots: list[Slot]) -> None:
    until = time.monotonic() + READY_SECONDS
    while True:
        chaos.keep()
        with running.connect() as connection:
            row = connection.execute("SELECT count(DISTINCT pid) FROM compute_workers").fetchone()
        if row is not None and row[0] >= len(slots):
            return
        if time.monotonic() > until:
            joined = 0 if row is None else row[0]
            raise SystemExit(
                f"Only {joined} of {len(slots)} workers joined within {READY_SECONDS:g} s; "
                f"their logs are in {_keep(slots)}."
            )


def _drain(running: Servers, chaos: Chaos) -> None:
    """Let everything that is queued be run."""
    until, hurry_at = time.monotonic() + DRAIN_SECONDS, 0.0
    with running.connect() as connection:
        while time.monotonic() < until:
            if time.monotonic() >= hurry_at:
                connection.execute(HURRY)
                hurry_at = time.monotonic() + 1.0
            row = connection.execute(LEFT_QUEUED).fetchone()
            if row is not None and row[0] == 0:
                return
            chaos.keep()


def hold(seconds: float, seed: int, *, workers: int, rule: str, say: Callable[[str], None]) -> Verdict:
    """Start everything, let it go wrong, drain, judge, and stop everything."""
    with tempfile.TemporaryDirectory(prefix="chaos-logs-") as logs, servers() as running:
        environment = _environment(running, seed, rule)
        os.environ.update(environment)
        # The producers stand in this process; the rule is left out where keys run.
        os.environ["CHAOS_BREAK"] = ""
        import django

        django.setup()
        from example_project import celery  # noqa: F401 - sends hints after commits
        from tests.chaos.load import Load

        _prepare(running, environment, rule)
        slots = [Slot(number, environment, Path(logs)) for number in range(workers)]
        chaos, load, watch = Chaos(running, slots, say), Load(seed), Watch(running.connect)
        try:
            _wait_ready(running, chaos, slots)
            say(f"{workers} workers joined")
            load.start()
            watch.start()
            chaos.run(plan(seed, seconds, workers, TTL_MS / 1_000), seconds)
            load.stop()
            say("draining")
            _drain(running, chaos)
        finally:
            load.stop()
            watch.stop()
            for slot in slots:
                slot.terminate()
            for slot in slots:
                slot.end()
            _close_own_connections()
        print(
            "mishaps: " + ", ".join(f"{count} x {what}" for what, count in sorted(chaos.done.items()))
            + f"; {sum(slot.starts for slot in slots)} processes started, {load.rolled_back} transactions rolled back, "
            f"{load.failed} failed"
        )  # fmt: skip
        with psycopg.connect(running.postgres.url(), autocommit=True) as connection:
            verdict = judge(connection, sum(slot.refusals() for slot in slots), watch)
        if not verdict.ok:
            say(f"the workers' logs are in {_keep(slots)}")
        return verdict


def _keep(slots: list[Slot]) -> Path:
    """Put the workers' logs where they outlast this run."""
    kept = Path(tempfile.mkdtemp(prefix="chaos-failed-"))
    for slot in slots:
        (kept / slot.log.name).write_bytes(slot.log.read_bytes() if slot.log.exists() else b"")
    return kept


def _close_own_connections() -> None:
    from django.db import connections

    from better_compute.engine.wakeup import rest

    rest()
    connections.close_all()


def main() -> int:
    """Parse, run, report."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument(
        "--seed", type=int, default=None, help="of the schedule and the load; printed, so it can be repeated"
    )
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--break", dest="rule", choices=sorted(RULES), default="", help="leave this rule out")
    parser.add_argument("--quiet", action="store_true", help="do not tell every mishap")
    options = parser.parse_args()
    seed = options.seed if options.seed is not None else secrets.randbelow(1_000_000)
    print(f"seed={seed} seconds={options.seconds:g} workers={options.workers}", flush=True)
    # Ctrl-C and a supervisor's SIGTERM both leave nothing behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    verdict = hold(
        options.seconds,
        seed,
        workers=options.workers,
        rule=options.rule,
        say=(lambda line: None) if options.quiet else lambda line: print(line, flush=True),
    )
    print("\n".join(verdict.lines()), flush=True)
    return 0 if verdict.ok else 1


if __name__ == "__main__":
    sys.exit(main())
