"""A jsonb column: what is written to it, and what is read of it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec


def decoded(value: Any) -> Any:
    """The value, whether the cursor has decoded it or, as a raw one of Django, left it as text."""
    return msgspec.json.decode(value) if isinstance(value, str) else value


def encoded(texts: Iterable[str]) -> str:
    """Texts as such a column takes them."""
    return msgspec.json.encode(list(texts)).decode()
