"""Arrow columns of lines: their names and types, and the conversion of values."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from streamkernel.connectors.class_columns import PROBABILITIES, ClassColumns
from streamkernel.connectors.encode import to_json
from streamkernel.connectors.pass_through import ColumnType, PassedColumn
from streamkernel.connectors.ports import SinkError

__all__ = ["LineColumns", "ParquetColumn", "prediction_columns"]

_log = logging.getLogger(__name__)

_Type: TypeAlias = ColumnType | Literal["int32", "probabilities"]
_ARROW: Mapping[_Type, pa.DataType] = {
    "str": pa.string(),
    "int": pa.int64(),
    "int32": pa.int32(),
    "float": pa.float64(),
    "bool": pa.bool_(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "probabilities": pa.map_(pa.string(), pa.float64()),
}
_LARGEST = 2**63 - 1


class ParquetColumn(NamedTuple):
    """A column: its name and type."""

    name: str
    type: _Type


def prediction_columns(
    target_type: ColumnType,
    classes: Sequence[Any] = (),
    included: Sequence[PassedColumn] = (),
    *,
    checkpoint: bool = False,
) -> tuple[ParquetColumn, ...]:
    """Return the columns of predictions.

    Parameters
    ----------
    target_type
        The type of predictions and targets. Numbers (``"float"``) have a standard deviation, others probabilities.
    classes
        Classes with a column each. Without any, one column maps all classes to their probabilities.
    included
        The pass-through columns, text if they have no type.
    checkpoint
        Whether the lines name the checkpoint of the model.

    Examples
    --------
    >>> [name for name, _ in prediction_columns("bool", [True], [PassedColumn("id", "id", "int")])][3:]
    ['target', 'probability_true', 'other_probability', 'id']

    """
    own = [
        ParquetColumn("partition", "int32"),
        ParquetColumn("offset", "int"),
        ParquetColumn("prediction", target_type),
        ParquetColumn("target", target_type),
    ]
    if target_type == "float":
        own.append(ParquetColumn("std", "float"))
    elif classes:
        own += [ParquetColumn(name, "float") for name in ClassColumns(classes).names]
    else:
        own.append(ParquetColumn(PROBABILITIES, "probabilities"))
    if checkpoint:
        own.append(ParquetColumn("checkpoint", "int"))
    return (*own, *(ParquetColumn(one.name, one.type or "str") for one in included))


class LineColumns:
    """A converter of lines to batches of Arrow.

    Parameters
    ----------
    columns
        The columns; ``partition`` and ``offset`` come from the line's position.
    classes
        The classes with a column each.

    Attributes
    ----------
    schema
        The Arrow schema.

    Examples
    --------
    >>> lines = LineColumns(prediction_columns("str"))
    >>> line = {"position": {"partition": 0, "offset": 7}, "prediction": "a", "target": None, "probabilities": {"a": 1}}
    >>> lines.batch([line]).to_pylist()
    [{'partition': 0, 'offset': 7, 'prediction': 'a', 'target': None, 'probabilities': [('a', 1.0)]}]

    """

    def __init__(self, columns: Sequence[ParquetColumn], classes: Sequence[Any] = ()) -> None:
        self.columns = tuple(columns)
        self.schema = pa.schema([(name, _ARROW[kind]) for name, kind in columns])
        self._spread = ClassColumns(classes)
        self._known = {"position", PROBABILITIES, "std", *(name for name, _ in columns)}
        self._warned: set[str] = set()

    def batch(self, lines: Sequence[Mapping[str, Any]]) -> pa.RecordBatch:
        """Return lines as one batch; raise SinkError for a name without a column."""
        if not self._known.issuperset(lines[0]):
            unknown = next(name for name in lines[0] if name not in self._known)
            raise SinkError(f"parquet: there is no column for {unknown!r} of a line")
        lines = list(map(self._spread, lines)) if self._spread.names else lines
        arrays = [pa.array(self._values(column, lines), _ARROW[column.type]) for column in self.columns]
        return pa.record_batch(arrays, schema=self.schema)

    def _values(self, column: ParquetColumn, lines: Sequence[Mapping[str, Any]]) -> list[Any]:
        name, kind = column
        if name in ("partition", "offset"):
            return [line["position"][name] for line in lines]
        values = [line.get(name) for line in lines]
        if kind == "probabilities":
            return [None if value is None else list(_pairs(value)) for value in values]
        return [self._fitting(name, _READ[kind], value) for value in values]

    def _fitting(self, name: str, read: Callable[[Any], Any], value: Any) -> Any:
        """Return a value of a column's type, or None and warn once."""
        try:
            return None if value is None else read(value)
        except (ValueError, TypeError, OverflowError):
            if name not in self._warned:
                self._warned.add(name)
                _log.warning("%.60r does not fit the type of column %s: such values are null", value, name)
            return None


def _pairs(probabilities: Mapping[Any, float]) -> Iterator[tuple[str, float | None]]:
    for label, probability in probabilities.items():
        yield _text(label), _float(probability)


def _text(value: Any) -> str:
    text = value if isinstance(value, str) else to_json(value).decode()
    # Arrow's text is UTF-8, which has no lone surrogates.
    return text.encode("utf-8", "backslashreplace").decode()


def _integer(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or abs(int(value)) > _LARGEST:
        raise TypeError(value)
    return int(value)


def _float(value: Any) -> float | None:
    if isinstance(value, str | bool):
        raise TypeError(value)
    number = float(value)
    return number if math.isfinite(number) else None


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise TypeError(value)
    return bool(value)


_READ: Mapping[_Type, Callable[[Any], Any]] = {
    "str": _text,
    "int": _integer,
    "float": _float,
    "bool": _boolean,
    "timestamp": datetime.fromisoformat,
}
