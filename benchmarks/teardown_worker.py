"""Tears deleted tenants down until its input is closed: a worker's reconciler in a process of its own."""

from __future__ import annotations

import select
import sys
import time

import django

#: Between batches that found nothing to do.
_IDLE_S = 0.02


def main() -> None:
    """Step the reconciler; a line on the input, or its end, stops it."""
    django.setup()
    from better_compute import compute

    print("ready", flush=True)
    while not select.select([sys.stdin], [], [], 0)[0]:
        if not compute.jobs["tenancy"].tick():
            time.sleep(_IDLE_S)


if __name__ == "__main__":
    main()
