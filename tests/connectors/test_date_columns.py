"""The parts of the calendar that columns of dates become."""

from __future__ import annotations

import pytest

from streamkernel.connectors.columns.dates import PARTS, DateParts
from streamkernel.connectors.pass_through_reader import to_timestamp


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
