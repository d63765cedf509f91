"""The codec of inputs and answers: msgspec, with the refusals that JSON itself leaves out."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from types import UnionType
from typing import Annotated, Any, Final, Union, get_args, get_origin

import msgspec

from better_compute.contract.errors import ComputeError, ErrorCode, Violation, shown
from better_compute.contract.methods import SHOWN_ONCE
from better_compute.envelope import query_values, repetitions

#: Deepest nesting of arrays and objects that an input may have.
MAX_DEPTH: Final = 64

_STRING: Final = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_OPEN: Final = ord("[")
_AS_SQUARE: Final = bytes.maketrans(b"{}", b"[]")
_NO_BRACKETS: Final = bytes(each for each in range(256) if each not in b"[]{}")
# An escaped NUL or surrogate; whether it really is one (and a lone one) is decided on the decoded text.
_SUSPECT: Final = re.compile(rb"\\u(?:0000|[dD][89a-fA-F])")
_SURROGATE_PAIR: Final = re.compile(rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}")
_SURROGATE: Final = re.compile(rb"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
#: Years whose first or last hours in another zone lie beyond the years 1 to 9999 of UTC, also where a digit of them is
#: escaped; no other time is looked at.
_EDGE_YEAR: Final = re.compile(rb"(?:0001|9999)-|\\u00")
_PATH_STEP: Final = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]")
_UNKNOWN_FIELD: Final = re.compile(r"unknown field `(.*)`", re.DOTALL)
#: Refusals that msgspec states without the value.
_BOUNDED: Final = re.compile(r"matching regex | of length |`(?:int|float)` [<>]|^Invalid (?:RFC3339|ISO8601|UUID)")
#: How msgspec shows the end of our patterns; what keeps a line break out says no more than the $ before it.
_WHOLE_TAIL: Final = r"$(?!\\n)'"
#: Most characters of what a refusal says of an input; a pattern and a value fit.
_MAX_DETAIL: Final = 600
_MISSING_FIELD: Final = re.compile(r"missing required field `([^`]*)`")


@cache
def _decoder(type: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(type)


def decode_body(input_type: type[msgspec.Struct], body: bytes) -> Any:
    """Decode a JSON object into ``input_type``; an empty body is ``{}``.

    Raises
    ------
    ComputeError
        INVALID_INPUT with the JSON pointer of the first violation.
    """
    text = body or b"{}"
    _refuse_depth(text)
    suspect = _SUSPECT.search(text) is not None
    if suspect:
        _refuse_lone_surrogates(text)
    try:
        if suspect:
            refuse_unstorable(msgspec.json.decode(text))
        try:
            found = _decoder(input_type).decode(text)
        except msgspec.ValidationError as error:
            if "got `float`" not in str(error):
                raise
            # JSON has one kind of number: 86.0 is an integer too, which clients without integers may well write.
            found = msgspec.convert(_whole(msgspec.json.decode(text)), input_type)
    except msgspec.ValidationError as error:
        raise _invalid(str(error), input_type, lambda: msgspec.json.decode(text)) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _refusal("", f"The body is not JSON: {error}.") from None
    repeated = repetitions.first(text)
    if repeated is not None:
        where = "".join(f"/{_escape(step)}" for step in repeated)
        raise _refusal(where, f"The name {shown(repeated[-1])!r} stands more than once in one object.")
    if _EDGE_YEAR.search(text):
        _refuse_unreachable_times(found)
    return found


def decode_query(input_type: type[msgspec.Struct], query: Mapping[str, Any]) -> Any:
    """Decode a query string, given as lists by name, into ``input_type``; text becomes what the field's type says.

    A field of a list type takes every occurrence of its name; any other field refuses a second one. A number, a truth
    value and null are written as in JSON, but that a whole number has no other form than its digits.
    """
    fields = query_values.fields(input_type)
    values: dict[str, Any] = {}
    for name, occurrences in query.items():
        where = f"/{_escape(name)}"
        field = fields.get(name, query_values.TEXT)
        read = [
            _query_value(text, field, f"{where}/{n}" if field.listed else where) for n, text in enumerate(occurrences)
        ]
        if field.listed:
            values[name] = read
        elif len(read) != 1:
            raise _refusal(where, f"The parameter {shown(name)!r} is given {len(read)} times.")
        else:
            values[name] = read[0]
    refuse_unstorable(values)
    try:
        found = msgspec.convert(values, input_type)
    except msgspec.ValidationError as error:
        raise _invalid(str(error), input_type, lambda: values) from None
    _refuse_unreachable_times(found)
    return found


def _query_value(text: str, field: query_values.Field, where: str) -> Any:
    try:
        return field.read(text)
    except ValueError as error:
        raise _refusal(where, str(error)) from None


def decode_object(input_type: type[msgspec.Struct], value: Any) -> Any:
    """Check an input given in process, a struct or a mapping with wire names, as if it had come over the wire."""
    try:
        body = msgspec.json.encode({} if value is None else value)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise _refusal("", f"The input cannot be written as JSON: {type(error).__name__}.") from None
    return decode_body(input_type, body)


def encode(answer: Any, output_type: Any, method: str) -> tuple[bytes, Any]:
    """Encode a method's answer; returns the answer too, as it is declared.

    Raises whatever the answer's fault is, a ValueError for one that is not as ``output_type`` declares it: what a
    client cannot decode does not go out, and the call rolls back.
    """
    body = msgspec.json.encode(answer)
    try:
        declared = _decoder(output_type).decode(body)
    except msgspec.ValidationError as error:
        text, _, path = str(error).partition(" - at `")
        place = f" at {pointer(path.rstrip('`'))!r}" if path else ""
        raise ValueError(f"The answer of {method} is not as it declares: {text}{place}.") from None
    if isinstance(answer, msgspec.Struct):
        return body, answer
    # A mapping may hold what is not declared; what goes out is what is.
    return msgspec.json.encode(declared), declared


def pointer(path: str) -> str:
    """Turn msgspec's path into an RFC 6901 pointer: ``$.a[0].b`` is ``/a/0/b``.

    msgspec does not tell a mapping's key (``[...]``), so the pointer ends at the mapping.
    """
    return "".join(f"/{_escape(step)}" for step in _steps(path.split("[...]", 1)[0]))


def _steps(path: str) -> list[str]:
    return [name or index for name, index in _PATH_STEP.findall(path.removeprefix("$"))]


def refuse_unstorable(value: Any) -> None:
    """Refuse text that PostgreSQL cannot store: a NUL character or a lone surrogate, in a name or a value."""
    for where, text in _texts(value, ""):
        if "\x00" in text:
            raise _refusal(where, "The text holds a NUL character.")
        if any("\ud800" <= character <= "\udfff" for character in text):
            raise _refusal(where, "The text holds a lone surrogate.")


def _refuse_unreachable_times(input: msgspec.Struct) -> None:
    """Refuse a time that no datetime holds in UTC: what PostgreSQL makes of it could not be read back."""
    for where, time in _times(msgspec.to_builtins(input, builtin_types=(datetime,)), ""):
        try:
            time.astimezone(UTC)
        except OverflowError:
            raise _refusal(where, f"The time {time.isoformat()} is not within the years 1 to 9999 of UTC.") from None


def _times(value: Any, where: str) -> Iterator[tuple[str, datetime]]:
    if isinstance(value, datetime):
        # One without a zone is in none, and for the method to judge.
        if value.tzinfo is not None:
            yield where, value
    elif isinstance(value, Mapping):
        for name, member in value.items():
            yield from _times(member, f"{where}/{_escape(str(name))}")
    elif isinstance(value, list | tuple):
        for index, member in enumerate(value):
            yield from _times(member, f"{where}/{index}")


def _texts(value: Any, where: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield where, value
    elif isinstance(value, Mapping):
        for name, member in value.items():
            yield where, name
            yield from _texts(member, f"{where}/{_escape(name)}")
    elif isinstance(value, Iterable):
        for index, member in enumerate(value):
            yield from _texts(member, f"{where}/{index}")


def _refuse_depth(text: bytes) -> None:
    # Brackets are far fewer than the limit in almost every body, and counting them is cheap.
    if text.count(b"[") + text.count(b"{") <= MAX_DEPTH:
        return
    brackets = _STRING.sub(b"", text).translate(_AS_SQUARE, _NO_BRACKETS)
    # Each round takes the innermost level away: many shallow brackets are gone at once, without a look at each.
    left = MAX_DEPTH
    while brackets and left:
        fewer = brackets.replace(b"[]", b"")
        worth, brackets, left = len(fewer) < len(brackets) * 3 // 4, fewer, left - 1
        if not worth:
            break
    depth = 0
    for bracket in brackets:
        depth += 1 if bracket == _OPEN else -1
        if depth > left:
            raise _refusal("", f"The body nests deeper than {MAX_DEPTH} levels.")


def _refuse_lone_surrogates(text: bytes) -> None:
    # An escaped backslash before a "u" is no escape of a character.
    plain = _SURROGATE_PAIR.sub(b"", text.replace(b"\\\\", b""))
    if _SURROGATE.search(plain) is not None:
        # msgspec refuses the whole text without saying where; the standard library reads it.
        with suppress(ValueError, RecursionError):
            refuse_unstorable(json.loads(text))
        raise _refusal("", "A string holds a lone surrogate.")


def _whole(value: Any) -> Any:
    """The value with every float that is a whole number as an integer."""
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) <= 2**53 else value
    if isinstance(value, dict):
        return {name: _whole(member) for name, member in value.items()}
    return [_whole(member) for member in value] if isinstance(value, list) else value


def answers_get(input_type: type[msgspec.Struct]) -> bool:
    """Tell whether everything that an input requires can be given in a query string."""
    return _answers_get(input_type)


@cache
def _answers_get(input_type: type[msgspec.Struct]) -> bool:
    return all(has_query_form(field.type) for field in msgspec.structs.fields(input_type) if field.required)


def has_query_form(annotation: Any) -> bool:
    """Tell whether a field can be given in a query string: text, a number, a truth value, or a list of them."""
    return all(_is_flat(alternative) for alternative in alternatives(annotation))


def _is_flat(alternative: Any) -> bool:
    if _is_list(alternative):
        return all(has_query_form(part) for part in get_args(alternative) if part is not Ellipsis)
    if isinstance(alternative, type) and issubclass(alternative, msgspec.Struct):
        return False
    return (get_origin(alternative) or alternative) is not dict


def _is_list(annotation: Any) -> bool:
    return (get_origin(annotation) or annotation) in (list, tuple, set, frozenset)


def alternatives(annotation: Any) -> Iterator[Any]:
    """What a field may be: the members of a union, without what annotates them."""
    origin = get_origin(annotation)
    if origin is Annotated:
        yield from alternatives(get_args(annotation)[0])
    elif origin in (Union, UnionType):
        for part in get_args(annotation):
            yield from alternatives(part)
    else:
        yield annotation


def _escape(step: str) -> str:
    return step.replace("~", "~0").replace("/", "~1")


def _invalid(message: str, input_type: Any, read: Callable[[], Any]) -> ComputeError:
    """What msgspec's message says, with the value that a rule refused; ``read`` gives the input."""
    text, _, path = message.rpartition(" - at `") if " - at `" in message else (message, "", "")
    where = pointer(path.rstrip("`"))
    for pattern in (_UNKNOWN_FIELD, _MISSING_FIELD):
        match = pattern.search(text)
        if match is not None:
            where = f"{where}/{_escape(match[1])}"
            text = text.replace(match[1], shown(match[1]))
    if _BOUNDED.search(text) is not None:
        text = text.replace(_WHOLE_TAIL, "$'")
        value = _value_at(path.rstrip("`"), input_type, read)
        if isinstance(value, str):
            text = f"{text}, got {shown(value)!r}" + (f" of length {len(value)}" if " of length " in text else "")
        elif isinstance(value, int | float):
            text = f"{text}, got {shown(repr(value), 64)}"
    return _refusal(where, f"{shown(text, _MAX_DETAIL)}.")


def _value_at(path: str, input_type: Any, read: Callable[[], Any]) -> Any:
    """The value at msgspec's path; None where the path does not tell, and for what is declared secret."""
    steps = _steps(path)
    if "[...]" in path or _may_be_secret(input_type, steps):
        return None
    value = read()
    for step in steps:
        try:
            value = value[int(step)] if isinstance(value, list) else value[step]
        except (KeyError, IndexError, TypeError, ValueError):
            return None
    return value


def is_secret(annotation: Any) -> bool:
    """Tell whether a type is declared :data:`~better_compute.Secret`."""
    metadata = getattr(annotation, "__metadata__", ())
    return any(isinstance(each, msgspec.Meta) and (each.extra_json_schema or {}).get(SHOWN_ONCE) for each in metadata)


def _may_be_secret(annotation: Any, steps: Sequence[str]) -> bool:
    if is_secret(annotation):
        return True
    origin = get_origin(annotation)
    if origin in (Annotated, Union, UnionType):
        parts = get_args(annotation)[:1] if origin is Annotated else get_args(annotation)
        return any(_may_be_secret(part, steps) for part in parts)
    if isinstance(annotation, type) and issubclass(annotation, msgspec.Struct):
        member = next((f.type for f in msgspec.structs.fields(annotation) if steps and f.encode_name == steps[0]), None)
        return member is not None and _may_be_secret(member, steps[1:])
    return any(_may_be_secret(part, steps[1:]) for part in get_args(annotation))


def _refusal(where: str, detail: str) -> ComputeError:
    return ComputeError(
        ErrorCode.INVALID_INPUT,
        f"{detail[:-1]} at {shown(where)!r}." if where else detail,
        mend="Correct the input where the pointer says; the method's schema stands in the OpenAPI document.",
        violations=[Violation(shown(where), detail)],
    )
