"""The database's clock: the only one that decides when a lease ends or a key is due."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, cast

from django.db import connections
from django.db.models import DateTimeField, Func

from better_compute import conf
from better_compute.contract.errors import ComputeError, ErrorCode


class ComputeNow(Func):
    """``compute_now()`` for ``db_default``: never ``now()``, which stands still within a transaction."""

    function = "compute_now"
    arity = 0

    def __init__(self, **extra: Any) -> None:
        super().__init__(output_field=DateTimeField(), **extra)


def now(using: str | None = None) -> datetime:
    """The time of this statement on the database's clock plus the settable offset."""
    with connections[using or conf.current().database].cursor() as cursor:
        cursor.execute("SELECT compute_now()")
        return cast(datetime, cursor.fetchone()[0])


def set_offset(offset: timedelta, using: str | None = None) -> None:
    """Move ``compute_now()`` for every process of this database; for tests and simulation."""
    with connections[using or conf.current().database].cursor() as cursor:
        cursor.execute("UPDATE compute_clock SET clock_offset = %s::interval", [f"{offset.total_seconds()} s"])


def advance_offset(by: timedelta, using: str | None = None) -> None:
    """Move ``compute_now()`` ahead of where it stands, by ``by``."""
    with connections[using or conf.current().database].cursor() as cursor:
        cursor.execute(
            "UPDATE compute_clock SET clock_offset = clock_offset + %s::interval", [f"{by.total_seconds()} s"]
        )


def anchor(using: str | None = None) -> datetime:
    """Record that a process starts now, and refuse a clock that went back.

    Raises
    ------
    ComputeError
        INVALID_CONFIG when the clock is further behind the last anchor than ``CLOCK_TOLERANCE_MS``.
    """
    settings = conf.current()
    tolerance = timedelta(milliseconds=settings.clock_tolerance_ms)
    with connections[using or settings.database].cursor() as cursor:
        cursor.execute("SELECT compute_now(), anchored_at FROM compute_clock")
        time, anchored_at = cursor.fetchone()
        if anchored_at is not None and time < anchored_at - tolerance:
            raise ComputeError(
                ErrorCode.INVALID_CONFIG,
                f"The database's clock says {time.isoformat()}, behind {anchored_at.isoformat()} at which a "
                f"process last started.",
                mend="Set the clock of the database host right (NTP), then start again.",
            )
        cursor.execute("UPDATE compute_clock SET anchored_at = GREATEST(anchored_at, compute_now())")
        return cast(datetime, time)
