"""What keeps a teardown from ending: which module, how it answered, since when, and the mend."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final, Literal

import msgspec

from better_compute import ComputeError, describe_failure

Answer = Literal["SYNC_AGAIN", "RAISED", "INVALID"]

#: Longest text of an exception that is kept, in characters.
_MAX_DETAIL: Final = 2_000


class Blocker(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One module whose hook did not answer DONE in the last pass.

    ``detail`` is the text of an exception, for operators; callers are shown the other fields only.
    """

    module: str
    answer: Answer
    message: str
    mend: str
    #: When this answer was first met without a DONE or another answer since.
    since: datetime
    passes: int = 1
    detail: str = ""


def waiting(module: str, at: datetime) -> Blocker:
    """A hook that answered SYNC_AGAIN."""
    return Blocker(
        module=module,
        answer="SYNC_AGAIN",
        message=f"Module {module} still has something of the tenant's.",
        mend=f"It is asked again by itself; if it stays, look at what {module} still holds for the tenant.",
        since=at,
    )


def raised(module: str, error: Exception, at: datetime) -> Blocker:
    """A hook that raised. A ComputeError's own words are for callers; another exception's are for operators only."""
    if isinstance(error, ComputeError):
        message, mend = f"Module {module} refuses: {error.message}", error.mend
    else:
        message, mend = f"Module {module} failed with {type(error).__name__}.", ""
    return Blocker(
        module=module,
        answer="RAISED",
        message=_storable(message),
        mend=_storable(mend or f"Mend what fails in {module}'s tenant_deleted (its log has the stack); it is retried."),
        since=at,
        detail=_storable(describe_failure(error)),
    )


def invalid(module: str, answer: object, at: datetime) -> Blocker:
    """A hook that answered with neither DONE nor SYNC_AGAIN."""
    return Blocker(
        module=module,
        answer="INVALID",
        message=_storable(f"Module {module} answered {answer!r:.100}, which is neither DONE nor SYNC_AGAIN."),
        mend=f"Let {module}'s tenant_deleted return DONE or SYNC_AGAIN.",
        since=at,
    )


def merged(before: Iterable[Blocker], now: Iterable[Blocker]) -> list[Blocker]:
    """The blockers of this pass; one that answered the same in the pass before keeps its beginning and is counted."""
    known = {(blocker.module, blocker.answer): blocker for blocker in before}
    found = []
    for blocker in now:
        same = known.get((blocker.module, blocker.answer))
        if same is not None:
            blocker = msgspec.structs.replace(blocker, since=same.since, passes=same.passes + 1)
        found.append(blocker)
    return found


def _storable(text: str) -> str:
    """The text as jsonb can hold it."""
    return text[:_MAX_DETAIL].replace("\x00", "\N{REPLACEMENT CHARACTER}").encode("utf-8", "replace").decode()
