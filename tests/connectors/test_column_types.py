"""Numbers with a decimal comma, dates, and names that Unicode composes in two ways."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from unicodedata import normalize

import pytest

from streamkernel.connectors import CsvSource, JsonLinesSource, Source
from streamkernel.connectors.columns.dates import PARTS, DateParts
from streamkernel.connectors.columns.readers import NumberFormat
from streamkernel.connectors.columns.rules import ColumnRules
from streamkernel.connectors.columns.settings import ColumnSettings, InputSettings
from streamkernel.connectors.decode import UndecodableError
from streamkernel.connectors.names import take
from streamkernel.connectors.pass_through import PassedColumn
from streamkernel.connectors.pass_through_reader import to_timestamp

GERMAN = InputSettings(decimal=",", thousands=".")


@pytest.mark.parametrize(
    ("decimal", "thousands", "text", "number"),
    [
        (",", ".", "1.104,27", 1104.27),
        (",", ".", " -17,50 ", -17.5),
        (",", ".", "1.000", 1000.0),
        (",", ".", "17", 17.0),
        (",", ".", ",5", 0.5),
        (",", "", "1,5e3", 1500.0),
        (".", ",", "1,234,567.8", 1234567.8),
        (",", " ", "1\u202f234,5", 1234.5),
        (".", "'", "1\u2019234.5", 1234.5),
        (",", ".", "17.50", None),
        (",", ".", "1.10,4", None),
        (",", ".", "1.1.2024", None),
        (",", ".", "030.123.456", None),  # of a telephone
        (",", ".", "1,2,3", None),
        (",", "", "1.000", None),
        (",", ".", "1_000", None),
        (",", ".", "inf", None),
        (",", ".", ",", None),
    ],
)
def test_a_number_is_read_as_it_is_written(decimal: str, thousands: str, text: str, number: float | None) -> None:
    numbers = NumberFormat(decimal, thousands)
    if number is None:
        with pytest.raises(ValueError, match=r".*"):
            numbers.plain(text)
    else:
        assert float(numbers.plain(text)) == number


def csv(folder: Path, inputs: InputSettings, *prices: str, target: str | None = None) -> list[Any]:
    """What is read of a column of prices, record by record: its value, or why there is none."""
    path = folder / "comma.csv"
    path.write_text("\n".join(["price;color", *(f"{price};red" for price in prices)]) + "\n", encoding="utf-8")
    with CsvSource(path, target, "float", ";", inputs=inputs) as source:
        source.open()
        records = list(source.poll(100, 0))
        one_by_one = [source.decode(one.raw, one.position, one.next) for one in records]
    assert records == one_by_one
    return [one.fault.reason if one.fault else one.y if target else one.x.get("price") for one in records]


class TestCsv:
    def test_by_default_a_point_is_a_point(self, tmp_path: Path) -> None:
        assert csv(tmp_path, InputSettings(), "1.000", "17,50") == [1.0, "17,50"]

    def test_for_all_columns(self, tmp_path: Path) -> None:
        prices = ("1.104,27", "", "nan", "17.50", "2.000", "-5")
        # What is no number stays a text, where no type is declared.
        assert csv(tmp_path, GERMAN, *prices) == [1104.27, None, None, "17.50", 2000.0, -5.0]

    def test_in_a_column_of_numbers_anything_else_is_a_dead_letter(self, tmp_path: Path) -> None:
        typed = InputSettings(decimal=",", na=("-1",), types={"price": ColumnSettings("number")})
        assert csv(tmp_path, typed, "17,50", "17.50", "free", "-1,0") == [17.5, "input_type", "input_type", None]
        plain = InputSettings(types={"price": ColumnSettings("number")})
        assert csv(tmp_path, plain, "17.50", "17,50") == [17.5, "input_type"]

    def test_for_one_column_in_place_of_those_for_all(self, tmp_path: Path) -> None:
        one = ColumnSettings("number", decimal=".", invalid="missing")
        assert csv(tmp_path, InputSettings(decimal=",", types={"price": one}), "1.5", "1,5") == [1.5, None]

    def test_of_a_target_that_is_a_number(self, tmp_path: Path) -> None:
        assert csv(tmp_path, GERMAN, "1.104,27", "17.50", "", target="price") == [1104.27, "target", None]
        assert csv(tmp_path, InputSettings(), "1.5", "17,50", target="price") == [1.5, "target"]


def test_in_json_only_a_column_of_numbers_is_read_so() -> None:
    inputs = InputSettings(decimal=",", types={"a": ColumnSettings("number")})
    columns = ColumnRules(inputs, 256)
    assert columns.read({"a": "17,50", "b": "17,50", "c": 1.5}) == {"a": 17.5, "b": "17,50", "c": 1.5}
    assert columns.read({"a": 2}) == {"a": 2}
    with pytest.raises(UndecodableError, match="not a number"):
        columns.read({"a": "17.50"})


@pytest.mark.parametrize(
    ("text", "format", "zone", "expected"),
    [
        ("2024-02-29", "iso", None, [2024, 1, 2, 9, 29, 60, 3, None, None, None, None, 19782]),
        ("2024-02-29T18:30:15", "iso", None, [2024, 1, 2, 9, 29, 60, 3, 18, 30, 15, 0.7710069444, 19782.7710069444]),
        ("2024-12-31 23:00:00Z", "iso", "Europe/Berlin", [2025, 1, 1, 1, 1, 1, 2, 0, 0, 0, 0, 20089]),
        (
            "2024-12-31T23:00:00",
            "iso",
            "Europe/Berlin",
            [2024, 4, 12, 1, 31, 366, 1, 23, 0, 0, 23 / 24, 20088 + 23 / 24],
        ),
        ("31.12.2024", "%d.%m.%Y", None, [2024, 4, 12, 1, 31, 366, 1, None, None, None, None, 20088]),
        ("31.12.2024 07h", "%d.%m.%Y %Hh", None, [2024, 4, 12, 1, 31, 366, 1, 7, 0, 0, 7 / 24, 20088 + 7 / 24]),
        ("86400", "unix", None, [1970, 1, 1, 1, 2, 2, 4, 0, 0, 0, 0, 1]),
        ("1.5", "unix_ms", "Asia/Tokyo", [1970, 1, 1, 1, 1, 1, 3, 9, 0, 0, 0.375, 0.375]),
    ],
)
def test_the_parts_of_a_date(text: str, format: str, zone: str | None, expected: list[float | None]) -> None:
    found = DateParts(format, list(PARTS), cyclic=False, timezone=zone).read(text)
    assert found == [one if one is None else pytest.approx(one) for one in expected]


def test_parts_that_come_round() -> None:
    dates = DateParts("iso", ["year", "month", "hour"], cyclic=True, timezone=None)
    assert dates.names == ["year", "month.sin", "month.cos", "hour.sin", "hour.cos"]
    assert dates.read("2024-04-01T12:00") == [
        2024,
        pytest.approx(1),
        pytest.approx(0, abs=1e-9),
        *map(pytest.approx, [0, -1]),
    ]
    assert dates.read("2024-01-01") == [2024, 0, 1, None, None]


@pytest.mark.parametrize("text", ["", "now", "9999999999999999", "nan", "inf", "-1e300"])
def test_no_time_stamp_is_an_error_of_one_kind(text: str) -> None:
    for format in ("iso", "unix", "unix_ms"):
        if (text, format) != ("9999999999999999", "iso"):
            with pytest.raises(ValueError, match=r"\w"):
                DateParts(format, ["year"], cyclic=False, timezone=None).read(text)


@pytest.mark.parametrize(
    ("text", "format", "expected"),
    [
        ("2016-12-31T23:59:60Z", "iso", [2017, 1, 1, 0, 0]),
        ("2016-12-31T23:59:60.5Z", "iso", [2017, 1, 1, 0, 0]),
        ("2017-01-01T05:29:60+05:30", "iso", [2017, 1, 1, 5, 30]),
        ("2024-06-30T24:00:00", "iso", [2024, 7, 1, 0, 0]),
        ("2024-06-30T24:00+02:00", "iso", [2024, 7, 1, 0, 0]),
        ("30.06.2024 24:00", "%d.%m.%Y %H:%M", [2024, 7, 1, 0, 0]),
        ("31.12.2016 23:59:60", "%d.%m.%Y %H:%M:%S", [2017, 1, 1, 0, 0]),
        ("29/02", "%d/%m", [2000, 2, 29, None, None]),
        ("2024-06-30T12:34:60Z", "iso", None),
        ("2024-06-30T24:00:01", "iso", None),
        ("2024-06-30T24:30", "iso", None),
        ("30/02", "%d/%m", None),
        ("9999-12-31T24:00:00", "iso", None),
    ],
)
def test_the_end_of_a_day_and_of_february(text: str, format: str, expected: list[float | None] | None) -> None:
    dates = DateParts(format, ["year", "month", "day", "hour", "minute"], cyclic=False, timezone=None)
    if expected is None:
        with pytest.raises(ValueError, match=r".*"):
            dates.read(text)
    else:
        assert dates.read(text) == expected


def test_a_time_stamp_that_passes_may_be_a_leap_second() -> None:
    assert to_timestamp("2016-12-31T23:59:60Z") == "2017-01-01T00:00:00Z"
    assert to_timestamp("2024-06-30T24:00:00+02:00") == "2024-06-30T22:00:00Z"


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
