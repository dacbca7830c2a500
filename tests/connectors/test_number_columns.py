"""Numbers with a decimal comma or marks between the thousands are read where the settings say so, and only there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from streamkernel.connectors.columns.readers import NumberFormat
from streamkernel.connectors.columns.rules import ColumnRules
from streamkernel.connectors.columns.settings import ColumnSettings, InputSettings
from streamkernel.connectors.decode import UndecodableError
from streamkernel.connectors.files.csv import CsvSource

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
        records = source.poll(100, 0)
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
    assert columns.read_all([{"a": "17,50"}, {"a": 2}]) == [{"a": 17.5}, {"a": 2}]
    with pytest.raises(UndecodableError, match="not a number"):
        columns.read({"a": "17.50"})
