"""``COMPUTE = {...}`` of the host's settings, read once, typed and checked.

Core keys are upper case; every other key is a hosted module's name and holds that module's own options.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any
from urllib.parse import urlsplit

import msgspec
from django.conf import settings as django_settings
from django.core.signals import setting_changed

from better_compute.contract.errors import ComputeError, ErrorCode

#: At least one.
Positive = Annotated[int, msgspec.Meta(ge=1)]
#: Zero or more.
Count = Annotated[int, msgspec.Meta(ge=0)]


class Worker(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="upper"):
    """How the worker runtime keeps leases and looks for work. Times are in milliseconds."""

    #: How long a lease lives without a heartbeat.
    ttl_ms: Positive = 10_000
    #: Time between heartbeats.
    tick_ms: Positive = 2_000
    #: Time after which a worker looks for work although nothing woke it.
    poll_ms: Positive = 1_000
    #: Time after which every node and pool is enqueued again, plus up to as much jitter.
    resync_ms: Positive = 300_000
    #: Most keys that one claim takes, and one ``run_many``; five times as many of a kind whose keys take under 50 us.
    batch: Positive = 100
    #: Runs of one kind at a time in one process; one thread more is kept for the other kinds.
    threads: Positive = 4
    #: A run longer than this is reported with its stack.
    hung_ms: Positive = 60_000
    #: How long a stopping worker waits for the keys it is running.
    grace_ms: Count = 10_000
    #: Whether the database is reached through a pooler in transaction mode: then nothing is set for a session, nothing
    #: is prepared, and nobody listens; work is found by hints and polls.
    pooled: bool = False

    @property
    def idle_ms(self) -> int:
        """How long a fenced transaction may send nothing, or wait for a lock: half a lease's life."""
        return max(1, self.ttl_ms // 2)

    def __post_init__(self) -> None:
        if 2 * self.tick_ms > self.ttl_ms:
            raise ValueError(
                f"a TICK_MS of {self.tick_ms} leaves no second heartbeat within a TTL_MS of {self.ttl_ms}; "
                "TICK_MS must be at most half of it"
            )


class Scheduler(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="upper"):
    """What the placer is given besides the modules' own extensions."""

    #: Scheduler plugins.
    plugins: tuple[Any, ...] = ()


class Sinks(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="upper"):
    """Sinks given in the settings besides the modules' own extensions."""

    #: Event sinks.
    events: tuple[Any, ...] = ()
    #: Audit sinks; one of them makes ``audit-sinks`` hosted.
    audit: tuple[Any, ...] = ()
    #: Must stay empty: usage goes through the IAM bridge.
    usage: tuple[Any, ...] = ()


class Call(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="upper"):
    """Bounds of one call. Sizes in bytes, times in milliseconds."""

    #: Largest body of a call.
    max_body_bytes: Positive = 1_048_576
    #: Longest that one statement of a call may run.
    statement_timeout_ms: Positive = 15_000
    #: How long the answer of a call with an Idempotency-Key is kept.
    idempotency_retention_ms: Positive = 86_400_000
    #: How long the cursor of a list's next page is good.
    cursor_lifetime_ms: Positive = 86_400_000


class Retention(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="upper"):
    """How long what only grows is kept. Times are in milliseconds; zero keeps for ever."""

    #: Events of the outbox, dropped by whole days: 30 days. The database keeps them for a day at least, and as long as
    #: a reader has not had them.
    outbox_ms: Count = 2_592_000_000
    #: Audit records, dropped by whole months: 400 days. The database keeps them for 90 days at least, and as long as a
    #: reader has not had them.
    audit_ms: Count = 34_560_000_000
    #: Tokens that were revoked or have expired: 90 days after their end.
    tokens_ms: Count = 7_776_000_000


class Rate(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="upper"):
    """How often may be called over HTTP; zero is no limit. A burst of zero is a minute's worth."""

    #: Address of a Redis-compatible store, e.g. ``redis://localhost:6379/0``; without it nothing is limited.
    store_url: str = ""
    principal_per_minute: Count = 0
    principal_burst: Count = 0
    tenant_per_minute: Count = 0
    tenant_burst: Count = 0

    def __post_init__(self) -> None:
        if not self.store_url:
            return
        try:
            sound = urlsplit(self.store_url).scheme in ("redis", "rediss", "unix")
            sound = sound and urlsplit(self.store_url).port != 0
        except ValueError:
            sound = False
        if not sound:
            # The address may hold a password.
            raise ValueError("STORE_URL is no address of a Redis-compatible store; write redis://host:6379/0")


class Observe(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="upper"):
    """Who may see /metrics and what keeps a process from being ready; by default nobody."""

    #: Bearer token that a monitoring system sends.
    token: str = ""
    #: Whether callers on the loopback interface may see it without one.
    loopback: bool = False
    #: Address and port at which a worker serves /livez, /readyz and /metrics itself; port 0 serves nothing.
    host: str = "127.0.0.1"
    port: int = 0


class Settings(msgspec.Struct, frozen=True, rename="upper"):
    """The core's settings with their defaults."""

    #: Alias that methods and workers use.
    database: str = "default"
    #: Alias that migrates; a direct connection of the owner role. Defaults to ``database``.
    migration_database: str = ""
    #: Role that serves; ``compute_migrate`` grants it what it needs and nothing more.
    app_role: str = ""
    #: Whether a process migrates when it starts, instead of refusing while a migration is pending.
    migrate_on_start: bool = False
    #: Whether plain ``migrate`` takes the lock, the order and the ledger of ``compute_migrate``.
    wrap_migrate: bool = True
    #: How far the database's clock may lie behind the last start.
    clock_tolerance_ms: Count = 5_000
    #: Secrets that seal values, newest first, each of at least 32 characters; earlier ones still open what they sealed.
    secret: tuple[Annotated[str, msgspec.Meta(min_length=32)], ...] = ()
    #: Where callers reach the API.
    base_url: str = ""
    #: Where browsers are to reach streams; nothing of this release has one, so nothing reads it.
    stream_url: str = ""
    #: Dotted path of an Authorizer; the default judges by Django permissions.
    iam: str = ""
    #: Drivers given besides the modules' own extensions.
    drivers: tuple[Any, ...] = ()
    #: Attestors given besides the modules' own extensions.
    attestors: tuple[Any, ...] = ()
    #: Options of the tunnels module, which is hosted when this is set.
    tunnels: dict[str, Any] | None = None
    scheduler: Scheduler = Scheduler()
    sinks: Sinks = Sinks()
    worker: Worker = Worker()
    call: Call = Call()
    retention: Retention = Retention()
    rate: Rate = Rate()
    observe: Observe = Observe()

    @property
    def owner_database(self) -> str:
        """The alias that migrates."""
        return self.migration_database or self.database


#: Names of the core's own keys.
CORE_KEYS = frozenset(field.encode_name for field in msgspec.structs.fields(Settings))


def raw() -> dict[str, Any]:
    """The host's dictionary as it stands; empty when it set none.

    Raises
    ------
    ComputeError
        INVALID_CONFIG when ``COMPUTE`` is no dictionary.
    """
    compute: object = getattr(django_settings, "COMPUTE", {})
    if not isinstance(compute, Mapping):
        raise ComputeError(
            ErrorCode.INVALID_CONFIG,
            f"COMPUTE in the settings is a {type(compute).__name__}, which is no dictionary.",
            mend="Write COMPUTE = {}.",
        )
    return dict(compute)


@cache
def current() -> Settings:
    """The core's settings.

    Raises
    ------
    ComputeError
        INVALID_CONFIG naming the key and what it must be.
    """
    core = {key: value for key, value in raw().items() if key in CORE_KEYS}
    try:
        return msgspec.convert(core, Settings, strict=True)
    except msgspec.ValidationError as error:
        raise ComputeError(
            ErrorCode.INVALID_CONFIG,
            f"COMPUTE in the settings: {error}.",
            mend="Correct the key that the path names.",
        ) from None


def _forget(*, setting: str, **_: Any) -> None:
    if setting == "COMPUTE":
        current.cache_clear()


setting_changed.connect(_forget, dispatch_uid="better_compute.conf")
