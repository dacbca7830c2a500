"""What a scanner reads in columns is what the decoder of the same records makes of each, to the last bit."""

from __future__ import annotations

import json
import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from streamkernel.connectors.columns.rules import ColumnRules
from streamkernel.connectors.columns.scanner import JsonScanner, ScannedRows
from streamkernel.connectors.columns.settings import ColumnSettings, InputSettings
from streamkernel.connectors.objects import JsonObjects
from streamkernel.connectors.ports import CodedColumn

LONGEST = 12
TARGET_TYPES = ["str", "int", "bool", "float"]
NAMES = ["a", "b", "a.b", "", "a key", "long", "é", "x" * (LONGEST + 1), "y"]

written = st.floats(allow_nan=False).map(repr) | st.integers(-(2**70), 2**70).map(str)
written |= st.sampled_from(
    ["0", "-0", "-0.0", "1.0", "1e5", "1E-400", "1e400", "01", "1.", ".5", "+1", "0.1e1", "1e", "-"]
)
written |= st.builds("{}.{}".format, st.integers(0, 2**80), st.text("0123456789", min_size=1, max_size=25))
texts = st.text(max_size=5) | st.sampled_from(
    ["red", "blue", "1", "true", " ", "x" * (LONGEST + 1), 'a"b', "a\\b", "\n"]
)
values = written | texts.map(lambda text: json.dumps(text, ensure_ascii=False)) | texts.map(json.dumps)
values |= st.sampled_from(
    ["true", "false", "null", "tru", "nul", "NaN", "Infinity", "[1]", '{"b": 1}', '"', '"\\u0041"']
)
blanks = st.sampled_from(["", "", "", " ", "\t", "\r", "\n  "])
pairs = st.tuples(st.sampled_from(NAMES), values, blanks)


def joined(row: list[tuple[str, str, str]]) -> bytes:
    inner = ",".join(
        f"{blank}{json.dumps(name, ensure_ascii=False)}{blank}:{blank}{value}" for name, value, blank in row
    )
    return f"{{{inner}}}".encode("utf-8", "surrogatepass")


objects = st.lists(pairs, max_size=5).map(joined)
records = objects | st.builds(
    lambda raw, at, byte: raw[: at % len(raw)] + byte + raw[at % len(raw) + 1 :],
    *(objects, st.integers(0, 80), st.sampled_from([b"", b" ", b"}", b'"', b"\xff", b"\x00", b"0", b",", b":"])),
)
rules = st.builds(
    InputSettings,
    include=st.none() | st.just(("a", "b", "long")),
    exclude=st.sampled_from([(), ("b",)]),
    na=st.sampled_from([(), ("red",), ("1",)]),
    nested=st.sampled_from(["dead_letter", "ignore", "flatten"]),
    types=st.sampled_from(["auto", "string", "number", "hash"]).map(lambda kind: {"a": ColumnSettings(type=kind)}),
)


def scanned(scanner: JsonScanner, raws: list[bytes]) -> ScannedRows | None:
    lengths = np.array(list(map(len, raws)), np.int64)
    ends = np.cumsum(lengths)
    return scanner.scan(b"".join(raws), ends - lengths, ends)


def bits(value: Any) -> Any:
    """A text, or the bits of a number."""
    return value if isinstance(value, str) else struct.pack("d", value)


def read_back(rows: ScannedRows, row: int) -> dict[str, Any]:
    """What the columns have of a record."""
    numbers = zip(rows.names, rows.numbers[row].tolist(), strict=True)
    found = {name: number for name, number in numbers if number == number}
    return found | {text.name: text.values[text.codes[row]] for text in rows.texts if text.codes[row] >= 0}


def label(rows: ScannedRows, row: int) -> Any:
    if isinstance(rows.targets, CodedColumn):
        code = rows.targets.codes[row]
        return None if code < 0 else rows.targets.values[code]
    value = None if rows.targets is None else float(rows.targets[row])
    return None if value is None or value != value else value


def check(scanner: JsonScanner, decoder: JsonObjects, raws: list[bytes]) -> None:
    rows = scanned(scanner, raws)
    assert rows is not None
    for row in np.flatnonzero(rows.plain).tolist():
        decoded = decoder.decode_one(raws[row])
        assert decoded is not None
        x, y = decoded
        found = {name: bits(value) for name, value in read_back(rows, row).items()}
        assert found == {name: bits(value) for name, value in x.items()}, raws[row]
        assert (type(label(rows, row)), label(rows, row)) == (type(y), y), raws[row]
    for row in np.flatnonzero(~rows.plain).tolist():
        assert read_back(rows, row) == {}


@settings(max_examples=500)
@given(st.lists(st.lists(records, min_size=1, max_size=6), max_size=3), st.sampled_from(TARGET_TYPES), rules)
@example([[b'{"a":18446744073709551616,"y":18446744073709551616}']], "str", InputSettings())
@example(
    [[b'{"a":1,"y":1}', b'{"a":1,"a":2,"y":1}', b'{"y":1.0}', b'{"y":true}', b'{"y":"1"}']], "str", InputSettings()
)
def test_plain_records_are_those_of_the_decoder(
    chunks: list[list[bytes]], target_type: str, given: InputSettings
) -> None:
    made = "y", target_type, LONGEST, ColumnRules(given, LONGEST)
    scanner, decoder = JsonScanner(*made), JsonObjects(*made)
    for raws in chunks:
        if not scanner.resting:
            check(scanner, decoder, raws)


@pytest.mark.parametrize("target_type", TARGET_TYPES)
def test_usual_records_are_plain(target_type: str) -> None:
    made = ("y", target_type, 256)
    scanner, decoder = JsonScanner(*made), JsonObjects(*made)
    raws = [
        b'{"a": 0.1234567890123456, "b": -3, "c": "red", "d": true, "e": null, "y": 1}',
        b' { "y" : 0 , "a" : 1e-7 , "c" : "bl\\"ue" , "b" : 12345678901 } ',
        b'{"a": -0.0, "c": "\xc3\xa9", "d": false, "y": null}',
        b"{}",
    ]
    for _ in range(2):
        check(scanner, decoder, raws)
        rows = scanned(scanner, raws)
        assert rows is not None
        assert rows.plain.all()


def test_new_keys_are_learned_where_they_come_again() -> None:
    scanner = JsonScanner("y", "bool", 256)
    usual, other = b'{"a": 1, "y": true}', b'{"a": 1, "b": 2, "y": true}'
    first = scanned(scanner, [usual, other, usual, usual])
    then = scanned(scanner, [usual, other, usual, usual])
    last = scanned(scanner, [usual, other, usual, usual])
    assert first is not None
    assert then is not None
    assert last is not None
    assert first.plain.tolist() == then.plain.tolist() == [True, False, True, True]
    assert last.plain.all()
    assert last.names == ("a", "b")


def test_a_scanner_rests_where_nothing_fits() -> None:
    scanner = JsonScanner("y", "bool", 256)
    assert scanned(scanner, [b'{"a": [1]}'] * 8) is not None
    assert scanned(scanner, [b'{"a": 1}'] * 8) is None
    assert scanned(JsonScanner(["y", "z"], "bool", 256), [b'{"a": 1}'] * 8) is None
