"""Rate limits: a token bucket for every principal and every tenant, in a Redis-compatible store.

A bucket holds up to ``burst`` tokens and refills steadily; a call takes one from the bucket of its principal and
one from that of its tenant, or none at all. The store only ever limits: without it calls pass.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from functools import cache
from threading import Lock
from typing import Any, Final

import redis

from better_compute import conf
from better_compute.contract.errors import ComputeError, ErrorCode
from better_compute.contract.ports import Principal

#: Seconds that a call may wait for the store.
STORE_TIMEOUT_S: Final = 0.05
#: Seconds for which a store that failed is not asked again.
STORE_REST_S: Final = 5.0

_log = logging.getLogger("better_compute.call")

# One round trip and one clock, the store's own. ARGV holds rate (tokens a millisecond) and burst of each bucket.
# Answers: whether it was taken, and what is left, how long until one more, and the size of the scarcest bucket.
_TAKE: Final = """
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local levels, scarcest, taken = {}, 1, 1
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
  levels[i] = levels[i] - taken
  redis.call('HSET', key, 'level', tostring(levels[i]), 'at', now)
  redis.call('PEXPIRE', key, math.ceil(burst / rate) + 1000)
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


class Limiter:
    """The buckets in one store."""

    def __init__(self, url: str) -> None:
        self._store: Any = redis.Redis.from_url(
            url, socket_timeout=STORE_TIMEOUT_S, socket_connect_timeout=STORE_TIMEOUT_S
        )
        self._take = self._store.register_script(_TAKE)
        self._rests_until = 0.0
        self._lock = Lock()

    def take(self, buckets: dict[str, tuple[int, int]]) -> tuple[bool, Level] | None:
        """Take one token of each bucket (calls a minute, burst), or of none; None when the store does not answer."""
        if time.monotonic() < self._rests_until:
            return None
        arguments = [number for per_minute, burst in buckets.values() for number in (per_minute / 60_000, burst)]
        try:
            taken, remaining, wait_ms, burst = self._take(keys=list(buckets), args=arguments)
        except redis.RedisError as error:
            self._rest(error)
            return None
        return bool(taken), Level(int(burst), int(remaining), -(-int(wait_ms) // 1000))

    def _rest(self, error: Exception) -> None:
        with self._lock:
            if time.monotonic() >= self._rests_until:
                _log.warning("Rate limits are off for %s s: the store failed (%s).", STORE_REST_S, type(error).__name__)
            self._rests_until = time.monotonic() + STORE_REST_S


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
        name = f"compute:rate:principal:{principal.id}"
        buckets[name] = (settings.principal_per_minute, settings.principal_burst or settings.principal_per_minute)
    if settings.tenant_per_minute and principal.tenant_id is not None:
        name = f"compute:rate:tenant:{principal.tenant_id}"
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
