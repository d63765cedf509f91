"""Values of a query string: text that becomes what its field's type says, in one form each.

A query string has no types, so a lenient reader takes many texts for one value, and two readers differ on them:
``1.0``, ``+1`` and ``1_0`` as integers, ``1`` and ``yes`` as truth, ``1700000000`` as a time. Here a value is written
as JSON writes it, without the quotes of text; a whole number is its digits alone, since text has no type.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import msgspec
from msgspec import inspect

from better_compute.contract.errors import shown

_DIGITS: Final = r"-?(?:0|[1-9][0-9]*)"
#: What a kind of value is called, and how it is written; in the order in which they are tried.
_FORMS: Final[dict[type, tuple[str, re.Pattern[str]]]] = {
    int: ("an integer in decimal digits", re.compile(_DIGITS, re.ASCII)),
    float: ("a number as JSON writes it", re.compile(rf"{_DIGITS}(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?", re.ASCII)),
    bool: ("true or false", re.compile(r"true|false")),
    type(None): ("null", re.compile(r"null")),
}
_LISTS: Final = (inspect.ListType, inspect.SetType, inspect.FrozenSetType, inspect.VarTupleType)
#: Most digits of a number that is read; what is longer is out of every range.
_MOST_DIGITS: Final = 400


@dataclass(frozen=True, slots=True)
class Field:
    """How the values of one parameter are read."""

    #: Of :data:`_FORMS`, what it may be.
    kinds: tuple[type, ...] = ()
    #: It takes any text as it is, or the texts that its type knows, as a time's.
    text: bool = False
    texts: bool = False
    #: It takes every occurrence of its name.
    listed: bool = False

    def read(self, text: str) -> Any:
        """The value. Raises ValueError, with what to say, where the text is none."""
        if self.text:
            return text
        for kind in self.kinds:
            if _FORMS[kind][1].fullmatch(text) is not None:
                return _read(kind, text)
        if self.texts:
            return text
        words = " or ".join(_FORMS[kind][0] for kind in self.kinds)
        raise ValueError(f"Expected {words}, got {shown(text)!r}.")


#: A parameter that no field has; the struct refuses it by its name.
TEXT: Final = Field(text=True)


def _read(kind: type, text: str) -> Any:
    try:
        if len(text) <= _MOST_DIGITS:
            return int(text) if kind is int else msgspec.json.decode(text)
    except msgspec.DecodeError:
        # Its exponent is beyond what a float holds.
        pass
    raise ValueError(f"The number {shown(text)!r} is out of range.")


@cache
def fields(input_type: type[msgspec.Struct]) -> dict[str, Field]:
    """How each field is read, by its name on the wire."""
    info: Any = inspect.type_info(input_type)
    return {field.encode_name: _field(field.type) for field in info.fields}


def _field(given: inspect.Type) -> Field:
    alternatives = list(_alternatives(given))
    items = [item for each in alternatives for item in _items(each)]
    listed = any(isinstance(each, (*_LISTS, inspect.TupleType)) for each in alternatives)
    found = {kind for each in (items if listed else alternatives) for kind in _kinds(each)}
    kinds = tuple(kind for kind in _FORMS if kind in found)
    if not found:
        return Field(text=True, listed=listed)
    return Field(kinds, text=str in found, texts=object in found, listed=listed)


def _alternatives(given: inspect.Type) -> Iterator[inspect.Type]:
    if isinstance(given, inspect.Metadata):
        yield from _alternatives(given.type)
    elif isinstance(given, inspect.UnionType):
        for each in given.types:
            yield from _alternatives(each)
    else:
        yield given


def _items(given: inspect.Type) -> Iterator[inspect.Type]:
    if isinstance(given, inspect.TupleType):
        for each in given.item_types:
            yield from _alternatives(each)
    elif isinstance(given, _LISTS):
        yield from _alternatives(given.item_type)


def _kinds(given: inspect.Type) -> Iterator[type]:
    """Kinds of :data:`_FORMS`; ``str`` for any text, ``object`` for texts that the type knows."""
    if isinstance(given, inspect.IntType):
        yield int
    elif isinstance(given, inspect.FloatType):
        yield float
    elif isinstance(given, inspect.BoolType):
        yield bool
    elif isinstance(given, inspect.NoneType):
        yield None.__class__
    elif isinstance(given, inspect.StrType | inspect.AnyType):
        yield str
    elif isinstance(given, inspect.LiteralType):
        yield from (object if isinstance(each, str) else each.__class__ for each in given.values)
    elif isinstance(given, inspect.EnumType):
        values = (member.value for member in given.cls if isinstance(member, enum.Enum))
        yield from (object if isinstance(each, str) else each.__class__ for each in values)
    else:
        yield object
