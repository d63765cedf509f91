"""Shows how long work goes: on a terminal one line that is drawn anew, elsewhere a line for whatever changed."""

from __future__ import annotations

import os
import sys
import threading
import time
from typing import IO, Any, Final, Self

#: Width of the bar in characters, and seconds between two drawings.
BAR: Final = 24
TICK_S: Final = 0.25
#: Columns of a terminal that does not say how wide it is.
COLUMNS: Final = 80
_ERASE: Final = "\r\x1b[K"


class Progress:
    """Shows a text, with a bar where it is known how much there is to do; ``with`` takes the bar away again.

    It writes to standard error, so that an answer on standard output can be piped on.
    """

    def __init__(self, out: IO[str] | None = None) -> None:
        self._out = sys.stderr if out is None else out
        # A terminal that cannot go back to the start of a line gets lines only.
        self._drawn = self._out.isatty() and os.environ.get("TERM") != "dumb"
        self._began = time.monotonic()
        self._text = ""
        self._share: float | None = None
        self._before: tuple[str, float | None] = ("", None)
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._ticks = threading.Thread(target=self._tick, daemon=True)

    def show(self, text: str, *, share: float | None = None) -> None:
        """Show this from now on; ``share`` is how much is done, from 0 to 1."""
        with self._lock:
            if text == self._text and share == self._share:
                return
            self._text, self._share = text, share
            if self._drawn:
                self._draw()
            else:
                done = "" if share is None else f"{share:.0%} "
                self._out.write(f"{self._elapsed()} {done}{text}\n")
                self._out.flush()

    def interrupt(self, text: str) -> None:
        """Show this until :meth:`resume`, which shows again what stood before."""
        before = self._text, self._share
        self.show(text, share=self._share)
        self._before = before

    def resume(self) -> None:
        """Show again what was interrupted."""
        text, share = self._before
        self.show(text, share=share)

    def line(self, text: str) -> None:
        """Leave a line above the bar, on standard output."""
        with self._lock:
            self._erase()
            sys.stdout.write(f"{text}\n")
            sys.stdout.flush()
            if self._drawn and self._text:
                self._draw()

    def _tick(self) -> None:
        while not self._over.wait(TICK_S):
            with self._lock:
                if self._text and not self._over.is_set():
                    self._draw()

    def _draw(self) -> None:
        elapsed = time.monotonic() - self._began
        if self._share is None:
            # It goes to and fro, to tell that somebody is still there.
            at = int(elapsed / TICK_S) % (2 * BAR - 6)
            at = min(at, 2 * BAR - 6 - at)
            bar = "." * at + "###" + "." * (BAR - 3 - at)
        else:
            filled = max(0, min(BAR, int(BAR * self._share)))
            bar = "#" * filled + "." * (BAR - filled)
        # A line that wraps could not be taken back.
        self._out.write(_ERASE + f"[{bar}] {self._elapsed()} {self._text}"[: self._columns() - 1])
        self._out.flush()

    def _elapsed(self) -> str:
        seconds = int(time.monotonic() - self._began)
        return f"{seconds // 60}:{seconds % 60:02}"

    def _erase(self) -> None:
        if self._drawn:
            self._out.write(_ERASE)
            self._out.flush()

    def _columns(self) -> int:
        try:
            return os.get_terminal_size(self._out.fileno()).columns or COLUMNS
        except (OSError, ValueError):
            return COLUMNS

    def __enter__(self) -> Self:
        if self._drawn:
            self._ticks.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self.end()

    def end(self) -> None:
        """Take the bar away; what is shown after that is not drawn."""
        with self._lock:
            if not self._over.is_set():
                self._over.set()
                self._erase()
