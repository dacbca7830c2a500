"""Names that look the same are the same name, however Unicode composes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from unicodedata import normalize

import pytest

from streamkernel.connectors import CsvSource, JsonLinesSource, Source
from streamkernel.connectors.columns.settings import ColumnSettings, InputSettings
from streamkernel.connectors.names import take
from streamkernel.connectors.pass_through import PassedColumn

FORMS = ["NFC", "NFD"]
NAMES = ["größe", "länge", "schlüssel", "ä"]


def read(source: Source) -> list[Any]:
    with source:
        source.open()
        records = source.poll(10, 0)
        assert [source.decode(one.raw, one.position, one.next) for one in records] == records
        return [(one.x, one.y, None if one.passed is None else one.passed.columns) for one in records]


@pytest.mark.parametrize("written", FORMS)
@pytest.mark.parametrize("asked", FORMS)
def test_of_csv(tmp_path: Path, written: str, asked: str) -> None:
    path = tmp_path / "x.csv"
    path.write_text(normalize(written, "größe,länge,schlüssel,ä\n1,02,k,p\n1,02,k,q\n"), encoding="utf-8")
    size, length, key, target = (normalize(asked, name) for name in NAMES)
    inputs = InputSettings(exclude=(key,), types={length: ColumnSettings("string")})
    source = CsvSource(path, target, inputs=inputs)
    source.pass_through([PassedColumn(size, "size")])
    assert read(source) == [({"größe": 1.0, "länge": "02"}, y, {"size": "1"}) for y in "pq"]


@pytest.mark.parametrize("written", FORMS)
@pytest.mark.parametrize("asked", FORMS)
@pytest.mark.parametrize("typed", [False, True])
def test_of_json(tmp_path: Path, written: str, asked: str, typed: bool) -> None:
    path = tmp_path / "x.jsonl"
    lines = [json.dumps({"größe": 1, "länge": 2, "ä": y}, ensure_ascii=False) for y in "pq"]
    path.write_text(normalize(written, "\n".join(lines) + "\n"), encoding="utf-8")
    size, length, _, target = (normalize(asked, name) for name in NAMES)
    inputs = InputSettings(types={length: ColumnSettings("string")}) if typed else None
    source = JsonLinesSource(path, target, inputs=inputs)
    source.pass_through([PassedColumn(size, "size")])
    assert read(source) == [({"größe": 1, "länge": "2" if typed else 2}, y, {"size": 1}) for y in "pq"]


@pytest.mark.parametrize("written", FORMS)
def test_of_what_is_nested(tmp_path: Path, written: str) -> None:
    values = json.loads(normalize(written, '{"maß": {"ä": "p"}, "größe": {"länge": 1, "schlüssel": 7}}'))
    path = tmp_path / "x.jsonl"
    path.write_text(2 * (json.dumps(values) + "\n"))
    inputs = InputSettings(nested="flatten", exclude=("größe.schlüssel",))
    assert read(JsonLinesSource(path, "maß.ä", inputs=inputs)) == 2 * [({"größe.länge": 1}, "p", None)]
    assert take(values, "maß.ä") == "p"
    assert list(values) == [normalize(written, "größe")]
