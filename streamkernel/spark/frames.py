"""Rows of a Spark data frame as chunks of a batch: which columns are inputs, which the target and the weight."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as T

from streamkernel.batch.chunk import BatchChunk
from streamkernel.connectors.names import hint
from streamkernel.records.frames import Frame
from streamkernel.spark.partials import SourceChunk

__all__ = ["ColumnRoles", "roles_of"]

#: What can be an input of a model.
_INPUTS = (T.NumericType, T.BooleanType, T.StringType)


@dataclass(frozen=True)
class ColumnRoles:
    """The columns of a data frame by what they are to a model.

    Attributes
    ----------
    inputs
        The names of the inputs.
    target
        That of the target; None: every row is predicted only, or, where a model has no target, learned.
    weight
        That of the weight; None: each is 1.

    """

    inputs: tuple[str, ...]
    target: str | None
    weight: str | None

    @property
    def names(self) -> list[str]:
        """All of them."""
        return [*self.inputs, *(name for name in (self.target, self.weight) if name is not None)]

    def select(self, df: DataFrame) -> DataFrame:
        """These columns of a data frame, in this order; Spark's functions take names apart, and get plain ones."""
        columns = df.select(*("`" + name.replace("`", "``") + "`" for name in self.names))
        return columns.toDF(*(f"c{number}" for number in range(len(self.names))))

    def chunks(self, batches: Iterable[pa.RecordBatch], unsupervised: bool) -> Iterator[SourceChunk]:
        """The chunks of Arrow batches of these columns, as `select` gives them.

        Parameters
        ----------
        batches
            Their rows.
        unsupervised
            Whether the model learns rows without a target.

        """
        for batch in batches:
            n = batch.num_rows
            k = len(self.inputs)
            inputs = pa.table(batch.columns[:k], list(self.inputs))
            target = [True if unsupervised else None] * n
            if self.target is not None:
                target = batch.column(k).to_pylist()
            weights = None if self.weight is None else batch.columns[-1].to_pylist()
            yield SourceChunk(BatchChunk(Frame(inputs), target, weights))


def roles_of(df: DataFrame, target: str | None, weight: str | None, inputs: Iterable[str] | None) -> ColumnRoles:
    """The roles of the columns of a data frame.

    Parameters
    ----------
    df
        The data frame.
    target, weight
        The names of two columns, or None.
    inputs
        The names of the inputs; None: all others whose type an input can have.

    Raises
    ------
    TypeError
        What names a column is no string.
    ValueError
        There is no such column, or none with a distinct name, it has a type that no input has or
        two roles, or there is no input at all.

    """
    chosen = None if inputs is None else _names_in(inputs)
    beside = [_name(name, role) for name, role in ((target, "target"), (weight, "weight")) if name is not None]
    if len(set(beside)) < len(beside):
        raise ValueError(f"column {target!r} is both target and weight: use another column for the weight")
    types = {field.name: field.dataType for field in df.schema.fields}
    for name in [*(chosen or []), *beside]:
        if name not in types:
            raise ValueError(
                f"there is no column {name!r}: the data frame has {', '.join(map(repr, types))}{hint(name, types)}"
            )
    if target is not None and not isinstance(types[target], (*_INPUTS, T.NullType)):
        kind = types[target].simpleString()
        raise ValueError(f"column {target!r} is of type {kind}: targets are numbers, booleans or strings")
    if weight is not None and not isinstance(types[weight], (T.NumericType, T.BooleanType, T.NullType)):
        kind = types[weight].simpleString()
        raise ValueError(f"column {weight!r} is of type {kind}: weights are numbers")
    if chosen is None:
        chosen = [name for name, kind in types.items() if name not in beside and isinstance(kind, _INPUTS)]
        if not chosen:
            raise ValueError(
                "the data frame has no column that can be an input: inputs are numbers, booleans or strings"
            )
    _check_inputs(chosen, beside, types)
    _check_alone(df, [*chosen, *beside])
    return ColumnRoles(tuple(chosen), target, weight)


def _name(name: Any, role: str) -> str:
    if not isinstance(name, str):
        raise TypeError(f"{role} must be a column name, a string, got {type(name).__name__}")
    return name


def _names_in(inputs: Any) -> list[str]:
    if isinstance(inputs, str) or not isinstance(inputs, Iterable):
        raise TypeError(f"inputs must be a list of column names, got {inputs!r}")
    chosen = [_name(name, "each of inputs") for name in inputs]
    if not chosen:
        raise ValueError("inputs is empty: name at least one column, or leave it out to use all suitable columns")
    return chosen


def _check_inputs(chosen: Sequence[str], beside: Sequence[str], types: Mapping[str, T.DataType]) -> None:
    for name in chosen:
        if name in beside:
            raise ValueError(f"column {name!r} is an input and also target or weight: remove it from inputs")
        if not isinstance(types[name], _INPUTS):
            kind = types[name].simpleString()
            raise ValueError(f"column {name!r} is of type {kind}: inputs are numbers, booleans or strings")
    if len(set(chosen)) < len(chosen):
        raise ValueError("an input is named twice: name each column once")


def _check_alone(df: DataFrame, names: Sequence[str]) -> None:
    """Refuse a name that Spark takes for that of several columns."""
    fold = str if df.sparkSession.conf.get("spark.sql.caseSensitive") == "true" else str.lower
    counts = Counter(fold(name) for name in df.columns)
    for name in names:
        if counts[fold(name)] > 1:
            alike = ", ".join(repr(other) for other in df.columns if fold(other) == fold(name))
            raise ValueError(f"Spark cannot tell the columns {alike} apart by their names: rename one")
