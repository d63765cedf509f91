"""The codec of inputs and answers: msgspec, with the refusals that JSON itself leaves out (ruling 35)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from types import UnionType
from typing import Annotated, Any, Final, Union, get_args, get_origin

import msgspec

from better_compute.contract.errors import ComputeError, ErrorCode, Violation

#: Deepest nesting of arrays and objects that an input may have.
MAX_DEPTH: Final = 64

_STRING: Final = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_BRACKET: Final = re.compile(rb"[\[\]{}]")
# An escaped NUL or surrogate; whether it really is one (and a lone one) is decided on the decoded text.
_SUSPECT: Final = re.compile(rb"\\u(?:0000|[dD][89a-fA-F])")
_SURROGATE_PAIR: Final = re.compile(rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}")
_SURROGATE: Final = re.compile(rb"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
_PATH_STEP: Final = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]")
_UNKNOWN_FIELD: Final = re.compile(r"unknown field `([^`]*)`")
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
            return _decoder(input_type).decode(text)
        except msgspec.ValidationError as error:
            if "got `float`" not in str(error):
                raise
            # JSON has one kind of number: 86.0 is an integer too, which clients without integers may well write.
            return msgspec.convert(_whole(msgspec.json.decode(text)), input_type)
    except msgspec.ValidationError as error:
        raise _invalid(str(error)) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _refusal("", f"The body is not JSON: {error}.") from None


def decode_query(input_type: type[msgspec.Struct], query: Mapping[str, Any]) -> Any:
    """Decode a query string, given as lists by name, into ``input_type``; text becomes what the field's type says.

    A field of a list type takes every occurrence of its name; any other field refuses a second one.
    """
    listed = _list_fields(input_type)
    values: dict[str, Any] = {}
    for name, occurrences in query.items():
        if name in listed:
            values[name] = list(occurrences)
        elif len(occurrences) != 1:
            raise _refusal(f"/{_escape(name)}", f"The parameter {name!r} is given {len(occurrences)} times.")
        else:
            values[name] = occurrences[0]
    refuse_unstorable(values)
    try:
        return msgspec.convert(values, input_type, strict=False)
    except msgspec.ValidationError as error:
        raise _invalid(str(error)) from None


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
    steps = []
    for name, index in _PATH_STEP.findall(path.split("[...]", 1)[0].removeprefix("$")):
        steps.append(_escape(name) if name else index)
    return "".join(f"/{step}" for step in steps)


def refuse_unstorable(value: Any) -> None:
    """Refuse text that PostgreSQL cannot store: a NUL character or a lone surrogate, in a name or a value."""
    for where, text in _texts(value, ""):
        if "\x00" in text:
            raise _refusal(where, "The text holds a NUL character.")
        if any("\ud800" <= character <= "\udfff" for character in text):
            raise _refusal(where, "The text holds a lone surrogate.")


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
    depth = 0
    for match in _BRACKET.finditer(_STRING.sub(b'""', text)):
        depth += 1 if match[0] in b"[{" else -1
        if depth > MAX_DEPTH:
            raise _refusal("", f"The body nests deeper than {MAX_DEPTH} levels.")


def _refuse_lone_surrogates(text: bytes) -> None:
    # An escaped backslash before a "u" is no escape of a character.
    plain = _SURROGATE_PAIR.sub(b"", text.replace(b"\\\\", b""))
    if _SURROGATE.search(plain) is not None:
        raise _refusal("", "A string holds a lone surrogate.")


def _whole(value: Any) -> Any:
    """The value with every float that is a whole number as an integer."""
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) <= 2**53 else value
    if isinstance(value, dict):
        return {name: _whole(member) for name, member in value.items()}
    return [_whole(member) for member in value] if isinstance(value, list) else value


@cache
def _list_fields(input_type: type[msgspec.Struct]) -> frozenset[str]:
    return frozenset(
        field.encode_name
        for field in msgspec.structs.fields(input_type)
        if any(_is_list(alternative) for alternative in alternatives(field.type))
    )


def answers_get(input_type: type[msgspec.Struct]) -> bool:
    """Tell whether everything that an input requires can be given in a query string."""
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


def _invalid(message: str) -> ComputeError:
    text, _, path = message.partition(" - at `")
    where = pointer(path.rstrip("`"))
    for pattern in (_UNKNOWN_FIELD, _MISSING_FIELD):
        match = pattern.search(text)
        if match is not None:
            where = f"{where}/{_escape(match[1])}"
    return _refusal(where, f"{text}.")


def _refusal(where: str, detail: str) -> ComputeError:
    return ComputeError(
        ErrorCode.INVALID_INPUT,
        f"{detail[:-1]} at {where!r}." if where else detail,
        mend="Correct the input where the pointer says; the method's schema stands in the OpenAPI document.",
        violations=[Violation(where, detail)],
    )
