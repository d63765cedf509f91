"""How a run of a reconciler, or a hook that runs like one, ended."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class Outcome(StrEnum):
    """How a run ended. A run that raises is retried with backoff; its key is never dropped."""

    #: The key is converged; it leaves the queue unless it was enqueued again meanwhile.
    DONE = "DONE"
    #: More is to be done; the key goes to the end of the queue and its failures are forgotten.
    SYNC_AGAIN = "SYNC_AGAIN"


DONE: Final = Outcome.DONE
SYNC_AGAIN: Final = Outcome.SYNC_AGAIN
