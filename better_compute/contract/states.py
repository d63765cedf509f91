"""The life of one kind of thing, as data: refusals, tests and the docs' picture all come from one table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set as AbstractSet
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Generic, TypeVar

from better_compute.contract.errors import ComputeError, ErrorCode

S = TypeVar("S", bound=StrEnum)
V = TypeVar("V", bound=StrEnum)


# Without slots: they and a subscripted generic do not go together in a frozen dataclass.
@dataclass(frozen=True)
class StateTable(Generic[S, V]):
    """Which verb leads from which state to which; whatever is not listed is illegal.

    ``TABLE = StateTable(what="tenant", initial=State.ACTIVE, transitions={(State.ACTIVE, Verb.DELETE): State.GONE})``
    and ``TABLE.after(id, state, Verb.DELETE)``, which returns the next state or raises.

    Parameters
    ----------
    what
        What lives so, as messages name it: ``tenant``. A refusal's reason is ``<WHAT>_<STATE>``.
    initial
        The states that something can begin in.
    by_itself
        Verbs that no caller has: those of time and of reconcilers. No refusal offers them.
    mends
        What to do instead where no caller has a verb left, by state.

    Raises
    ------
    ValueError
        For a state that nothing leads to: it is a slip of the pen, or should not be in the table.
    """

    what: str
    initial: AbstractSet[S]
    transitions: Mapping[tuple[S, V], S]
    by_itself: AbstractSet[V] = frozenset()
    mends: Mapping[S, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse what cannot be reached."""
        reached = set(self.initial)
        while more := {target for (source, _), target in self.transitions.items() if source in reached} - reached:
            reached |= more
        lost = sorted({source for source, _ in self.transitions} - reached)
        if lost:
            raise ValueError(f"The states of a {self.what} include {', '.join(lost)}, which nothing leads to.")

    @property
    def states(self) -> list[S]:
        """Every state, first those that something can begin in."""
        named = (state for (source, _), target in self.transitions.items() for state in (source, target))
        return list(dict.fromkeys([*sorted(self.initial), *named]))

    @property
    def verbs(self) -> list[V]:
        """Every verb, in the order of the table."""
        return list(dict.fromkeys(verb for _, verb in self.transitions))

    @property
    def final(self) -> list[S]:
        """The states that nothing leads on from."""
        return [state for state in self.states if not any(source is state for source, _ in self.transitions)]

    def pairs(self) -> Iterator[tuple[S, V, S | None]]:
        """Every state with every verb, and where that leads; None where it is illegal."""
        for state in self.states:
            for verb in self.verbs:
                yield state, verb, self.transitions.get((state, verb))

    def legal(self, state: S) -> list[V]:
        """The verbs that a caller has in ``state``."""
        return [verb for source, verb in self.transitions if source is state and verb not in self.by_itself]

    def reason(self, state: S) -> str:
        """The machine-readable reason of what ``state`` refuses."""
        return f"{self.what}_{state}".upper().replace("-", "_").replace(" ", "_")

    def after(self, id: object, state: S, verb: V) -> S:
        """The state that ``verb`` leads to.

        Raises
        ------
        ComputeError
            INVALID_STATE listing the verbs that are legal instead.
        """
        target = self.transitions.get((state, verb))
        if target is None:
            legal = self.legal(state)
            none = f"No verb is legal now. {self.mends.get(state, '')}".rstrip()
            raise ComputeError(
                ErrorCode.INVALID_STATE,
                f"The {self.what} {str(id)!r} is {state}, so it cannot {verb}.",
                mend=f"Legal now: {', '.join(legal)}." if legal else none,
                reason=self.reason(state),
            )
        return target
