"""Records in columns are the records that a decoder makes one by one, and models learn the same from both."""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamkernel import AdaptiveKernelClassifier, KernelClassifier
from streamkernel.connectors.objects import JsonObjects
from streamkernel.connectors.pass_through import PassedColumn
from streamkernel.connectors.pass_through_reader import PassThrough
from streamkernel.connectors.ports import (
    ConnectorError,
    Offsets,
    Position,
    Record,
    RecordColumns,
    at_places,
    unusable_places,
)
from streamkernel.daemon.stream.column_inputs import ColumnInputs
from streamkernel.records.frames import FrameColumns

values = st.floats(-3, 3) | st.integers(-5, 5) | st.sampled_from(["red", "blue", "", "é"]) | st.booleans() | st.none()
objects = st.dictionaries(st.sampled_from("abcé"), values)
lines = objects.map(lambda x: json.dumps(x).encode()) | st.sampled_from([b"", b"[1]", b'{"a": [1]}', b'{"a": 1e999}'])


def record(n: int) -> dict[str, Any]:
    return {"a": n / 7, "b": n % 3, "c": ["red", "green", "blue"][n % 3], "y": ["no", "yes"][n % 2]}


def in_columns(
    lines: list[bytes], usual: int = 20, passing: PassThrough | None = None
) -> tuple[RecordColumns, list[Record]]:
    """The records of some lines and as many usual ones as make columns of them; and the same made one by one."""
    raws = [json.dumps(record(n)).encode() for n in range(usual)] + lines
    offsets = np.cumsum([0, *(len(raw) + 1 for raw in raws)])
    positions = Offsets("here", 0, offsets)
    decoder, other = JsonObjects("y", "str", 256), JsonObjects("y", "str", 256)
    decoder.passing = other.passing = passing
    found = decoder.records(raws, positions[:-1], positions[1:])
    assert isinstance(found, RecordColumns)
    # Fewer than four are decoded alone.
    return found, [other.records([raw], positions[at : at + 1], positions[at + 1 :])[0] for at, raw in enumerate(raws)]


def as_dicts(columns: FrameColumns, n: int) -> list[dict[str, Any]]:
    """What a frame's columns hold, by record."""
    found: list[dict[str, Any]] = [{} for _ in range(n)]
    for column, name in enumerate(columns.names):
        for row in np.flatnonzero(~np.isnan(columns.numbers[:, column])).tolist():
            found[row][name] = columns.numbers[row, column]
    for text in columns.texts:
        for row in np.flatnonzero(text.codes >= 0).tolist():
            found[row][text.name] = text.values[text.codes[row]]
    return found


@given(st.lists(lines, max_size=15))
def test_records_in_columns_are_the_records_made_one_by_one(some: list[bytes]) -> None:
    columns, expected = in_columns(some)
    assert list(columns) == expected
    assert [columns[place] for place in range(len(columns))] == expected
    assert columns[-1] == expected[-1]
    assert list(columns[3:-2]) == expected[3:-2]
    assert list(columns.starts) == [one.position for one in expected]
    assert list(columns.ends) == [one.next for one in expected]
    assert columns.targets == [one.y for one in expected]
    assert list(columns.raws) == [one.raw for one in expected]
    assert unusable_places(columns) == unusable_places(expected)
    chosen = np.arange(1, len(expected), 3)
    assert list(at_places(columns, chosen)) == at_places(expected, chosen)


@given(st.lists(lines, max_size=15))
def test_what_passes_is_that_of_the_records_made_one_by_one(some: list[bytes]) -> None:
    passing = PassThrough([PassedColumn("a", "id"), PassedColumn("y", "label", "str")])
    columns, expected = in_columns(some, passing=passing)
    assert expected[0].passed is not None
    assert list(columns) == expected
    assert columns[-1] == expected[-1]
    assert list(columns[3:-2]) == expected[3:-2]
    assert list(columns.usable) == [one for one in expected if one.fault is None and not one.blank]


@given(st.lists(lines, max_size=15))
def test_a_batch_of_arrow_has_the_inputs_and_targets_of_the_records(some: list[bytes]) -> None:
    columns, expected = in_columns(some)
    found = columns.to_arrow().to_pylist()
    assert [one["target"] for one in found] == [one.y for one in expected]
    assert [(one["partition"], one["offset"]) for one in found] == [(0, one.position.offset) for one in expected]
    for row, one in zip(found, expected, strict=True):
        inputs = {**row["numbers"], **{name: text for name, text in row["texts"].items() if text is not None}}
        assert {name: value for name, value in inputs.items() if value is not None} == one.x


@given(st.lists(lines, max_size=15))
def test_a_model_reads_the_inputs_of_the_records(some: list[bytes]) -> None:
    columns, expected = in_columns(some)
    usable = [one.x for one in expected if one.fault is None and not one.blank]
    inputs = ColumnInputs(columns.usable)
    assert list(inputs) == usable
    assert inputs[-1] == usable[-1]
    assert as_dicts(inputs.read(), len(inputs)) == usable


@pytest.mark.parametrize("kind", [KernelClassifier, AdaptiveKernelClassifier])
def test_models_learn_the_same_from_columns_and_from_dicts(kind: Any) -> None:
    odd = [
        b'{"a": 0.5, "d": "new", "y": "no"}',
        b'{"b": {"c": 1}}',
        b'{"e": 2, "y": "yes"}',
        b"",
        b'{"c": 7, "y": "no"}',
    ]
    columns, expected = in_columns(odd, usual=300)
    usable = [one for one in expected if one.fault is None and not one.blank]
    one, other = kind(seed=1), kind(seed=1)
    left = one.advance([record.x for record in usable], [record.y for record in usable])
    right = other.advance(ColumnInputs(columns.usable), columns.usable.targets)
    assert left.predictions == right.predictions
    assert np.array_equal(left.losses, right.losses, equal_nan=True)
    assert one.state_digest() == other.state_digest()


def test_a_position_is_made_where_it_is_asked_for() -> None:
    offsets = Offsets("here", 2, np.array([0, 7, 9]))
    assert offsets[-1] == Position("here", 2, 9)
    assert list(offsets[1:]) == [Position("here", 2, 7), Position("here", 2, 9)]
    assert type(offsets[0].offset) is int


def test_without_pyarrow_there_is_no_batch_of_arrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ConnectorError, match=r"to_arrow needs pyarrow: pip install 'streamkernel\[parquet\]'"):
        in_columns([])[0].to_arrow()
