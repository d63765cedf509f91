"""Measures one group in this process: ``python -m benchmarks.run_group GROUP OUT [--full]``."""

from __future__ import annotations

import platform
import sys
from dataclasses import asdict
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from time import monotonic
from typing import Any, Final

import django

from benchmarks import results_file
from benchmarks.harness import GroupRun

#: For how long rounds are added without --full, which leaves the last of them and the end time to finish.
MEASURING_SECONDS: Final = 220


def document(group: str, run: GroupRun) -> dict[str, Any]:
    """What ``results/<group>.json`` holds: figures, failures and every raw sample."""
    return {
        "group": group,
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "django": django.get_version(),
        "machine": platform.machine(),
        "results": [asdict(result) for result in run.results],
        "failed": dict(run.failed),
        "contests": [samples.document() for samples in run.samples],
    }


def main(group: str, out: Path, *, full: bool, seconds: float | None = None) -> None:
    """Prepare the group, measure it within about ``seconds``, write ``out``."""
    until = None if seconds is None else monotonic() + seconds
    django.setup()
    module = import_module(f"benchmarks.groups.{group}")
    with module.prepared(full=full) as prepared:
        run: GroupRun = prepared.run(lambda line: print(f"  {line}", flush=True), until)
    results_file.write(out, document(group, run))


if __name__ == "__main__":
    full = "--full" in sys.argv[3:]
    main(sys.argv[1], Path(sys.argv[2]), full=full, seconds=None if full else MEASURING_SECONDS)
