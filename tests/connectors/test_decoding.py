"""Targets by their type; and lines decoded all at once are, to the type of every value, lines decoded one by one."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from draining import drain, written
from hypothesis import example, given
from hypothesis import strategies as st

from streamkernel.connectors import CsvSource, JsonLinesSource, Record
from streamkernel.connectors.bulk import BulkDecoder
from streamkernel.connectors.decode import TargetDecoder, UndecodableError
from streamkernel.connectors.files import source as file_source
from streamkernel.connectors.files.rows import CsvRows
from streamkernel.connectors.objects import JsonObjects
from streamkernel.connectors.ports import Position, RecordColumns


def test_targets(subtests: pytest.Subtests) -> None:
    for target_type, value, label in [
        ("str", "red", "red"),
        ("str", " red ", " red "),
        ("str", True, "true"),
        ("str", 3, "3"),
        ("str", 2**70, str(2**70)),
        ("str", 0.5, "0.5"),
        ("str", "nan", "nan"),
        ("int", "7", 7),
        ("int", " -7 ", -7),
        ("int", "7.0", 7),
        ("int", 7.0, 7),
        ("int", str(2**70), 2**70),
        ("float", "1e3", 1000.0),
        ("float", 1, 1.0),
        ("bool", "TRUE", True),
        ("bool", " no ", False),
        ("bool", "1", True),
        ("bool", "f", False),
        ("bool", 0, False),
        ("bool", 1.0, True),
        ("bool", True, True),
        ("bool", "1.0", True),
        ("bool", " 0.0 ", False),
        # Equal numbers are one label; true is another, and a text is what stands there.
        ("str", 1.0, "1"),
        ("str", "1.0", "1.0"),
        ("str", -0.0, "0"),
        ("str", 1e300, "1e+300"),
    ]:
        with subtests.test(target_type=target_type, value=value, label=label):
            decoded = TargetDecoder(target_type, 256).decode(value)
            assert decoded == label
            assert type(decoded) is type(label)


def test_a_missing_target_is_unlabeled(subtests: pytest.Subtests) -> None:
    for target_type in ["str", "int", "bool", "float"]:
        for value in [None, "", "  ", math.nan, *(["nan", "NaN", "-nan"] if target_type != "str" else [])]:
            with subtests.test(target_type=target_type, value=value):
                assert TargetDecoder(target_type, 256).decode(value) is None


def test_a_target_that_cannot_be_decoded_is_a_fault(subtests: pytest.Subtests) -> None:
    for target_type, value in [
        ("int", "7.5"),
        ("int", "1_000"),
        ("int", "inf"),
        ("int", "9" * 5000),
        ("int", True),
        ("int", "x"),
        ("int", [1]),
        ("float", "inf"),
        ("float", math.inf),
        ("float", "1e999"),
        ("float", "1_0"),
        ("float", 10**400),
        ("float", True),
        ("float", "x"),
        ("float", {"a": 1}),
        ("bool", "maybe"),
        ("bool", 2),
        ("bool", [True]),
        ("str", [1]),
        ("str", {"a": 1}),
        ("str", math.inf),
        ("str", 10**400),
    ]:
        with subtests.test(target_type=target_type, value=value):
            with pytest.raises(UndecodableError) as raised:
                TargetDecoder(target_type, 256).decode(value)
            assert raised.value.fault.reason == "target"
            assert len(raised.value.fault.detail) < 120


def test_labels_may_not_grow_without_bound() -> None:
    with pytest.raises(UndecodableError) as raised:
        TargetDecoder("str", 3).decode("long")
    assert raised.value.fault.reason == "string_too_long"


def test_an_unknown_target_type_is_named() -> None:
    with pytest.raises(ValueError, match=r"target_type .*'complex'"):
        TargetDecoder("complex", 256)


TARGET_TYPES = ["str", "int", "bool", "float"]


LONGEST = 12


TOO_LONG = "x" * (LONGEST + 1)


def spans(lines: list[bytes]) -> list[Position]:
    offsets = [sum(map(len, lines[:count])) + count for count in range(len(lines) + 1)]
    return [Position("here", 0, offset) for offset in offsets]


def at_once(decoder: BulkDecoder, lines: list[bytes]) -> list[Record]:
    positions = spans(lines)
    return list(decoder.records(lines, positions[:-1], positions[1:]))


def one_by_one(decoder: BulkDecoder, lines: list[bytes]) -> list[Record]:
    positions = spans(lines)
    return [decoder.record(line, *positions[index : index + 2]) for index, line in enumerate(lines)]


def check(make: Callable[[], BulkDecoder], chunks: list[list[bytes]]) -> None:
    quick, plain = make(), make()
    for lines in chunks:
        # As text: 1, 1.0 and True are equal, and so are dictionaries in any order.
        assert repr(at_once(quick, lines)) == repr(one_by_one(plain, lines))


numbers = st.integers() | st.floats() | st.sampled_from([0, 1, -0.0, 2**63, -(2**63) - 1, 2**64, 10**400, 1e300])


words = st.text(max_size=3) | st.sampled_from(["yes", "no", "1", "nan", "red", " ", "1_0", "é", "\u0661", TOO_LONG])


values = numbers | words | st.none() | st.booleans() | st.just([1]) | st.just({"b": 1})


names = st.sampled_from(["a", "b", "y", "é", TOO_LONG]) | st.text(max_size=2)


json_lines = (
    st.builds(
        lambda value, ascii_only: json.dumps(value, ensure_ascii=ascii_only).encode("utf-8", "replace"),
        st.dictionaries(names, values, max_size=4),
        st.booleans(),
    )
    | st.builds(lambda a, y: json.dumps({"a": a, "y": y}).encode(), numbers, numbers | st.booleans())
    | st.sampled_from([b"", b" ", b"{}", b"[]", b"null", b"7", b'{"a":NaN,"y":1}', b'{"a":1e999}', b'{"y":-1e999}'])
    | st.sampled_from([b'{"a":1,"a":2,"y":0,"y":1}', b'{"y":18446744073709551617}', b'{"y":1e19}', b'{"y":"1e19"}'])
    | st.sampled_from([b'{"a":1', b'"b":2}', b'{"a":1},{"b":2}', b"{}}", b"\xff", b'{"a":"\\ud800"}', b'{"a":"\xff"}'])
    | st.binary(max_size=6).map(lambda line: line.replace(b"\n", b""))
)


# Most lines are sound: with faults in every chunk hardly one would be decoded at once.
plain_json = st.builds(
    lambda name, a, b, y: json.dumps({name: a, "b": b, "y": y}).encode(),
    st.sampled_from(["a", "a", "a", "c", TOO_LONG]),
    st.integers(-9, 9) | st.booleans() | st.floats(-9, 9),
    st.floats(-9, 9),
    st.sampled_from([1, 0, 1.0, None]),
)


@given(
    chunks=st.lists(st.lists(json_lines | plain_json, max_size=8) | st.lists(plain_json, max_size=8), max_size=3),
    target=st.sampled_from(["y", None]),
    target_type=st.sampled_from(TARGET_TYPES),
)
def test_json_lines(chunks: list[list[bytes]], target: str | None, target_type: str) -> None:
    check(lambda: JsonObjects(target, target_type, LONGEST), chunks)


csv_fields = (
    st.sampled_from(["1", "-2.5", "0", "-0", " 3 ", "nan", "inf", "1e999", "1_0", "\u0661", "", " ", "red", TOO_LONG])
    | st.sampled_from(["yes", "no", "true", "1.0", "é", "a\rb", '"q"', '"a,b"', '"', 'a"b', '"a""b"', '"x\ny"', "\0"])
    | st.floats().map(repr)
    | st.text(st.characters(exclude_characters="\n", codec="latin-1"), max_size=3)
)


csv_lines = (
    st.lists(csv_fields, min_size=3, max_size=3).map(",".join)
    | st.lists(csv_fields, max_size=4).map(",".join)
    | st.sampled_from(["1,2,yes", "1.5,,no", "red,2,yes", "blue,nan,no", "", " "])
)


plain_csv = st.builds("{!r},{},{}".format, st.floats(-9, 9), st.integers(-9, 9), st.sampled_from(["1", "0", "1.0"]))


milder_csv = st.builds(
    "{},{},{}".format,
    st.sampled_from(["1", "2_0", "3", "nan", "", "1e308", "inf"]),
    st.sampled_from(["red", "4", "b\r", '"a,b"', '"x\ny"']),
    st.sampled_from(["1", "0", "1_0", "1\r", ""]),
)


@given(
    chunks=st.lists(
        st.lists(csv_lines | plain_csv, max_size=8)
        | st.lists(plain_csv | milder_csv, max_size=4)
        | st.lists(plain_csv, max_size=4),
        max_size=3,
    ),
    target=st.sampled_from(["y", "a", None]),
    target_type=st.sampled_from(TARGET_TYPES),
    encoding=st.sampled_from(["utf-8", "latin-1"]),
)
@example([['"1",2,yes', "1,2,no\r"]], "y", "str", "utf-8")
@example([['1,2,"yes', '1",2,no']], "y", "str", "utf-8")
@example([['1,2,"yes', '1",2,no', '"1"', "1,2,yes"]], "y", "str", "utf-8")
@example([["1,2,3", "1,2,1_0"]], "y", "float", "utf-8")
def test_csv(chunks: list[list[str]], target: str | None, target_type: str, encoding: str) -> None:
    # The line feeds are those of records joined from several lines. In UTF-8 some of the bytes are no text.
    encoded = [[line.encode(encoding, "replace") for line in lines] for lines in chunks]
    encoded.append([b"\xe9,1,yes", b"1,2,no"])
    encoded.append([b"1,2,no", b"a,b,y", b"\xef\xbb\xbfa,b,y", b"\xef\xbb\xbf1,2,yes", b"\xef\xbb\xbf", b'"a",b,y'])
    check(lambda: CsvRows(["a", "b", "y"], target, target_type, ",", encoding, LONGEST), encoded)


ORDINARY = {
    "numbers.csv": b"a,b,y\n" + b"1,-2.5,0\n3,4e5,1\n" * 9,
    "words.csv": b"a,b,y\n" + b"red,1,yes\nblue,,no\n" * 9,
    "gaps.csv": b"a,b,y\n" + b"nan,1,yes\n2.5,,\n" * 9,
    "quoted.csv": b"a,b,y\n" + b'"1","x, y","yes"\n2,z,no\n' * 9,
    "numbers.jsonl": b'{"a": 1, "b": -2.5, "y": true}\n{"a": true, "y": 0}\n' * 9,
    "words.jsonl": b'{"a": "red", "b": null, "y": "yes"}\n{"c": 1, "y": null}\n' * 9,
}


KINDS: dict[str, tuple[Any, type[BulkDecoder]]] = {
    ".csv": (CsvSource, CsvRows),
    ".jsonl": (JsonLinesSource, JsonObjects),
}


def polled(path: Path) -> tuple[Any, Any]:
    """The records of a file, and the calls that decode one alone before somebody asks for it."""
    kind, decoder = KINDS[path.suffix]
    with (
        mock.patch.object(decoder, "decode_one", autospec=True, side_effect=decoder.decode_one) as decode,
        kind(path, target="y") as source,
    ):
        source.open()
        records = source.poll(100, timeout=0)
        return records, [call.args[1] for call in decode.call_args_list]


@pytest.mark.parametrize("name", ORDINARY)
def test_ordinary_lines_are_never_decoded_one_by_one(tmp_path: Path, name: str) -> None:
    path = written(tmp_path / name, ORDINARY[name])
    records, decoded = polled(path)
    assert isinstance(records, RecordColumns)
    # A key is known once it came in the first object, or twice in others.
    assert decoded == ([b'{"c": 1, "y": null}'] * 9 if name == "words.jsonl" else [])
    assert len(records) == 18
    assert not any(record.fault for record in records)


@pytest.mark.parametrize(("name", "line"), [("numbers.csv", b"1,2"), ("numbers.jsonl", b'{"a": NaN, "y": 1}')])
def test_an_odd_line_leaves_the_others_as_they_are(tmp_path: Path, name: str, line: bytes) -> None:
    path = written(tmp_path / name, ORDINARY[name] + line + b"\n" + ORDINARY[name].partition(b"\n")[2])
    assert polled(path)[1] == [line]


def test_a_poll_takes_no_more_bytes_than_fit_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path / "data.jsonl", b'{"a": 1}\n' * 100)
    reference = drain(JsonLinesSource(path))
    monkeypatch.setattr(file_source, "MOST_BYTES", 50)
    monkeypatch.setattr("streamkernel.connectors.files.lines.MOST_BYTES", 50)
    monkeypatch.setattr("streamkernel.connectors.files.bytes.BLOCK_BYTES", 27)
    with JsonLinesSource(path) as source:
        source.open()
        assert len(source.poll(100, timeout=0)) == 6
    assert drain(JsonLinesSource(path)) == reference
