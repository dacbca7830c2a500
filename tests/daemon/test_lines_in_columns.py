"""Lines and report metrics of results in columns equal those of the same results record by record."""

from __future__ import annotations

import math
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamkernel.connectors import CsvSink
from streamkernel.connectors.encode import ColumnLines, to_json, to_json_lines
from streamkernel.connectors.pass_through import Passed, SourceMessage
from streamkernel.connectors.ports import Position, Record
from streamkernel.daemon.stream.calibration import CalibrationError
from streamkernel.daemon.stream.lines import predictions
from streamkernel.daemon.stream.quality import REPORTS, Quality
from streamkernel.daemon.stream.record_batch import Labeled
from streamkernel.daemon.stream.results import finite, part_of, spread
from streamkernel.estimators.base import AdvanceResult
from streamkernel.records.results import LabelDistributions
from tests.naive.results import lines_of, most_probable

number = st.floats() | st.sampled_from([math.nan, math.inf, -0.0, 1e16, 5e-324])
text = st.text(max_size=5) | st.sampled_from(["a,b", "\ud800", "]", '"', "\u2028", "a\r\nb"])
label = text | st.integers(-(2**70), 2**70) | st.booleans() | st.floats(allow_nan=False)
value = label | st.none() | number | st.lists(st.integers(), max_size=2) | st.dictionaries(text, number, max_size=2)


@st.composite
def of_labels(draw: st.DrawFn) -> tuple[LabelDistributions, list[dict[Any, float]]]:
    """Distributions in a table, and as a dict for each record."""
    labels = draw(st.lists(label, max_size=4, unique=True))
    known = sorted(draw(st.lists(st.integers(0, len(labels)), max_size=6)))
    probability = draw(st.sampled_from([st.floats(0, 1), st.floats(0, 1) | st.just(math.nan)]))
    table = [draw(st.lists(probability, min_size=len(labels), max_size=len(labels))) for _ in known]
    given = np.array(table, float).reshape(len(known), len(labels))
    dicts = [dict(zip(labels[:n], row, strict=False)) for n, row in zip(known, table, strict=True)]
    return LabelDistributions(labels, given, np.array(known, np.int64)), dicts


@st.composite
def of_numbers(draw: st.DrawFn, numbers: st.SearchStrategy[float] = number) -> tuple[AdvanceResult, AdvanceResult]:
    """Numbers as an array and as a list, with deviations or without."""
    found = draw(st.lists(numbers, max_size=6))
    n = len(found)
    deviations = np.array(draw(st.lists(number, min_size=n, max_size=n))) if draw(st.booleans()) else None
    losses = np.zeros(n)
    return AdvanceResult(np.array(found), None, losses, deviations), AdvanceResult(found, None, losses, deviations)


@st.composite
def both(draw: st.DrawFn) -> tuple[AdvanceResult, AdvanceResult]:
    """The same result in columns and in lists."""
    if draw(st.booleans()):
        return draw(of_numbers())
    table, dicts = draw(of_labels())
    losses = np.zeros(len(dicts))
    return AdvanceResult(None, table, losses), AdvanceResult(most_probable(dicts), dicts, losses)


def same(one: Any, other: Any) -> bool:
    return repr(one) == repr(other)  # NaN is not NaN


def assert_same(one: AdvanceResult, other: AdvanceResult) -> None:
    assert same(one.predictions, other.predictions)
    assert same(one.probabilities, other.probabilities)
    assert same(one.losses, other.losses)
    assert same(one.deviations, other.deviations)


@given(both(), st.data())
def test_results_in_columns_are_those_in_lists(pair: tuple[AdvanceResult, AdvanceResult], data: st.DataObject) -> None:
    columns, lists = pair
    assert_same(columns, lists)
    n = len(lists.losses)
    chosen = data.draw(st.lists(st.booleans(), min_size=n, max_size=n))
    assert_same(part_of(columns, chosen), part_of(lists, chosen))
    wide = [*chosen, *([True] * (n - sum(chosen)))]
    assert_same(spread(columns, wide), spread(lists, wide))
    (one, n_wrong), (other, n_others) = finite(columns), finite(lists)
    assert n_wrong == n_others
    assert_same(one, other)


@st.composite
def records(draw: st.DrawFn, n: int) -> list[Record]:
    places = st.tuples(st.integers(0, 1), st.integers(0, 2**60)).map(lambda at: Position("", *at))
    targets = draw(st.sampled_from([label | st.none(), st.booleans(), number, value, st.integers(0, 3) | st.none()]))
    passing = draw(st.sampled_from(["", "columns", "message"]))
    message = SourceMessage(b"k", (), 0) if passing == "message" else None

    def passed() -> Passed | None:
        return Passed({"id": draw(value), "checkpoint": 1}, message) if passing else None

    return [Record({}, draw(targets), draw(places), Position("", 0, 0), b"", passed=passed()) for _ in range(n)]


@given(both(), both(), st.data())
def test_lines_have_the_bytes_of_those_record_by_record(
    pair: tuple[AdvanceResult, AdvanceResult], other: tuple[AdvanceResult, AdvanceResult], data: st.DataObject
) -> None:
    n = len(pair[0].losses)
    rows = data.draw(st.none() | st.lists(st.integers(0, n - 1), max_size=5)) if n else None
    shown = data.draw(records(n if rows is None else len(rows)))
    of_rows = data.draw(st.just({})) if len(other[0].losses) < n else {"other": other, "gone": (None, None)}
    model, checkpoint = data.draw(st.sampled_from(["", "m"])), data.draw(st.sampled_from([None, 7]))
    found = predictions(shown, pair[0], rows, model, {name: one for name, (one, _) in of_rows.items()}, checkpoint)
    expected = lines_of(shown, pair[1], rows, model, {name: one for name, (_, one) in of_rows.items()}, checkpoint)
    assert len(found) == len(expected)
    assert same(list(found), expected)
    assert [getattr(line, "message", None) for line in found] == [getattr(line, "message", None) for line in expected]
    assert bytes(to_json_lines(found)) == b"".join(to_json(line) + b"\n" for line in expected)
    assert csv_of(found) == csv_of(expected)


def csv_of(lines: Any) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "lines.csv")
        with CsvSink(path) as sink:
            sink.open()
            sink.write(lines)
        return path.read_bytes()


columns = st.deferred(
    lambda: (
        st.lists(value, min_size=3, max_size=3)
        | st.lists(number, min_size=3, max_size=3).map(np.array)
        | st.integers(-5, 5).map(lambda least: np.arange(least, least + 3))
        | st.none()
        | text
        | st.dictionaries(text, columns, max_size=3)
    )
)


@given(st.dictionaries(text, columns, max_size=3))
def test_lines_in_columns_are_encoded_like_the_dicts_that_they_stand_for(found: dict[str, Any]) -> None:
    lines = ColumnLines(3, found)
    assert bytes(to_json_lines(lines)) == b"".join(to_json(line) + b"\n" for line in lines)
    assert len(lines) == len(list(lines)) == 3


def test_an_object_of_another_kind_has_no_place_in_a_line() -> None:
    with pytest.raises(TypeError, match="a complex has no place"):
        to_json_lines(ColumnLines(1, {"a": [1j]}))


@given(st.lists(of_labels(), max_size=4), st.data())
def test_metrics_of_tables_are_those_of_dicts(
    chunks: list[tuple[LabelDistributions, list[dict[Any, float]]]], data: st.DataObject
) -> None:
    limit = data.draw(st.integers(1, 5))
    in_columns, in_lists = (Quality("classification", REPORTS["classification"], 4, limit) for _ in range(2))
    error, expected = CalibrationError(5), CalibrationError(5)
    for table, dicts in chunks:
        came = st.sampled_from(table.labels) | label if table.labels else label
        targets = [data.draw(came) for _ in dicts]
        said = most_probable(dicts)
        in_columns.add(targets, said, table)
        in_lists.add(targets, said, dicts)
        error.add(Labeled(targets, said, table))
        expected.add(Labeled(targets, said, dicts))
        for figures in (Quality.overall, Quality.baseline, Quality.rolling):
            assert figures(in_columns) == pytest.approx(figures(in_lists), nan_ok=True)
        assert error.value() == pytest.approx(expected.value(), nan_ok=True)


@given(of_labels(), st.data())
def test_the_same_losses_are_missing_as_record_by_record(
    pair: tuple[LabelDistributions, list[dict[Any, float]]], data: st.DataObject
) -> None:
    table, dicts = pair
    losses = [data.draw(st.sampled_from([0.5, math.nan, math.inf])) for _ in dicts]
    targets = [data.draw(st.sampled_from(table.labels) | label if table.labels else label) for _ in dicts]
    found = Labeled.of(targets, AdvanceResult(None, table, np.array(losses)))
    expected = Labeled.of(targets, AdvanceResult(most_probable(dicts), dicts, np.array(losses)))
    assert found.n_not_finite == expected.n_not_finite
    assert same(list(map(float, found.losses)), expected.losses)
