"""Rows of a Spark data frame as chunks of a batch: which columns are inputs, which the target and the weight."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as T

from streamkernel.batch.chunk import BatchChunk
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
        That of the target; None: every row is predicted only, or, where a model has no target, learnt.
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

    def chunks(self, batches: Iterable[pa.RecordBatch], unsupervised: bool) -> Iterator[SourceChunk]:
        """The chunks of Arrow batches of these columns.

        Parameters
        ----------
        batches
            Their rows.
        unsupervised
            Whether the model learns rows without a target.

        """
        for batch in batches:
            n = batch.num_rows
            inputs = pa.table([batch.column(name) for name in self.inputs], list(self.inputs))
            target = [True if unsupervised else None] * n
            if self.target is not None:
                target = batch.column(self.target).to_pylist()
            weights = None if self.weight is None else batch.column(self.weight).to_pylist()
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
    ValueError
        There is no such column, it has a type that no input has, or there is no input at all.

    """
    types = {field.name: field.dataType for field in df.schema.fields}
    beside = [name for name in (target, weight) if name is not None]
    chosen = list(types) if inputs is None else list(inputs)
    for name in [*chosen, *beside]:
        if name not in types:
            raise ValueError(f"there is no column {name!r}: the data frame has {', '.join(map(repr, types))}")
    refused = [name for name in chosen if name not in beside and not isinstance(types[name], _INPUTS)]
    if inputs is not None and refused:
        kind = types[refused[0]].simpleString()
        raise ValueError(f"column {refused[0]!r} is of type {kind}: inputs are numbers, booleans or strings")
    chosen = [name for name in chosen if name not in beside and name not in refused]
    if not chosen:
        raise ValueError("the data frame has no column that can be an input: give numbers, booleans or strings")
    if len(set(chosen)) < len(chosen):
        raise ValueError("an input is named twice: give each column once")
    return ColumnRoles(tuple(chosen), target, weight)
