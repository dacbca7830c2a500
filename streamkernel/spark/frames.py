"""The columns of a Spark data frame by their roles, and its rows as chunks of a batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

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
    """The columns of a data frame by their roles for a model.

    Attributes
    ----------
    inputs
        The names of the inputs.
    target
        The name of the target; None: each row is predicted only, or learned by a model without targets.
    weight
        The name of the weight; None: each is 1.

    """

    inputs: tuple[str, ...]
    target: str | None
    weight: str | None

    def select(self, df: DataFrame) -> DataFrame:
        """Return these columns in this order, with plain names: Spark's functions parse others."""
        names = [*self.inputs, *(name for name in (self.target, self.weight) if name is not None)]
        columns = df.select(*("`" + name.replace("`", "``") + "`" for name in names))
        return columns.toDF(*(f"c{number}" for number in range(len(names))))

    def chunks(self, batches: Iterable[pa.RecordBatch], unsupervised: bool) -> Iterator[SourceChunk]:
        """Yield a chunk for each Arrow batch of the selected columns.

        Parameters
        ----------
        batches
            The rows.
        unsupervised
            Whether the model learns rows without a target.

        """
        k = len(self.inputs)
        for batch in batches:
            inputs = pa.table(batch.columns[:k], list(self.inputs))
            target = [True if unsupervised else None] * batch.num_rows
            if self.target is not None:
                target = batch.column(k).to_pylist()
            weights = None if self.weight is None else batch.columns[-1].to_pylist()
            yield SourceChunk(BatchChunk(Frame(inputs), target, weights))


def roles_of(df: DataFrame, target: str | None, weight: str | None, inputs: Iterable[str] | None) -> ColumnRoles:
    """Return the roles of the columns of a data frame.

    Parameters
    ----------
    df
        The data frame.
    target, weight
        The names of two columns, or None.
    inputs
        The names of the inputs; None: all other columns of numbers, booleans and strings.

    Raises
    ------
    TypeError
        A column name is not a string.
    ValueError
        A column is missing or ambiguous, has the wrong type or two roles, or there is no input.

    """
    types = {field.name: field.dataType for field in df.schema.fields}
    if isinstance(inputs, str):
        raise TypeError(f"inputs must be a list of column names, got {inputs!r}")
    given = None if inputs is None else list(inputs)
    beside = [(name, role) for name, role in ((target, "target"), (weight, "weight")) if name is not None]
    for name, role in [*((name, "each of inputs") for name in given or ()), *beside]:
        if not isinstance(name, str):
            raise TypeError(f"{role} must be a column name, a string, got {type(name).__name__}")
    others = [name for name, kind in types.items() if isinstance(kind, _INPUTS) and name not in (target, weight)]
    chosen = others if given is None else given
    if not chosen:
        raise ValueError("there is no input: name at least one column of numbers, booleans or strings")
    kinds = {"input": _INPUTS, "target": (*_INPUTS, T.NullType), "weight": (T.NumericType, T.BooleanType, T.NullType)}
    seen: dict[str, str] = {}
    for name, role in [*((name, "input") for name in chosen), *beside]:
        if name not in types:
            raise ValueError(
                f"there is no column {name!r}: the data frame has {', '.join(map(repr, types))}{hint(name, types)}"
            )
        if name in seen:
            raise ValueError(f"column {name!r} is both {seen[name]} and {role}: name each column once")
        if not isinstance(types[name], kinds[role]):
            these = "numbers" if role == "weight" else "numbers, booleans or strings"
            raise ValueError(f"column {name!r} is of type {types[name].simpleString()}: {role}s are {these}")
        seen[name] = role
    _check_alone(df, list(seen))
    return ColumnRoles(tuple(chosen), target, weight)


def _check_alone(df: DataFrame, names: Sequence[str]) -> None:
    """Refuse a name that Spark takes for several columns."""
    fold = str if df.sparkSession.conf.get("spark.sql.caseSensitive") == "true" else str.lower
    counts = Counter(fold(name) for name in df.columns)
    for name in names:
        if counts[fold(name)] > 1:
            alike = ", ".join(repr(other) for other in df.columns if fold(other) == fold(name))
            raise ValueError(f"Spark cannot tell the columns {alike} apart by their names: rename one")
