"""The columns of a source: which are inputs, of what type, and what means that a value is missing."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from draining import written
from fake_kafka import message
from hypothesis import example, given
from hypothesis import strategies as st
from test_decoding import LONGEST, TOO_LONG, check, csv_lines, json_lines, plain_csv, plain_json

from streamkernel.connectors import CsvSource, SourceError
from streamkernel.connectors.columns.rules import ColumnRules
from streamkernel.connectors.columns.settings import ColumnSettings, InputSettings
from streamkernel.connectors.columns.uses import empty_inputs
from streamkernel.connectors.decode import UndecodableError
from streamkernel.connectors.files.rows import CsvRows
from streamkernel.connectors.kafka.base.messages import Messages
from streamkernel.connectors.kafka.reading.buffers import PartitionBatch
from streamkernel.connectors.kafka.reading.message_decoder import MessageDecoder
from streamkernel.connectors.objects import JsonObjects
from streamkernel.connectors.ports import Position

spellings = st.lists(st.sampled_from(["NA", "-", "1", "-2.5", "red", "0", "nan", "2024-01-31"]), max_size=3).map(tuple)
columns = st.builds(
    ColumnSettings,
    st.sampled_from(["auto", "string", "number", "date", "hash"]),
    na=st.none() | spellings,
    nested=st.sampled_from([None, "dead_letter", "flatten", "ignore"]),
    invalid=st.sampled_from(["dead_letter", "missing"]),
    format=st.sampled_from(["iso", "unix", "%Y"]),
    parts=st.sampled_from([("year", "month", "hour"), ("days",), ("weekday", "time_of_day")]),
    cyclic=st.booleans(),
    timezone=st.sampled_from([None, "UTC", "Europe/Berlin"]),
    buckets=st.integers(1, 5),
    decimal=st.sampled_from([None, ","]),
)
names = st.sampled_from(["a", "b", "c", "a.b", "b.0"])
rules = st.builds(
    InputSettings,
    include=st.none() | st.lists(names, max_size=3).map(tuple),
    exclude=st.lists(names, max_size=1).map(tuple),
    na=spellings,
    nested=st.sampled_from(["dead_letter", "flatten", "ignore"]),
    decimal=st.sampled_from([None, None, ","]),
    types=st.dictionaries(names, columns, max_size=3),
)
cells = st.sampled_from(
    [
        1,
        2.5,
        -2.5,
        0,
        True,
        None,
        "NA",
        "-",
        "red",
        "1",
        "2,5",
        " ",
        "2024-01-31",
        "2024-01-31T10:00:00+01:00",
        10**30,
        TOO_LONG,
    ]
)
deep = st.recursive(cells, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(names, inner, max_size=2))
typed_json = st.builds(lambda a, b: json.dumps({"a": a, "b": b, "y": 1}).encode(), deep, cells)
typed_csv = st.builds("{},{},1".format, cells, cells)


@given(
    chunks=st.lists(st.lists(typed_json, max_size=6) | st.lists(json_lines | plain_json, max_size=6), max_size=3),
    given_=rules,
)
def test_json_at_once_is_json_one_by_one(chunks: list[list[bytes]], given_: InputSettings) -> None:
    check(lambda: JsonObjects("y", "int", LONGEST, ColumnRules(given_, LONGEST)), chunks)


@given(
    chunks=st.lists(st.lists(typed_csv, max_size=6) | st.lists(csv_lines | plain_csv, max_size=6), max_size=3),
    given_=rules,
)
@example([["-2.5,1,1", "1,2,1"]], InputSettings(na=("-2.50",)))
def test_csv_at_once_is_csv_one_by_one(chunks: list[list[str]], given_: InputSettings) -> None:
    encoded = [[line.encode("utf-8", "replace") for line in lines] for lines in chunks]
    check(lambda: CsvRows(["a", "b", "y"], "y", "str", ",", "utf-8", LONGEST, ColumnRules(given_, LONGEST)), encoded)


def read(x: dict[str, Any], **given_: Any) -> dict[str, Any]:
    types = {
        name: ColumnSettings(one) if isinstance(one, str) else one for name, one in given_.pop("types", {}).items()
    }
    return ColumnRules(InputSettings(types=types, **given_), 256).read(x)


def test_include_and_exclude_choose() -> None:
    x = {"id": 7, "a": 1, "b": 2}
    assert read(x, exclude=("id",)) == {"a": 1, "b": 2}
    assert read(x, include=("a", "c")) == {"a": 1}
    assert read(x, include=("id", "a"), exclude=("id",)) == {"a": 1}


def test_what_is_excluded_is_no_fault_whatever_it_is() -> None:
    assert read({"a": 1, "b": [1], "c": "x" * 999}, exclude=("b", "c")) == {"a": 1}
    assert read({"a": 1, "b": {"c": 1}}, include=("a",)) == {"a": 1}


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("string", "02134", "02134"),
        ("string", 2134, "2134"),
        ("string", 1.5, "1.5"),
        ("string", 2134.0, "2134"),
        ("string", True, "true"),
        ("string", "nan", "nan"),
        ("string", " ", None),
        ("string", None, None),
        ("number", "1.50", 1.5),
        ("number", " 7 ", 7.0),
        ("number", 7, 7),
        ("number", True, True),
        ("number", "nan", None),
        ("number", math.nan, None),
        ("number", "", None),
        ("auto", "12", "12"),
        ("hash", "customer 17", "25"),
        ("hash", "", None),
    ],
)
def test_a_value_by_its_type(kind: str, value: Any, expected: Any) -> None:
    found = read({"a": value}, types={"a": kind}).get("a")
    assert (found, type(found)) == (expected, type(expected))


@pytest.mark.parametrize(
    ("kind", "value", "reason", "detail"),
    [
        ("number", "abc", "input_type", "input 'a' is 'abc', not a number"),
        ("number", "1_000", "input_type", "not a number"),
        ("number", "inf", "infinite", "input 'a' is infinite"),
        ("number", 10**400, "infinite", "input 'a' is infinite"),
        ("number", [1], "nested", "input 'a' is a list"),
        ("string", "x" * 257, "string_too_long", "257 characters long"),
        ("string", {"b": 1}, "nested", "input 'a' is a dict"),
        ("date", "31.12.2024", "input_type", "input 'a' is '31.12.2024', not a date of the format iso"),
        ("date", "2024-02-30", "input_type", "not a date"),
        ("hash", [], "nested", "is a list"),
    ],
)
def test_what_is_not_of_its_type_is_a_fault(kind: str, value: Any, reason: str, detail: str) -> None:
    with pytest.raises(UndecodableError, match=detail.replace("[", r"\[")) as raised:
        read({"a": value}, types={"a": kind})
    assert raised.value.fault.reason == reason


@pytest.mark.parametrize(("kind", "value"), [("number", "abc"), ("number", "inf"), ("date", "soon")])
def test_or_missing_where_that_is_wanted(kind: Any, value: str) -> None:
    assert read({"a": value, "b": 1}, types={"a": ColumnSettings(kind, invalid="missing")}) == {"b": 1}


def test_spellings_of_a_missing_value() -> None:
    x = {"a": "NA", "b": -999, "c": -999.0, "d": "-999", "e": "fine", "f": True}
    assert read(x, na=("NA", "-999")) == {"e": "fine", "f": True}
    assert read(x, na=("NA", "1"), types={"a": ColumnSettings(na=())}) == {name: x[name] for name in "abcdef"}
    assert read({"a": "-999.0"}, na=("-999",), types={"a": "number"}) == {}
    assert read({"a": "NA"}, na=("NA",), types={"a": "date"}) == {}


def test_nested_values() -> None:
    x = {"a": 1, "user": {"id": 7, "zip": "02134", "tags": ["x", "y"]}, "log": [{"b": 2}]}
    assert read(x, nested="ignore") == {"a": 1}
    flat = {"a": 1, "user.id": 7, "user.zip": "02134", "user.tags.0": "x", "user.tags.1": "y", "log.0.b": 2}
    assert read(x, nested="flatten") == flat
    assert read(x, nested="flatten", exclude=("user.id", "log")) == {
        name: flat[name] for name in ("a", "user.zip", "user.tags.0", "user.tags.1")
    }
    assert read(x, nested="flatten", include=("user",), types={"user.tags": ColumnSettings(nested="ignore")}) == {
        "user.id": 7,
        "user.zip": "02134",
    }
    assert read(x, types={"user": ColumnSettings(nested="flatten")}, exclude=("log", "user.tags")) == {
        "a": 1,
        "user.id": 7,
        "user.zip": "02134",
    }
    with pytest.raises(UndecodableError, match="input 'user' is a dict"):
        read(x)


def test_what_is_nested_too_deep_is_a_fault() -> None:
    value: Any = 1
    for _ in range(40):
        value = {"a": value}
    with pytest.raises(UndecodableError, match="input 'a' is nested more than 32 deep"):
        read(value, nested="flatten")


@pytest.mark.parametrize("x", [{"a.b": 1.5, "a": {"b": 3}}, {"a": {"b": 3}, "a.b": 1.5}])
def test_two_values_of_one_name_are_no_record(x: dict[str, Any]) -> None:
    with pytest.raises(UndecodableError, match=r"same name 'a\.b' once they are flattened"):
        read(x, nested="flatten")


@pytest.mark.parametrize("value", [1, {"b": 1}, [1]])
def test_a_name_of_any_length_is_a_fault_that_costs_nothing(value: Any) -> None:
    for nested in ("flatten", "ignore", "dead_letter"):
        with pytest.raises(UndecodableError, match="the name of an input is"):
            read({"a": 1, "." * 10**6: value}, nested=nested, include=("a",))


@pytest.mark.parametrize(
    ("column", "why"),
    [
        (ColumnSettings("date", format="dd.mm.yyyy"), "a date's format is iso, unix, unix_ms or one such as %d.%m.%Y"),
        (ColumnSettings("date", format="%Q"), "'%Q' is not a date format"),
        (ColumnSettings("date", timezone="Europe/Atlantis"), "there is no time zone 'Europe/Atlantis'"),
        (ColumnSettings("date", timezone="../../etc/passwd"), "there is no time zone"),
        (ColumnSettings("date", parts=("decade",)), "there is no part 'decade' of a date, only year"),  # type: ignore[arg-type]
        (ColumnSettings("hash", buckets=0), "a hash has at least 1 bucket, got 0"),
    ],
)
def test_settings_that_cannot_be(column: ColumnSettings, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        CsvSource("a.csv", inputs=InputSettings(types={"a": column}))


CSV = b"id,zip,when,amount,y\nA-1,02134,2024-05-01,NA,1\nA-2,10001,2024-05-02,7.5,0\n"
SETTINGS = InputSettings(
    exclude=("id",),
    na=("NA",),
    types={"zip": ColumnSettings("string"), "when": ColumnSettings("date", parts=("day", "weekday"), cyclic=False)},
)


def test_a_name_that_the_header_lacks_is_told_with_one_that_it_has(tmp_path: Path) -> None:
    source = CsvSource(written(tmp_path / "a.csv", CSV), "y", inputs=InputSettings(exclude=("ids",)))
    with pytest.raises(SourceError, match=r"'ids'.* inputs\.exclude.*'id'\?"):
        source.open()


def test_messages_with_what_comes_beside_their_value() -> None:
    given_ = InputSettings(
        exclude=("kafka.key",),
        types={
            "kafka.timestamp": ColumnSettings("date", format="unix", parts=("hour",), cyclic=False),
            "a": ColumnSettings("string"),
        },
    )
    decoder = MessageDecoder(JsonObjects("y", "int", 20, ColumnRules(given_, 20)), 100, ("key", "timestamp"))
    one = message(5, b'{"a": 1, "y": 2}', key=b"k" * 99, timestamp=7_200_000)
    (record,) = decoder.records("cluster/t/1", PartitionBatch.of(0, Messages.of([one])))
    assert record.x == {"kafka.timestamp.hour": 2.0, "a": "1"}
    assert [use[:2] for use in decoder.columns(record)] == [("y", "2"), ("a", "1"), ("kafka.timestamp.hour", "2.0")]


def test_what_becomes_of_each_column(tmp_path: Path) -> None:
    text = CSV.replace(b"amount", b"amount,color").replace(b"NA,", b"NA,,").replace(b"7.5,", b"7.5,red,")
    with CsvSource(written(tmp_path / "a.csv", text), "y", "int", inputs=SETTINGS) as source:
        source.open()
        (first,) = source.poll(1, 0)
        assert [tuple(use) for use in source.columns(first)] == [
            ("y", "'1'", "string", "target 1"),
            ("id", "'A-1'", "string", "excluded"),
            ("zip", "'02134'", "string", "input"),
            ("when", "'2024-05-01'", "date", "input when.day=1, when.weekday=2"),
            ("amount", "'NA'", "string", "input, missing here"),
            ("color", "''", "string", "input, missing here"),
        ]
        assert empty_inputs(source, first) == ["amount", "color"]
        assert empty_inputs(source, first._replace(raw=b"1,2")) == []  # of a file with another header


def test_what_a_column_might_be_is_told(tmp_path: Path) -> None:
    with CsvSource(written(tmp_path / "a.csv", CSV), "y", "int") as source:
        source.open()
        (first,) = source.poll(1, 0)
        uses = {use.name: use.use for use in source.columns(first)}
    assert uses["zip"] == "input zip=2134; a code? types: {zip: string} keeps it as it is"
    assert uses["when"] == "input; a date? types: {when: date} makes parts of the calendar of it"


def test_what_becomes_of_each_key() -> None:
    given_ = InputSettings(exclude=("id",), nested="ignore", types={"user": ColumnSettings(nested="flatten")})
    decoder = JsonObjects("y", "int", 20, ColumnRules(given_, 20))
    uses = decoder.columns(b'{"a": 1.5, "user": {"b": true, "c": null}, "log": [1], "y": null}')
    assert [tuple(use) for use in uses] == [
        ("y", "None", "missing", "target, missing"),
        ("log", "a list", "nested", "ignored"),
        ("id", "", "missing", "not in this record, named in exclude"),
        ("a", "1.5", "number", "input"),
        ("user.b", "True", "true or false", "input"),
        ("user.c", "None", "missing", "input, missing here"),
    ]


@pytest.mark.parametrize("kind", ["string", "hash"])
def test_as_text_each_digit_of_a_long_integer_counts(kind: Any) -> None:
    ids = [123456789012345678901234567890 + n for n in range(50)]
    types = {"user.id": ColumnSettings(kind, buckets=10**6), "id": ColumnSettings(kind, buckets=10**6)}
    rules = ColumnRules(InputSettings(nested="flatten", types=types), 256)
    decoder = JsonObjects("y", "int", 256, rules)
    raws = [json.dumps({"user": {"id": one}, "id": one, "y": one}).encode() for one in ids]
    places = [Position("x", 0, n) for n in range(51)]
    records = decoder.records(raws, places[:-1], places[1:])
    assert len({(one.x["user.id"], one.x["id"]) for one in records}) == 50
    assert [one.y for one in records] == ids
    assert kind == "hash" or [one.x["user.id"] for one in records] == list(map(str, ids))
