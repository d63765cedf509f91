"""Patterns of actions: ``compute:acme:poke``, ``compute:acme:*``, ``compute:*:read`` and ``*``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from better_compute import ComputeError, ErrorCode, ModuleContext

_SEGMENT: Final = r"[a-z][a-z0-9-]{0,63}"
PATTERN: Final = re.compile(rf"\*|compute:({_SEGMENT}|\*):({_SEGMENT}|\*)", re.ASCII)


def split(pattern: str) -> tuple[str, str]:
    """Area and verb of a pattern or an action. Raises ValueError for anything else."""
    match = PATTERN.fullmatch(pattern)
    if match is None:
        raise ValueError(f"{pattern!r} is no pattern; write compute:<area>:<verb>, either of which may be *, or *.")
    return (match[1] or "*", match[2] or "*")


def covers(wide: str, narrow: str) -> bool:
    """Whether ``wide`` matches every action that ``narrow`` matches, also actions that do not exist yet."""
    return all(w in ("*", n) for w, n in zip(split(wide), split(narrow), strict=True))


def meet(one: str, other: str) -> bool:
    """Whether some action matches both."""
    return all("*" in (a, b) or a == b for a, b in zip(split(one), split(other), strict=True))


@dataclass(frozen=True)
class Patterns:
    """A set of patterns, judged in constant time."""

    texts: tuple[str, ...] = ()

    @classmethod
    def of(cls, texts: Iterable[str]) -> Patterns:
        """A set; raises ValueError for a text that is no pattern."""
        found = tuple(dict.fromkeys(texts))
        for text in found:
            split(text)
        return cls(found)

    @cached_property
    def _parts(self) -> tuple[bool, frozenset[str], frozenset[str], frozenset[str]]:
        pairs = [split(text) for text in self.texts]
        return (
            any(pair == ("*", "*") for pair in pairs),
            frozenset(area for area, verb in pairs if verb == "*"),
            frozenset(verb for area, verb in pairs if area == "*"),
            frozenset(f"compute:{area}:{verb}" for area, verb in pairs),
        )

    def match(self, action: str) -> bool:
        """Whether one of the patterns matches ``action``."""
        everything, areas, verbs, exact = self._parts
        if everything or action in exact:
            return True
        _, area, verb = action.split(":")
        return area in areas or verb in verbs


@dataclass(frozen=True, slots=True)
class Rights:
    """What a role or a grant conveys: ``permits`` without ``but_not``."""

    permits: Patterns
    but_not: Patterns = Patterns()

    def match(self, action: str) -> bool:
        """Whether the action is conveyed."""
        return self.permits.match(action) and not (self.but_not.texts and self.but_not.match(action))

    def meet(self, pattern: str) -> bool:
        """Whether some action that ``pattern`` matches may be conveyed."""
        return any(meet(each, pattern) for each in self.permits.texts) and not any(
            covers(each, pattern) for each in self.but_not.texts
        )


EVERYTHING: Final = Rights(Patterns(("*",)))


def require_known(ctx: ModuleContext, texts: Sequence[str]) -> None:
    """Refuse what is no pattern, and what matches no action that exists."""
    actions = [split(action) for action in ctx.hosted.actions]
    for text in texts:
        try:
            area, verb = split(text)
        except ValueError as error:
            raise ComputeError(ErrorCode.INVALID_INPUT, str(error), mend="iam.catalog lists the actions.") from None
        if not any(area in ("*", a) and verb in ("*", v) for a, v in actions):
            raise ComputeError(
                ErrorCode.INVALID_INPUT,
                f"{text!r} matches no action of a hosted module.",
                mend="iam.catalog lists the actions.",
                reason="ACTION_UNKNOWN",
            )
