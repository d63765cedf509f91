"""The codec refuses what cannot be stored or is not meant, and says where."""

from __future__ import annotations

import contextlib
import enum
import json
from datetime import UTC, date, datetime
from typing import Annotated, Any, Literal

import msgspec
import pytest
from hypothesis import given, strategies as st
from msgspec import Meta

from better_compute import ComputeError, Input, Secret
from better_compute.envelope import codec


class Inner(Input):
    count: int = 0


class Shape(Input):
    tenant_id: str
    size_gb: int = 1
    tags: list[str] = msgspec.field(default_factory=list)
    inner: list[Inner] = msgspec.field(default_factory=list)
    by_name: dict[str, Inner] = msgspec.field(default_factory=dict)
    anything: Any = None
    ratio: float = 0.0
    flag: bool | None = None
    short: Annotated[str, Meta(max_length=3)] = ""


def refusal(body: bytes) -> ComputeError:
    with pytest.raises(ComputeError) as caught:
        codec.decode_body(Shape, body)
    assert caught.value.code == "INVALID_INPUT"
    return caught.value


def pointer_of(body: bytes) -> str:
    return refusal(body).violations[0].pointer


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        (b'{"tenantId": 5}', "/tenantId"),
        (b'{"tenantId": "t", "nope": 1}', "/nope"),
        (b"{}", "/tenantId"),
        (b'{"tenantId": "t", "inner": [{}, {"count": "x"}]}', "/inner/1/count"),
        (b'{"tenantId": "t", "inner": [{"what": 1}]}', "/inner/0/what"),
        (b'{"tenantId": "t", "byName": {"a": {"count": "x"}}}', "/byName"),
        (b'{"tenantId": "t", "tags": ["a", 1]}', "/tags/1"),
        (b'{"tenantId": "t", "short": "long"}', "/short"),
        (b'{"tenantId": "t", "a/b~c": 1}', "/a~1b~0c"),
        (b'{"tenantId": "t", "ratio": 1e400}', "/ratio"),
        (b'{"tenantId": "t\\u0000"}', "/tenantId"),
        (b'{"tenantId": "t", "anything": [0, {"a\\u0000": 1}]}', "/anything/1"),
    ],
)
def test_a_violation_is_reported_with_its_json_pointer(body: bytes, pointer: str) -> None:
    assert pointer_of(body) == pointer


@pytest.mark.parametrize(
    "body",
    [
        b"[]",
        b"null",
        b'"text"',
        b"5",
        b"{",
        b"nonsense",
        b'{"tenantId": "t"} trailing',
        b'{"tenantId": "t",}',
        b"\xef\xbb\xbf{}",
        b'{"tenantId": "\xff"}',
        b'{"tenantId": NaN}',
        b'{"tenantId": "a\x00b"}',
        b"\x00",
        b" ",
        b'{"tenantId": "\\ud800"}',
        b'{"tenantId": "\\udc00 x"}',
        b'{"tenantId": "\\ud800\\ud800"}',
        b'{"tenantId": "\\uDC00\\uD800"}',
        b'{"tenantId": "t", "\\ud83d": 1}',
        b'{"tenantId": "t", "sizeGb": 1' + b"0" * 5000 + b"}",
        b'{"tenantId": "t", "anything": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"tenantId": "t", "anything": ' + b'{"a":' * 5000 + b"1" + b"}" * 5000 + b"}",
        b"[" * 1_000_000,
    ],
)
def test_a_body_that_is_no_sound_object_is_refused(body: bytes) -> None:
    assert refusal(body).message


def test_depth_64_is_accepted_and_65_is_not() -> None:
    def nested(depth: int) -> bytes:
        return b'{"tenantId": "t", "anything": ' + b"[" * (depth - 1) + b"]" * (depth - 1) + b"}"

    codec.decode_body(Shape, nested(64))
    assert "64" in refusal(nested(65)).message


nests = st.recursive(
    st.sampled_from(["1", '"[{"', '"\\\\]"']),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda each: f"[{','.join(each)}]"),
        st.lists(inner, max_size=3).map(
            lambda each: "{" + ",".join(f'"{n}":{one}' for n, one in enumerate(each)) + "}"
        ),
    ),
)


def depth_of(value: Any) -> int:
    members = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if members is None else 1 + max(map(depth_of, members), default=0)


@given(nests, st.integers(0, 70), st.lists(st.booleans(), min_size=70, max_size=70), st.integers(0, 70))
def test_depth_is_counted_exactly(nest: str, around: int, kinds: list[bool], beside: int) -> None:
    for array in kinds[:around]:
        nest = f"[{nest}]" if array else f'{{"a":{nest}}}'
    text = f'{{"tenantId":"t","anything":[{nest}{",[]" * beside}]}}'
    deep = depth_of(json.loads(text)) > codec.MAX_DEPTH
    with pytest.raises(ComputeError, match="deeper") if deep else contextlib.nullcontext():
        codec.decode_body(Shape, text.encode())


def test_many_shallow_brackets_and_brackets_in_text_are_no_depth() -> None:
    body = json.dumps({"tenantId": "[" * 500 + '\\"{', "tags": ["[]"] * 200, "anything": [[]] * 1000}).encode()
    assert codec.decode_body(Shape, body).tags[0] == "[]"


def test_a_pair_of_surrogates_and_an_escaped_backslash_are_text() -> None:
    body = b'{"tenantId": "\\ud83d\\ude00", "tags": ["\\\\u0000", "\\\\ud800"]}'
    decoded = codec.decode_body(Shape, body)
    assert decoded.tenant_id == "\U0001f600"
    assert decoded.tags == ["\\u0000", "\\ud800"]


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        (b'{"tenantId": "a", "tenantId": "b"}', "/tenantId"),
        (b'{"tenantId": "a", "tenantId": "a"}', "/tenantId"),
        (rb'{"tenantId": "a", "tenant\u0049d": "b"}', "/tenantId"),
        (b'{"tenantId": "a:b", "sizeGb": 1, "sizeGb": 2}', "/sizeGb"),
        (b'{"tenantId": "t", "inner": [{"count": 1}, {"count": 1, "count": 2}]}', "/inner/1/count"),
        (b'{"tenantId": "t", "byName": {"a/b": {}, "a/b": {}}}', "/byName/a~1b"),
        (b'{"tenantId": "t", "anything": [[{"": 1, "": 1}]]}', "/anything/0/0/"),
        (b'{"tenantId": "t", "anything": {"a": 1' + b"0" * 300 + b', "b": 1, "b": 1}}', "/anything/b"),
        (rb'{"tenantId": "t", "anything": {"\"x\": ": 1, "\"x\": ": 1}}', '/anything/"x": '),
    ],
)
def test_a_name_that_stands_twice_in_an_object_is_refused_at_its_place(body: bytes, pointer: str) -> None:
    found = refusal(body)
    assert (found.violations[0].pointer, found.violations[0].detail[:8]) == (pointer, "The name")


def test_one_name_in_two_objects_and_colons_in_text_are_no_repetition() -> None:
    body = {
        "tenantId": "a:b",
        "inner": [{"count": 1}, {"count": 1}],
        "anything": {"a": {"a": '":":'}, ":": [":", "\\"]},
    }
    assert codec.decode_body(Shape, json.dumps(body).encode()).tenant_id == "a:b"


def test_two_names_of_a_mapping_that_are_one_in_json_are_refused_in_process() -> None:
    with pytest.raises(ComputeError, match="stands more than once"):
        codec.decode_object(Shape, {"tenantId": "t", "anything": {1: "a", "1": "b"}})


pairs = st.recursive(
    st.sampled_from(["1", '":"', '"a\\\\\\":"', "[]"]),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda each: f"[{','.join(each)}]"),
        st.lists(st.tuples(st.sampled_from(['"a"', r'"\u0061"', '":"', '"b"']), inner), max_size=3).map(
            lambda each: "{" + ", ".join(f"{name} :{value}" for name, value in each) + "}"
        ),
    ),
)


@given(pairs)
def test_whatever_repeats_a_name_is_refused_and_nothing_else(text: str) -> None:
    repeated = False

    def look(members: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal repeated
        repeated |= len(dict(members)) < len(members)
        return dict(members)

    body = f'{{"tenantId": "t", "anything": {text}}}'
    json.loads(body, object_pairs_hook=look)
    with pytest.raises(ComputeError, match="stands more than once") if repeated else contextlib.nullcontext():
        codec.decode_body(Shape, body.encode())


def test_a_query_string_becomes_what_the_fields_say() -> None:
    shape = codec.decode_query(
        Shape, {"tenantId": ["7"], "sizeGb": ["5"], "flag": ["true"], "tags": ["a", "b"], "ratio": ["0.5"]}
    )
    assert (shape.tenant_id, shape.size_gb, shape.flag, shape.tags, shape.ratio) == ("7", 5, True, ["a", "b"], 0.5)


@pytest.mark.parametrize(
    ("query", "pointer"),
    [
        ({"tenantId": ["a", "b"]}, "/tenantId"),
        ({"tenantId": ["a"], "sizeGb": ["five"]}, "/sizeGb"),
        ({"tenantId": ["a"], "zzz": ["five"]}, "/zzz"),
        ({"tenantId": ["a\x00"]}, "/tenantId"),
        ({"tenantId": ["a\ud800"]}, "/tenantId"),
        ({}, "/tenantId"),
    ],
)
def test_a_bad_query_string_is_refused_with_its_pointer(query: dict[str, list[str]], pointer: str) -> None:
    with pytest.raises(ComputeError) as caught:
        codec.decode_query(Shape, query)
    assert caught.value.violations[0].pointer == pointer


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Scalars(Input):
    whole: int | None = None
    share: float | None = None
    flag: bool | None = None
    at: datetime | None = None
    day: date | None = None
    colour: Colour | None = None
    level: Level | None = None
    digit: Literal[1, 2] | None = None
    text: str | None = None
    many: list[int] = []
    shares: list[float] | None = None
    either: int | bool = 0


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("whole", "0", 0), ("whole", "-7", -7), ("whole", "9223372036854775807", 2**63 - 1), ("whole", "null", None),
        ("share", "5", 5.0), ("share", "-0.5", -0.5), ("share", "1e3", 1000.0), ("share", "1.0", 1.0),
        ("flag", "true", True), ("flag", "false", False), ("colour", "red", Colour.RED), ("level", "2", Level.HIGH),
        ("digit", "2", 2), ("text", "01", "01"), ("text", "null", "null"), ("text", " 1", " 1"),
        ("at", "2030-01-01T00:00:00Z", datetime(2030, 1, 1, tzinfo=UTC)), ("day", "2030-01-01", date(2030, 1, 1)),
        ("many", "1", [1]), ("shares", "1", [1.0]), ("either", "1", 1), ("either", "true", True),
    ],
)  # fmt: skip
def test_a_value_of_a_query_string_is_written_as_json_writes_it(name: str, text: str, value: Any) -> None:
    found = getattr(codec.decode_query(Scalars, {name: [text]}), name)
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        *(
            ("whole", each)
            for each in ("1.0", "1e0", "+1", " 1", "1 ", "01", "-01", "1_0", "\u0661", "\uff11", "0x1", "")
        ),
        *(("whole", each) for each in ("-", "true", "Null", "NULL", "1\n", "9" * 5_000, "five")),
        *(
            ("share", each)
            for each in ("nan", "NaN", "inf", "-Infinity", "1e400", "-1e400", ".5", "5.", "+0.5", " 0.5")
        ),
        *(("share", each) for each in ("1_0.0", "00.5", "\u0661.0", "1,5", "0x1p3", "")),
        *(("flag", each) for each in ("True", "TRUE", "1", "0", "yes", "on", "", " true", "t", "f")),
        *(
            ("at", each)
            for each in ("0", "1700000000", "1.5", "-1", "1e9", "now", "", "2030-01-01", "2030-01-01T00:00:00+1")
        ),
        *(("day", each) for each in ("20300101", "1", "2030-1-1", " 2030-01-01", "")),
        *(("colour", each) for each in ("RED", "Red", "Colour.RED", " red", "", "1")),
        *(("level", each) for each in ("LOW", "1.0", "01", "+1", "3", "")),
        *(("digit", each) for each in ("1.0", "01", "3")),
        *(("many", each) for each in ("1.0", "+1", "", "1,2", "[1]")),
        *(("shares", each) for each in ("nan", "1_0")),
        *(("either", each) for each in ("1.0", "True", "")),
    ],
)
def test_a_value_of_a_query_string_that_is_written_otherwise_is_refused_with_it(name: str, text: str) -> None:
    with pytest.raises(ComputeError) as caught:
        codec.decode_query(Scalars, {name: [text]})
    [violation] = caught.value.violations
    assert violation.pointer.startswith(f"/{name}")
    assert len(violation.detail) < 600


@pytest.mark.parametrize(
    ("name", "text", "detail"),
    [
        ("whole", "1.0", "Expected an integer in decimal digits or null, got '1.0'."),
        ("share", "nan", "Expected a number as JSON writes it or null, got 'nan'."),
        ("flag", "True", "Expected true or false or null, got 'True'."),
        ("many", "+1", "Expected an integer in decimal digits, got '+1'."),
        ("share", "1e400", "The number '1e400' is out of range."),
    ],
)
def test_what_is_wrong_with_it_is_told_with_value_and_rule(name: str, text: str, detail: str) -> None:
    with pytest.raises(ComputeError) as caught:
        codec.decode_query(Scalars, {name: [text]})
    assert caught.value.violations[0].detail == detail


def test_an_input_given_in_process_is_checked_like_one_from_the_wire() -> None:
    assert codec.decode_object(Shape, {"tenantId": "t"}).tenant_id == "t"
    assert codec.decode_object(Shape, Shape(tenant_id="t")).tenant_id == "t"
    for unsound in ({"tenant_id": "t"}, {"tenantId": 5}, Shape(tenant_id=5), {"tenantId": "\ud800"}, 5, object()):  # type: ignore[arg-type]
        with pytest.raises(ComputeError) as caught:
            codec.decode_object(Shape, unsound)
        assert caught.value.code == "INVALID_INPUT"


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.text()
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda members: st.lists(members, max_size=4) | st.dictionaries(st.text(), members, max_size=4),
    max_leaves=20,
)


def texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for name, member in value.items() for text in [name, *texts(member)]]
    return [text for member in value for text in texts(member)] if isinstance(value, list) else []


@given(json_values, st.booleans())
def test_every_storable_value_comes_through_and_every_other_is_refused(value: Any, ascii: bool) -> None:
    body = json.dumps({"tenantId": "t", "anything": value}, ensure_ascii=ascii).encode()
    if all("\x00" not in text for text in texts(value)):
        assert codec.decode_body(Shape, body).anything == value
    else:
        assert "NUL" in refusal(body).message


@given(st.binary(max_size=200))
def test_no_body_raises_anything_but_a_refusal(body: bytes) -> None:
    with contextlib.suppress(ComputeError):
        codec.decode_body(Shape, body)


class Sized(Input):
    """A whole number, a fraction, and anything."""

    size: int
    share: float = 0.5
    extra: Any = None


@pytest.mark.parametrize(("text", "size"), [(b"86", 86), (b"86.0", 86), (b"1e3", 1000), (b"-0.0", 0)])
def test_a_whole_number_is_an_integer_however_it_is_written(text: bytes, size: int) -> None:
    decoded = codec.decode_body(Sized, b'{"size": ' + text + b', "share": 2.0, "extra": [1.0, 1.5]}')
    assert (decoded.size, decoded.share, decoded.extra[1]) == (size, 2.0, 1.5)


@pytest.mark.parametrize("text", [b"86.5", b"1e400", b"1e17", b"-1e400"])
def test_what_is_no_whole_number_is_no_integer(text: bytes) -> None:
    with pytest.raises(ComputeError) as caught:
        codec.decode_body(Sized, b'{"size": ' + text + b"}")
    assert caught.value.code == "INVALID_INPUT"


class Login(Input):
    name: Annotated[str, msgspec.Meta(max_length=3)] = ""
    password: Annotated[Secret, msgspec.Meta(max_length=3)] = ""
    keys: list[Annotated[Secret, msgspec.Meta(pattern="^k")]] = []


def test_a_value_that_is_too_long_is_told_with_its_length_and_a_secret_is_not() -> None:
    with pytest.raises(ComputeError) as caught:
        codec.decode_body(Login, b'{"name": "hunter2"}')
    assert caught.value.violations[0].detail == "Expected `str` of length <= 3, got 'hunter2' of length 7."
    for body in (b'{"password": "hunter2"}', b'{"keys": ["hunter2"]}'):
        with pytest.raises(ComputeError) as caught:
            codec.decode_body(Login, body)
        assert "hunter2" not in str(caught.value)


class Timed(Input):
    at: datetime | None = None
    times: list[datetime] = msgspec.field(default_factory=list)


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        (b'{"at": "9999-12-31T23:59:59-14:00"}', "/at"),
        (b'{"at": "0001-01-01T00:00:00+00:01"}', "/at"),
        (rb'{"at": "\u0039999-12-31T23:59:59-00:01"}', "/at"),
        (b'{"times": ["2030-01-01T00:00:00Z", "9999-12-31T23:59:59-01:00"]}', "/times/1"),
    ],
)
def test_a_time_that_cannot_be_read_back_from_the_database_is_refused(body: bytes, pointer: str) -> None:
    with pytest.raises(ComputeError, match="is not within the years 1 to 9999 of UTC") as caught:
        codec.decode_body(Timed, body)
    assert [violation.pointer for violation in caught.value.violations] == [pointer]


def test_the_first_and_the_last_second_of_utc_are_times() -> None:
    assert codec.decode_body(Timed, b'{"at": "9999-12-31T23:59:59Z"}').at.year == 9999
    assert codec.decode_body(Timed, b'{"at": "0001-01-01T01:00:00+01:00"}').at.year == 1


def test_a_time_of_a_query_string_is_held_to_the_same() -> None:
    with pytest.raises(ComputeError, match="of UTC"):
        codec.decode_query(Timed, {"at": ["9999-12-31T23:59:59-14:00"]})
