"""``python -m benchmarks [--only GROUP] [--full] [--strict]``: measure, print, write ``results.json``.

Exit code 1 when a figure that is due was not measured. A bar that is missed is printed as MISSED and
changes the exit code only with ``--strict``: whether a bar holds depends on the machine, whether a figure
was measured does not.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import msgspec

from benchmarks import due, results_file, table
from benchmarks.database import own_database
from benchmarks.harness import Result, Samples
from benchmarks.services import services

HERE: Final = Path(__file__).parent
RESULTS: Final = HERE / "results.json"
#: Longest a group may take without --full, in seconds.
GROUP_SECONDS: Final = 300


def arguments(argv: list[str] | None = None) -> argparse.Namespace:
    """Read the command line; ``ONLY`` and ``FULL`` of the environment are its defaults."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=(__doc__ or "").split("\n\n")[1])
    parser.add_argument("--only", choices=sorted(due.groups()), default=os.environ.get("ONLY") or None, metavar="GROUP")
    parser.add_argument("--full", action="store_true", default=os.environ.get("FULL", "") not in ("", "0"))
    parser.add_argument("--strict", action="store_true", help="exit 1 for a missed bar too")
    parsed = parser.parse_args(argv)
    if parsed.only is not None and parsed.only not in due.groups():
        parser.error(f"ONLY={parsed.only} is no group; choose from {', '.join(sorted(due.groups()))}")
    return parsed


def run_group(group: str, url: str, broker: str, *, full: bool) -> dict[str, Any]:
    """Measure one group in a process of its own, on a database of its own.

    What it measured comes back through ``results/<group>.json``, raw samples included.
    """
    out = HERE / "results" / f"{group}.json"
    out.unlink(missing_ok=True)
    with own_database(url, group) as database:
        environment = {
            **os.environ,
            "DATABASE_URL": database,
            "CELERY_BROKER_URL": broker,
            "DJANGO_SETTINGS_MODULE": "benchmarks.settings",
        }
        command = [sys.executable, "-m", "benchmarks.run_group", group, str(out), *(["--full"] if full else [])]
        try:
            subprocess.run(command, env=environment, check=False, timeout=None if full else GROUP_SECONDS)
        except subprocess.TimeoutExpired:
            print(f"{group}: stopped after {GROUP_SECONDS} s", file=sys.stderr)
    return msgspec.json.decode(out.read_bytes()) if out.exists() else {"results": [], "failed": {}, "contests": []}


def main(argv: list[str] | None = None) -> int:
    """Run what was asked for and return the exit code."""
    options = arguments(argv)
    groups = [options.only] if options.only else list(due.groups())
    results: list[Result] = []
    failed: dict[str, str] = {}
    with services() as running:
        for group in groups:
            print(f"== {group}: {running.postgresql} ==", flush=True)
            ran = run_group(group, running.database_url, running.broker_url, full=options.full)
            measured = msgspec.convert(ran["results"], list[Result])
            results += measured
            failed |= ran["failed"]
            for name in results_file.missing(due.figures(group, full=options.full), measured):
                failed.setdefault(name, "not measured: the group ended before it")
            print(table.configuration([_samples(contest) for contest in ran["contests"]]), flush=True)
    results_file.write(RESULTS, results_file.merge(results_file.read(RESULTS), groups, results))
    print(table.render(results, failed))
    missed = [result.name for result in results if not result.holds]
    print(f"\n{len(results)} figures measured, {len(missed)} MISSED, {len(failed)} FAILED.")
    print(f"Written: {os.path.relpath(RESULTS)}")
    return 1 if failed or (options.strict and missed) else 0


def _samples(contest: dict[str, Any]) -> Samples:
    contestants = contest["contestants"]
    return Samples(
        contest["contest"],
        contest["unit"],
        {name: one["samples"] for name, one in contestants.items()},
        {name: one["configuration"] for name, one in contestants.items() if one["configuration"]},
    )


if __name__ == "__main__":
    # Ended from outside, it still drops its databases and stops its servers.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sys.exit(main())
