"""Reducing what the partitions of a data frame gave: in a tree of as many levels as their number asks for."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from streamkernel.spark.failures import reported

__all__ = ["SCHEMA", "part", "tree_reduce"]

#: The parts that are added up at one place.
FAN_IN = 16
#: A part of a sum: where it came from, of which the order of the additions follows, and what it is.
SCHEMA = "place int, part binary"


def part(place: int, value: Any) -> pa.RecordBatch:
    """A part of a sum as rows of `SCHEMA`."""
    data = pickle.dumps(value, protocol=5)
    return pa.record_batch({"place": pa.array([place], pa.int32()), "part": pa.array([data], pa.binary())})


def tree_reduce(parts: DataFrame, n: int, total: Callable[[Sequence[Any]], Any]) -> Any:
    """The sum of the parts of n partitions, always added in the same order.

    Parameters
    ----------
    parts
        Rows of `SCHEMA`, one of each partition or none.
    n
        The number of the partitions.
    total
        Adds parts up, in the order they are given.

    Returns
    -------
    The sum; None where there is no part.

    """
    while n > FAN_IN:
        n = -(-n // FAN_IN)
        # What arrives first must not be added first: parts are sorted where they meet.
        groups = parts.selectExpr("place as order", f"cast(place div {FAN_IN} as int) as place", "part")
        parts = groups.repartition(n, "place").mapInArrow(_Adder(total), SCHEMA)
    rows = sorted(parts.collect(), key=lambda row: row.place)
    return total([pickle.loads(row.part) for row in rows]) if rows else None


class _Adder:
    """Adds up the parts of each group in a partition."""

    def __init__(self, total: Callable[[Sequence[Any]], Any]) -> None:
        self._total = total

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return reported(self._added(batches))

    def _added(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        groups: dict[int, list[tuple[int, bytes]]] = {}
        for batch in batches:
            columns = (batch.column(name).to_pylist() for name in ("place", "order", "part"))
            for place, order, data in zip(*columns, strict=True):
                groups.setdefault(place, []).append((order, data))
        for place, members in sorted(groups.items()):
            yield part(place, self._total([pickle.loads(data) for _, data in sorted(members, key=lambda m: m[0])]))
