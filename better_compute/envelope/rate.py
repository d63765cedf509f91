"""Rate limits: a token bucket for every principal and every tenant, in a Redis-compatible store.

A bucket holds up to ``burst`` tokens and refills steadily; a call takes one from the bucket of its principal and
one from that of its tenant, or none at all. The store only ever limits: without it calls pass.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from threading import Event, Lock, Thread
from typing import Any, Final
from urllib.parse import urlsplit

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from better_compute import conf
from better_compute.contract.errors import ComputeError, ErrorCode
from better_compute.contract.principals import Principal

#: Seconds that a call may wait for the store.
STORE_TIMEOUT_S: Final = 0.05
#: Seconds for which a store that failed is not asked again.
STORE_REST_S: Final = 5.0
#: Seconds from the first try on in which calls wait for it, each for no longer than for an answer.
FIRST_TRY_S: Final = 0.5

_log = logging.getLogger("better_compute.call")

#: Names of the buckets, of which ``<prefix><principal or tenant>:<id>`` is one.
PREFIX: Final = "compute:rate:"
#: Where buckets that ran empty are noted, with the time in milliseconds and their parts, lest two be at the same; the
#: last thousand of a day.
LIMITED: Final = "compute:rate:limited"

# One round trip and one clock, the store's own. The last key is that of the note; ARGV holds rate (tokens a
# millisecond) and burst of each bucket. A refused call notes the buckets that were empty.
# Answers: whether it was taken, and what is left, how long until one more, and the size of the scarcest bucket.
_TAKE: Final = """
local time = redis.call('TIME')
local precise = time[1] * 1000 + time[2] / 1000
local now = math.floor(precise)
local levels, scarcest, taken = {}, 1, 1
local noted = table.remove(KEYS)
for i, key in ipairs(KEYS) do
  local rate, burst = tonumber(ARGV[2 * i - 1]), tonumber(ARGV[2 * i])
  local stored = redis.call('HMGET', key, 'level', 'at')
  local level, at = tonumber(stored[1]) or burst, tonumber(stored[2]) or now
  levels[i] = math.min(burst, level + math.max(0, now - at) * rate)
  if levels[i] < 1 then taken = 0 end
  if levels[i] < levels[scarcest] then scarcest = i end
end
for i, key in ipairs(KEYS) do
  local rate, burst = tonumber(ARGV[2 * i - 1]), tonumber(ARGV[2 * i])
  if taken == 0 and levels[i] < 1 then redis.call('ZADD', noted, precise, key) end
  levels[i] = levels[i] - taken
  redis.call('HSET', key, 'level', tostring(levels[i]), 'at', now)
  redis.call('PEXPIRE', key, math.ceil(burst / rate) + 1000)
end
if taken == 0 then
  redis.call('ZREMRANGEBYRANK', noted, 0, -1001)
  redis.call('PEXPIRE', noted, 86400000)
end
local rate, burst = tonumber(ARGV[2 * scarcest - 1]), tonumber(ARGV[2 * scarcest])
local wait = math.ceil(math.max(0, 1 - levels[scarcest]) / rate)
return {taken, math.floor(levels[scarcest]), wait, burst}
"""


@dataclass(frozen=True, slots=True)
class Level:
    """What is left after a call, of the scarcest bucket."""

    limit: int
    remaining: int
    #: Seconds until one more call may be made; zero while some remain.
    reset_s: int

    def headers(self) -> dict[str, str]:
        """The ``RateLimit-*`` headers."""
        return {
            "RateLimit-Limit": str(self.limit),
            "RateLimit-Remaining": str(self.remaining),
            "RateLimit-Reset": str(self.reset_s),
        }


@dataclass(frozen=True, slots=True)
class Limited:
    """A principal or a tenant whose call was refused because its bucket was empty, and when that was last."""

    what: str
    name: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Standing:
    """The limits that hold, in calls a minute and at once; zero is no limit. ``limited`` is None without a store."""

    store: str
    answers: bool
    principal_per_minute: int
    principal_burst: int
    tenant_per_minute: int
    tenant_burst: int
    limited: list[Limited] | None


class Limiter:
    """The buckets in one store.

    Whether the store answers is found out on a thread of its own, since even to look up its name may take long; calls
    are counted only while it does. One that fails is left alone for :data:`STORE_REST_S`, and then tried again there.
    """

    def __init__(self, url: str) -> None:
        self._store: Any = redis.Redis.from_url(
            url,
            socket_timeout=STORE_TIMEOUT_S,
            socket_connect_timeout=STORE_TIMEOUT_S,
            # Each attempt more would be a wait more.
            retry=Retry(NoBackoff(), 0),
        )
        self._take = self._store.register_script(_TAKE)
        self._answers = False
        self._rests_until = 0.0
        self._unknown_until = 0.0
        self._trying: Event | None = None
        self._lock = Lock()

    def take(self, buckets: dict[str, tuple[int, int]]) -> tuple[bool, Level] | None:
        """Take one token of each bucket (calls a minute, burst), or of none; None when the store does not answer."""
        if not self._answers and not self._try():
            return None
        arguments = [number for per_minute, burst in buckets.values() for number in (per_minute / 60_000, burst)]
        # Every exception: what a store that lies makes of its client, and of these numbers, is not known beforehand.
        try:
            taken, remaining, wait_ms, burst = self._take(keys=[*buckets, LIMITED], args=arguments)
            return bool(taken), Level(int(burst), int(remaining), -(-int(wait_ms) // 1000))
        except Exception as error:
            self._rest(error)
            return None

    def _try(self) -> bool:
        """Have the store tried once it may be, and tell whether it answers.

        Only the first calls of a process wait for that, while nothing is known yet.
        """
        now = time.monotonic()
        with self._lock:
            if self._trying is None and not self._answers and now >= self._rests_until:
                self._trying = Event()
                self._unknown_until = self._unknown_until or now + FIRST_TRY_S
                Thread(target=self._ping, args=(self._trying,), name="compute-rate-store", daemon=True).start()
            trying = self._trying
        if trying is not None and self._rests_until == 0.0 and now < self._unknown_until:
            trying.wait(STORE_TIMEOUT_S)
        return self._answers

    def _ping(self, done: Event) -> None:
        try:
            self._store.ping()
            self._answers = True
        except Exception as error:
            self._rest(error)
        finally:
            with self._lock:
                self._trying = None
            done.set()

    def limited(self, limit: int) -> list[Limited] | None:
        """The buckets that ran empty last, newest first; None when the store does not answer."""
        try:
            noted = self._store.zrevrange(LIMITED, 0, limit - 1, withscores=True)
            return [_limited(bucket.decode("utf-8", "replace"), at_ms) for bucket, at_ms in noted]
        except Exception:
            return None

    def _rest(self, error: Exception) -> None:
        with self._lock:
            if time.monotonic() >= self._rests_until:
                _log.warning("Rate limits are off for %s s: the store failed (%s).", STORE_REST_S, type(error).__name__)
            self._answers = False
            self._rests_until = time.monotonic() + STORE_REST_S


def _limited(bucket: str, at_ms: float) -> Limited:
    what, _, name = bucket.removeprefix(PREFIX).partition(":")
    return Limited(what, name, datetime.fromtimestamp(at_ms / 1000, UTC))


def standing(limit: int = 100) -> Standing:
    """The limits, and who met one in the last day as far as the store remembers; times are the store's."""
    settings = conf.current().rate
    limited = _limiter(settings.store_url).limited(limit) if settings.store_url else None
    address = urlsplit(settings.store_url)
    return Standing(
        store=f"{address.scheme}://{address.hostname}:{address.port or 6379}{address.path}" if address.hostname else "",
        answers=limited is not None,
        principal_per_minute=settings.principal_per_minute,
        principal_burst=settings.principal_burst or settings.principal_per_minute,
        tenant_per_minute=settings.tenant_per_minute,
        tenant_burst=settings.tenant_burst or settings.tenant_per_minute,
        limited=limited,
    )


@cache
def _limiter(url: str) -> Limiter:
    return Limiter(url)


def take(principal: Principal) -> Level | None:
    """Count one call of ``principal``; None when no limit is set or the store does not answer.

    Raises
    ------
    ComputeError
        RATE_LIMITED with the seconds to wait.
    """
    settings = conf.current().rate
    buckets = {}
    if settings.principal_per_minute:
        name = f"{PREFIX}principal:{principal.id}"
        buckets[name] = (settings.principal_per_minute, settings.principal_burst or settings.principal_per_minute)
    if settings.tenant_per_minute and principal.tenant_id is not None:
        name = f"{PREFIX}tenant:{principal.tenant_id}"
        buckets[name] = (settings.tenant_per_minute, settings.tenant_burst or settings.tenant_per_minute)
    if not settings.store_url or not buckets:
        return None
    answer = _limiter(settings.store_url).take(buckets)
    if answer is None:
        return None
    taken, level = answer
    if not taken:
        raise RateLimited(level)
    return level


class RateLimited(ComputeError):
    """A call over its limit; carries the level for the headers."""

    def __init__(self, level: Level) -> None:
        super().__init__(
            ErrorCode.RATE_LIMITED,
            f"More calls were made than the limit of {level.limit} at once allows.",
            mend=f"Call again in {max(1, level.reset_s)} s, and less often.",
            retry_after=max(1, level.reset_s),
        )
        self.level = level
