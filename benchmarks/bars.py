"""A bar as an issue states it: ``<= 1.6 x``, ``>= 0.7 x``, ``<= 15 ms``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal

_BAR = re.compile(r"(<=|>=) (\d[\d_,]*(?:\.\d+)?) (\S.*)")

#: Instead of a bar: the figure is measured and shown, and nothing is asked of it.
STATED: Final = "stated"
#: The unit of a bar on the ratio to the peer; every other unit is that of the figure's own value.
TIMES: Final = "x"


@dataclass(frozen=True, slots=True)
class Bar:
    """What a figure must reach: a ratio to its peer, or a value of its own."""

    op: Literal["<=", ">="]
    limit: float
    unit: str

    @classmethod
    def parse(cls, text: str) -> Bar:
        """Read ``<op> <number> <unit>``.

        Raises
        ------
        ValueError
            When ``text`` is not of that form.
        """
        match = _BAR.fullmatch(text)
        if match is None:
            raise ValueError(f"{text!r} is no bar; write e.g. '<= 1.6 x', '>= 0.7 x' or '<= 15 ms'.")
        op: Literal["<=", ">="] = "<=" if match[1] == "<=" else ">="
        return cls(op, float(re.sub("[_,]", "", match[2])), match[3])

    @property
    def is_ratio(self) -> bool:
        """Whether it judges the ratio to the peer."""
        return self.unit == TIMES

    def holds(self, measured: float) -> bool:
        """Tell whether ``measured``, a ratio or a value in the bar's unit, reaches the bar."""
        return measured <= self.limit if self.op == "<=" else measured >= self.limit
