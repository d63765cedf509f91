"""A thread that runs only while it is told to: how several members can stand still inside one process.

Whoever tells an actor to go on waits until it stands still again, so exactly one of them runs at any time and what
happens is decided by who is told when, and by nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Semaphore, Thread
from typing import Final

#: Real seconds after which a thread that does not stand still again counts as hung, e.g. on a row lock.
HANG_SECONDS: Final = 60.0


class Crashed(BaseException):
    """Raised inside an actor to end it where it stands; no handler may catch it."""


class Actor:
    """A thread of its own that runs one command after the other.

    Parameters
    ----------
    name
        Of the thread.
    at_end
        Runs on the thread when it ends, to let go of what the thread holds.
    """

    def __init__(self, name: str, at_end: Callable[[], None] = lambda: None) -> None:
        self._go = Semaphore(0)
        self._still = Semaphore(0)
        self._command: Callable[[], None] | None = None
        self._crashing = False
        self._error: BaseException | None = None
        self._at_end = at_end
        #: Where it stands inside its command; None when it has none.
        self.standing: str | None = None
        self.ended = False
        self._thread = Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def start(self, command: Callable[[], None]) -> str | None:
        """Run ``command`` until it stands still somewhere; returns where, or None when it has ended.

        Raises
        ------
        RuntimeError
            When an earlier command has not ended, or the thread hangs.
        Exception
            What the command raised.
        """
        if self.standing is not None or self.ended:
            raise RuntimeError(f"It stands at {self.standing!r}; let it go on, or crash it, first.")
        self._command = command
        return self.go_on()

    def go_on(self) -> str | None:
        """Let it run on from where it stands; returns where it stands then, or None when the command has ended."""
        self._go.release()
        if not self._still.acquire(timeout=HANG_SECONDS):
            raise RuntimeError(f"{self._thread.name} hangs; last it stood at {self.standing!r}.")
        error, self._error = self._error, None
        if error is not None:
            raise error
        return self.standing

    def stand(self, where: str) -> None:
        """On the actor's thread: stand still at ``where`` until told to go on.

        Raises
        ------
        Crashed
            When it was told to crash instead.
        """
        self.standing = where
        self._still.release()
        self._go.acquire()
        self.standing = None
        if self._crashing:
            raise Crashed

    def crash(self) -> None:
        """End it where it stands."""
        if self.ended:
            return
        self._crashing = True
        self._command = None if self.standing is None else self._command
        self.go_on()
        self._thread.join(HANG_SECONDS)

    def _run(self) -> None:
        try:
            while True:
                self._go.acquire()
                if self._crashing or self._command is None:
                    return
                try:
                    self._command()
                except Crashed:
                    return
                except BaseException as error:
                    self._error = error
                self._command = None
                self._still.release()
        finally:
            self.standing, self.ended = None, True
            self._at_end()
            self._still.release()
