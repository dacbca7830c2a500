"""The way to the executors and back: a model as a broadcast, and sums of partitions that are reduced in a tree."""

from __future__ import annotations

import gc
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple, Self

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession

from streamkernel.finite import NotFiniteError

__all__ = ["SCHEMA", "Broadcast", "freeze_imported", "part", "parts_of", "tree_reduce"]

#: How many parts are added in one place.
FAN_IN = 16
#: A part of a sum: the place that it comes from, which decides the order of the additions, and its value.
SCHEMA = "place int, part binary"


@cache
def freeze_imported() -> None:
    """Leave the modules that a worker has imported out of its garbage collections, one after each task.

    They live as long as the worker, and most of a collection goes through them. This happens once in a process.

    """
    gc.freeze()


class _Packed:
    """An object that is pickled by value, with the classes of the driver's main module."""

    def __init__(self, value: Any) -> None:
        self.data = cloudpickle.dumps(value)

    def __reduce__(self) -> tuple[Any, ...]:
        return pickle.loads, (self.data,)


class Broadcast:
    """An object sent to the executors once, which each worker reads once.

    Parameters
    ----------
    spark
        The session.
    value
        The object.

    Attributes
    ----------
    size
        The bytes of the serialized object.

    """

    def __init__(self, spark: SparkSession, value: Any) -> None:
        self._value = value
        packed = _Packed(value)
        self.size = len(packed.data)
        self._broadcast = spark.sparkContext.broadcast(packed)

    def __getstate__(self) -> dict[str, Any]:
        return {"_broadcast": self._broadcast, "_value": None, "size": self.size}

    def get(self) -> Any:
        """Return the object; on an executor a copy, which the tasks of a worker share and must not change."""
        if self._value is not None:  # on the driver
            return self._value
        freeze_imported()  # not the object, too
        return self._broadcast.value

    def forget(self) -> None:
        """Remove it from the executors."""
        self._broadcast.destroy()


class _Failed(NamedTuple):
    """An exception of the library as a part: of a task that raises it, Spark would only keep the text."""

    error: ValueError | NotFiniteError

    @classmethod
    def of(cls, error: Exception) -> Self:
        """Return it without what it refers to."""
        return cls(NotFiniteError(str(error)) if isinstance(error, NotFiniteError) else ValueError(str(error)))


def part(place: int, value: Any) -> pa.RecordBatch:
    """Return a part of a sum as rows of `SCHEMA`."""
    data = pickle.dumps(value, protocol=5)
    return pa.record_batch({"place": pa.array([place], pa.int32()), "part": pa.array([data], pa.binary())})


def parts_of(made: Iterable[pa.RecordBatch], given: Iterable[pa.RecordBatch], place: int) -> Iterator[pa.RecordBatch]:
    """Yield the parts made of the given batches; a ValueError or NotFiniteError becomes the last of them."""
    try:
        yield from made
    except (ValueError, NotFiniteError) as error:
        for _ in given:  # a worker that leaves some unread ends, and the next one imports everything again
            pass
        yield part(place, _Failed.of(error))


def tree_reduce(parts: DataFrame, n: int, total: Callable[[Sequence[Any]], Any]) -> Any:
    """Return the sum of the parts of n partitions, always added in the same order.

    Parameters
    ----------
    parts
        Rows of `SCHEMA`, one of each partition or none.
    n
        The number of partitions.
    total
        Adds parts in the given order.

    Returns
    -------
    The sum; None where there is no part.

    Raises
    ------
    ValueError, NotFiniteError
        As an executor raised it.

    """
    while n > FAN_IN:
        n = -(-n // FAN_IN)
        # The part that arrives first must not be added first: parts are sorted where they meet.
        groups = parts.selectExpr("place as order", f"cast(place div {FAN_IN} as int) as place", "part")
        parts = groups.repartition(n, "place").mapInArrow(_Adder(total), SCHEMA)
    found = _sum_of([(row.place, row.part) for row in parts.collect()], total)
    if isinstance(found, _Failed):
        raise found.error
    return found


def _sum_of(members: list[tuple[int, bytes]], total: Callable[[Sequence[Any]], Any]) -> Any:
    values = [pickle.loads(data) for _, data in sorted(members, key=lambda member: member[0])]
    failed = [value for value in values if isinstance(value, _Failed)]
    try:
        return failed[0] if failed else total(values) if values else None
    except (ValueError, NotFiniteError) as error:
        return _Failed.of(error)


class _Adder:
    """Adds the parts of each group in a partition."""

    def __init__(self, total: Callable[[Sequence[Any]], Any]) -> None:
        self._total = total

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        groups: dict[int, list[tuple[int, bytes]]] = {}
        for row in (row for batch in batches for row in batch.to_pylist()):
            groups.setdefault(row["place"], []).append((row["order"], row["part"]))
        for place, members in sorted(groups.items()):
            yield part(place, _sum_of(members, self._total))
