"""Watches: iterators over what changes, for blocking code and for ``asyncio``.

Both look again over REST today. A stream takes the place of looking where an installation serves one, behind the same
iterators.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Protocol, Self, TypeVar

import msgspec

from better_compute.client.options import Options
from better_compute.client.watching import MOST_ITEMS, WHOLE, Change, Pace, Shown, Watching, by_id

if TYPE_CHECKING:
    from better_compute.client.transport import AsyncTransport

T = TypeVar("T")

_WATCHING = Watching()
_OPTIONS = Options()


class Asker(Protocol):
    """What makes calls: a :class:`~better_compute.client.Transport`, or the server itself."""

    def call(self, method: str, input: Any, answer: Any, *, mutation: bool, options: Options) -> Any:
        """Call ``method``, and return its answer as ``answer``."""


class _Watch(Generic[T]):
    """What both have: what is asked, and what of it was shown."""

    def __init__(
        self,
        method: str,
        input: Mapping[str, Any],
        answer: Any,
        *,
        listed: bool,
        identify: Callable[[Any], str] | None,
        watching: Watching,
        options: Options,
    ) -> None:
        self._method, self._answer = method, answer
        self._input = {name: value for name, value in input.items() if value is not msgspec.UNSET}
        self._listed, self._identify, self._options = listed, identify, options
        self._shown = Shown(method, self._input, watching.since)
        self._pace = Pace(watching)
        self._pending: deque[tuple[Change[Any], str]] = deque()
        self._wait_s = 0.0

    @property
    def position(self) -> str:
        """Where ``Watching(since=...)`` goes on: behind what this watch showed last."""
        return self._shown.position

    def _show(self) -> Any:
        change, digest = self._pending.popleft()
        self._shown.count(change, digest)
        return change if self._listed else change.item

    def _looked(self, look: _Look) -> None:
        found = by_id(look.answer, self._identify) if self._listed else {WHOLE: look.answer}
        self._pending.extend(self._shown.changes(found))
        self._wait_s = self._pace.after(bool(self._pending))

    def _failed(self, error: Exception) -> None:
        self._wait_s = self._pace.after_failure(error)

    def _begin(self) -> _Look:
        return _Look(self._input, self._input, [] if self._listed else None)

    def _asked(self, look: _Look) -> dict[str, Any]:
        """How the asker is called for the next answer of a look."""
        return {
            "method": self._method,
            "input": look.wanted,
            "answer": self._answer,
            "mutation": False,
            "options": self._options,
        }

    def _late(self, timeout_s: float | None) -> TimeoutError:
        within = "" if timeout_s is None else f" within {timeout_s:g} s"
        return TimeoutError(f"{self._method} did not answer what was waited for{within}.")


@dataclass(slots=True)
class _Look:
    """One look: the answer, or of a list the items of its pages, asked for one after the other."""

    input: Mapping[str, Any]
    #: The input of what is to be asked next; None when the look is over.
    wanted: Mapping[str, Any] | None
    answer: Any

    def take(self, answer: Any) -> None:
        """Add what was answered."""
        self.wanted = None
        if self.answer is None:
            self.answer = answer
            return
        self.answer += _member(answer, "items", "items")
        cursor = _member(answer, "next_cursor", "nextCursor")
        if cursor and len(self.answer) <= MOST_ITEMS:
            self.wanted = {**self.input, "cursor": cursor}


def _member(page: Any, name: str, wire: str) -> Any:
    return page.get(wire) if isinstance(page, dict) else getattr(page, name)


class Watch(_Watch[T]):
    """Iterates over what changes, blocking while nothing does; the first look shows everything.

    A list shows :class:`~better_compute.client.watching.Change`, anything else its answer. ``stop()``, from any thread,
    ends the iteration. A refusal that waiting does not mend, NotFound for instance, is raised.
    """

    def __init__(
        self,
        transport: Asker,
        method: str,
        input: Mapping[str, Any],
        answer: Any = Any,
        *,
        listed: bool = False,
        identify: Callable[[Any], str] | None = None,
        watching: Watching = _WATCHING,
        options: Options = _OPTIONS,
    ) -> None:
        super().__init__(method, input, answer, listed=listed, identify=identify, watching=watching, options=options)
        self._transport = transport
        self._stop = threading.Event()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> T:
        return self._next(None)

    def _next(self, until: float | None) -> T:
        while not self._stop.is_set():
            if self._pending:
                return self._show()  # type: ignore[no-any-return]
            left = self._wait_s if until is None else min(self._wait_s, until - time.monotonic())
            if left < self._wait_s and self._stop.wait(max(left, 0.0)) is False:
                raise self._late(None)
            if self._stop.wait(left):
                break
            look = self._begin()
            try:
                while look.wanted is not None and not self._stop.is_set():
                    look.take(self._transport.call(**self._asked(look)))
                self._looked(look)
            except Exception as error:
                self._failed(error)
        raise StopIteration

    def until(self, reached: Callable[[T], bool], *, timeout_s: float | None = None) -> T:
        """The first thing shown for which ``reached`` holds. Raises TimeoutError, and when it is stopped before."""
        until = None if timeout_s is None else time.monotonic() + timeout_s
        try:
            while True:
                shown = self._next(until)
                if reached(shown):
                    return shown
        except (StopIteration, TimeoutError):
            raise self._late(timeout_s) from None

    def stop(self) -> None:
        """End the iteration, one that waits too."""
        self._stop.set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


class AsyncWatch(_Watch[T]):
    """As :class:`Watch`, for ``asyncio``; cancelling the task that iterates ends it at once."""

    def __init__(
        self,
        transport: AsyncTransport,
        method: str,
        input: Mapping[str, Any],
        answer: Any = Any,
        *,
        listed: bool = False,
        identify: Callable[[Any], str] | None = None,
        watching: Watching = _WATCHING,
        options: Options = _OPTIONS,
    ) -> None:
        super().__init__(method, input, answer, listed=listed, identify=identify, watching=watching, options=options)
        self._transport = transport
        self._stop = asyncio.Event()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        while not self._stop.is_set():
            if self._pending:
                return self._show()  # type: ignore[no-any-return]
            if await self._stopped_within(self._wait_s):
                break
            look = self._begin()
            try:
                while look.wanted is not None and not self._stop.is_set():
                    look.take(await self._transport.call(**self._asked(look)))
                self._looked(look)
            except Exception as error:
                self._failed(error)
        raise StopAsyncIteration

    async def _stopped_within(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                return await self._stop.wait()
        except TimeoutError:
            return False

    async def until(self, reached: Callable[[T], bool], *, timeout_s: float | None = None) -> T:
        """See :meth:`Watch.until`."""
        try:
            async with asyncio.timeout(timeout_s):
                async for shown in self:
                    if reached(shown):
                        return shown
        except TimeoutError:
            raise self._late(timeout_s) from None
        raise self._late(timeout_s)

    def stop(self) -> None:
        """End the iteration, one that waits too; from the loop's own thread."""
        self._stop.set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.stop()
