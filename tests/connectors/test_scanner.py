"""Records that are scanned into columns have there, to the last bit, what their decoder makes of each of them."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from streamkernel.connectors.bulk import BulkDecoder
from streamkernel.connectors.columns.rules import ColumnRules
from streamkernel.connectors.columns.scanner import ColumnScanner, JsonScanner, ScannedRows
from streamkernel.connectors.columns.settings import ColumnSettings, InputSettings
from streamkernel.connectors.objects import JsonObjects
from streamkernel.connectors.ports.columns import CodedColumn

LONGEST = 8
TYPES = st.sampled_from(["str", "int", "bool", "float"])
NUMBERS = st.one_of(
    st.floats().map(repr),
    st.integers(-(2**70), 2**70).map(str),
    st.integers(-20, 20).map(str),
    st.text("0123456789+-.eE_", max_size=8),
    st.text("0123456789", min_size=1, max_size=40).map("0.".__add__),
    st.builds("{}e{}".format, st.integers(-(2**64), 2**64), st.integers(-345, 310)),
    st.sampled_from(["-0", "-0.0", "0e0", "NaN", "Infinity", "1e400", "9007199254740993", "9223372036854775808"]),
)
WORDS = st.one_of(
    st.sampled_from(["red", "a", "y", "1", "1.5", "-1", "nan", "true", "no", "", "  ", "1_0", "\u0661", "0" * 9, "NA"]),
    st.text('ab \u00e9\u0301\U0001f600"\\/\n\t\u2028\u00a0\x7f', max_size=10),
    st.text(max_size=4),
)
SETTINGS = st.builds(
    InputSettings,
    include=st.sampled_from([None, ("a", "b", "c"), ("a", "d.e")]),
    exclude=st.sampled_from([(), ("b",)]),
    na=st.sampled_from([(), ("NA", "red"), ("-1", "1.5")]),
    nested=st.sampled_from(["dead_letter", "flatten"]),
    decimal=st.sampled_from([None, ","]),
    types=st.dictionaries(
        st.sampled_from(["a", "b", "d.e"]),
        st.builds(
            ColumnSettings,
            type=st.sampled_from(["auto", "string", "number", "date", "hash"]),
            na=st.sampled_from([None, ("7",)]),
            invalid=st.sampled_from(["dead_letter", "missing"]),
        ),
        max_size=2,
    ),
)


def scanned(scanner: ColumnScanner, raws: Sequence[bytes], between: bytes = b"\n") -> ScannedRows | None:
    lengths = np.array(list(map(len, raws)), np.int64)
    ends = np.cumsum(lengths + len(between)) - len(between)
    return scanner.scan(between.join(raws), ends - lengths, ends)


def _bits(value: Any) -> Any:
    return struct.pack("d", value) if isinstance(value, float | int) else value


def check(scanner: ColumnScanner, decoder: BulkDecoder, raws: Sequence[bytes], between: bytes = b"\n") -> list[bool]:
    """Each plain record's columns are what its decoder makes of it; odd ones have none. Returns which are plain."""
    rows = scanned(scanner, raws, between)
    if rows is None:
        return []
    for row, raw in enumerate(raws):
        numbers = dict(zip(rows.names, rows.numbers[row].tolist(), strict=True))
        found = {name: number for name, number in numbers.items() if not math.isnan(number)}
        texts = {text.name: text.values[text.codes[row]] for text in rows.texts if text.codes[row] >= 0}
        assert not found.keys() & texts.keys()
        found |= texts
        if isinstance(rows.targets, CodedColumn):
            code = rows.targets.codes[row]
            label = rows.targets.values[code] if code >= 0 else None
        else:
            label = None if rows.targets is None or math.isnan(rows.targets[row]) else rows.targets[row].item()
        if not rows.plain[row]:
            assert (found, label) == ({}, None)
            continue
        decoded = decoder.decode_one(raw)
        assert decoded is not None
        x, y = decoded
        assert type(label) is type(y)
        assert _bits(label) == _bits(y)
        assert {name: _bits(value) for name, value in found.items()} == {name: _bits(x[name]) for name in x}
    return rows.plain.tolist()


def _string(text: str) -> st.SearchStrategy[str]:
    return st.booleans().map(lambda ascii_only: json.dumps(text, ensure_ascii=ascii_only))


BLANKS = st.sampled_from(["", "", "", " ", "\r\n", "\t "])
KEYS = st.sampled_from(["a", "b", "c", "y", "d.e", "", "\u00e9", "k" * 9, "q\\"])
VALUES = st.one_of(
    NUMBERS, WORDS.flatmap(_string), st.sampled_from(["true", "false", "null", "[1]", '{"e": 1}', "nul"])
)
PAIRS = st.builds("{}{}{}:{}{}{}".format, BLANKS, KEYS.flatmap(_string), BLANKS, BLANKS, VALUES, BLANKS)
OBJECTS = st.builds("{0}{{{1}}}{2}".format, BLANKS, st.lists(PAIRS, max_size=5).map(",".join), BLANKS)


@st.composite
def damaged(draw: st.DrawFn, records: st.SearchStrategy[str], letters: bytes) -> bytes:
    """A record. Some of its bytes may be changed, missing or extra."""
    raw = bytearray(draw(records).encode())
    for _ in range(draw(st.sampled_from([0, 0, 1, 2]))):
        at, cut = draw(st.integers(0, len(raw))), draw(st.integers(0, 2))
        raw[at : at + cut] = draw(st.sampled_from([b"", *(bytes([letter]) for letter in letters)]))
    return bytes(raw)


JSON = damaged(OBJECTS, b'{}[],:"\\ \x00\x1f\x7f\xff\xc3\xa9\xef019-+.eEtn_')


@settings(max_examples=400, deadline=None)
@given(
    st.lists(st.lists(JSON, min_size=1, max_size=6), max_size=4), TYPES, SETTINGS, st.sampled_from(["y", "d.e", None])
)
@example([[b'{"a": 1, "y": 0}'], [b"", b"\xef\xbb\xbf{}"], [b""]], "bool", InputSettings(), "y")
def test_objects(calls: list[list[bytes]], target_type: str, inputs: InputSettings, target: str | None) -> None:
    rules = ColumnRules(inputs, LONGEST)
    scanner, decoder = (made(target, target_type, LONGEST, rules) for made in (JsonScanner, JsonObjects))
    for raws in calls:
        scanner._rest = 0
        check(scanner, decoder, raws)


@settings(max_examples=400, deadline=None)
@given(st.lists(NUMBERS, min_size=1, max_size=40), TYPES)
def test_numbers_of_json(numbers: list[str], target_type: str) -> None:
    raws = [b'{"a": 1, "y": 1}', *(f'{{"a": {number}, "y": {number}}}'.encode() for number in numbers)]
    check(JsonScanner("y", target_type, LONGEST), JsonObjects("y", target_type, LONGEST), raws)


@pytest.mark.parametrize("between", [b"", b"\n", b"\xc3"])
def test_bytes_beside_a_record_do_not_count(between: bytes) -> None:
    raws = [b'{"a": 12}', b'{"a": 1', b'{"a": 1}', b'"b": 1}', b"{}", '{"a": "\u00e9"}'.encode(), b'{"a": "\xc3']
    plain = check(JsonScanner(None, "str", LONGEST), JsonObjects(None, "str", LONGEST), raws, between)
    assert plain[:5] == [True, False, True, False, True]


def test_usual_objects_are_plain() -> None:
    rng = np.random.default_rng(1)
    columns = {f"x{k}": rng.normal(size=300).tolist() for k in range(8)} | {"n": rng.integers(0, 10**9, 300).tolist()}
    columns |= {
        "text": rng.choice(["red", "gr\u00fcn", 'a "b"', ""], 300).tolist(),
        "y": rng.integers(0, 2, 300).tolist(),
    }
    raws = [
        json.dumps(dict(zip(columns, row, strict=True)), ensure_ascii=False).encode()
        for row in zip(*columns.values(), strict=True)
    ]
    for target_type in ("str", "int", "bool", "float"):
        rules = ColumnRules(InputSettings(types={"n": ColumnSettings("string")}), 64)
        scanner, decoder = (made("y", target_type, 64, rules) for made in (JsonScanner, JsonObjects))
        for start in range(0, 300, 100):
            assert all(check(scanner, decoder, raws[start : start + 100]))


def test_keys_that_come_again_are_learned() -> None:
    scanner, decoder = JsonScanner("y", "int", LONGEST), JsonObjects("y", "int", LONGEST)
    assert check(scanner, decoder, [b'{"a": 1, "y": 1}'] * 4 + [b'{"b": 1, "y": 1}'] * 2) == [True] * 4 + [False] * 2
    assert check(scanner, decoder, [b'{"b": 1, "y": 1}', b'{"a": 1}', b'{"a": 1, "b": 2, "a": 3}']) == [
        True,
        True,
        False,
    ]


def test_more_words_than_there_is_room_for() -> None:
    scanner, decoder = JsonScanner(None, "str", 9000), JsonObjects(None, "str", 9000)
    for start in (0, 9000):
        raws = [b'{"a": "%d"}' % number for number in range(start, start + 9000)]
        assert check(scanner, decoder, raws) == [True] * 8192 + [False] * 808
    long = [b'{"a": "%b"}' % (b"x" * length) for length in (4000, 5000)] * 300
    plain = check(scanner, decoder, long)
    assert plain == [True, False] * 300


def test_a_scanner_rests_where_most_records_are_odd() -> None:
    scanner = JsonScanner(None, "str", LONGEST)
    assert scanned(scanner, [b"{}", b"[]", b"[]"]) is not None
    assert all(scanned(scanner, [b"{}"] * 512) is None for _ in range(2))
    assert scanned(scanner, [b"{}"]) is not None


def test_a_record_is_within_the_bytes() -> None:
    with pytest.raises(ValueError, match="within"):
        JsonScanner(None, "str", LONGEST).scan(b"{}", np.array([0]), np.array([3]))
