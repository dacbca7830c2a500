"""The rows of a batch in a Spark data frame, and the passes of a step as jobs on its executors."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark import StorageLevel, TaskContext
from pyspark.sql import DataFrame

from streamkernel.batch.chunk import BatchChunk
from streamkernel.batch.passes import ScoredRows
from streamkernel.batch.rows import BatchMachine, Score, ScoredBatch, SumsT
from streamkernel.batch.sums import Sums
from streamkernel.estimators.base import StreamEstimator
from streamkernel.spark.sent import Sent
from streamkernel.spark.tally import Tally
from streamkernel.spark.tree import SCHEMA, part, tree_reduce

__all__ = ["SparkRows"]

#: The rows kept of a chunk, or what is known of all rows of a partition.
_SCORED = "place int, part binary, is_rows boolean"

#: Makes chunks of the Arrow batches of a partition.
Chunks = Callable[[Iterable[pa.RecordBatch]], Iterator[BatchChunk]]


class SparkRows:
    """The rows of a batch in a Spark data frame.

    Parameters
    ----------
    df
        The data frame. It is gone through again where a step adds inputs or labels.
    model
        The estimator whose machine takes the step.
    chunks
        Makes chunks of a partition's Arrow batches.

    Attributes
    ----------
    tally
        What was predicted of the rows; None before they are scored, and where there are none.
    sent_bytes
        The bytes of the model as it was sent to the executors last.

    """

    def __init__(self, df: DataFrame, model: StreamEstimator, chunks: Chunks) -> None:
        self._df = df
        self._model = model
        self._chunks = chunks
        self._n = df.rdd.getNumPartitions()
        self._sent: Sent | None = None
        self._scored: DataFrame | None = None
        self.tally: Tally | None = None
        self.sent_bytes = 0

    def score(self, machine: BatchMachine, score: Score) -> ScoredBatch:
        self.forget()
        self._sent = Sent(self._df.sparkSession, (self._model, score))
        self.sent_bytes = self._sent.size
        self._scored = self._df.mapInArrow(_Scorer(self._sent, self._chunks), _SCORED)
        self._scored.persist(StorageLevel.MEMORY_AND_DISK)
        known = self._scored.where("not is_rows").select("place", "part")
        found = tree_reduce(known, self._n, _total_of(self._sent))
        if found is None:  # no partition at all
            found = _none_of(machine, self._model, score)
        batch: ScoredBatch
        batch, self.tally = found
        return batch

    def reduce(self, function: Callable[[Any, ScoredRows], SumsT]) -> SumsT:
        assert self._scored is not None
        assert self._sent is not None
        rows = self._scored.where("is_rows").select("place", "part")
        sums: SumsT = tree_reduce(rows.mapInArrow(_Reducer(self._sent, function), SCHEMA), self._n, _total_of_sums)
        return sums

    def forget(self) -> None:
        """Release what the executors keep of the rows and the model."""
        if self._scored is not None:
            self._scored.unpersist()
            self._scored = None
        if self._sent is not None:
            self._sent.forget()
            self._sent = None


class _Scorer:
    """Scores the chunks of a partition, and gives what is kept of each, and then what is known of all."""

    def __init__(self, sent: Sent, chunks: Chunks) -> None:
        self._sent = sent
        self._chunks = chunks

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        model, score = self._sent.get()
        machine, place = model._machine, _place()
        known: list[tuple[ScoredBatch, Tally]] = []
        for chunk in self._chunks(batches):
            scored = score(machine, chunk)
            if scored.rows is not None:
                yield _flagged(part(place, tuple(scored.rows)), True)
            known.append((ScoredBatch.of(machine, scored), Tally.of(model, scored)))
            if len(known) == _AT_ONCE:
                known = [_total(machine, known)]
        if not known:
            known = [_none_of(machine, model, score)]
        yield _flagged(part(place, _total(machine, known)), False)


#: Chunks whose sums are held before they are added up.
_AT_ONCE = 8


class _Reducer:
    """Runs a pass over the rows kept of a partition."""

    def __init__(self, sent: Sent, function: Callable[[Any, ScoredRows], Sums]) -> None:
        self._sent = sent
        self._function = function

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        model, _ = self._sent.get()
        total: Sums | None = None
        place = -1
        for batch in batches:
            for row in batch.to_pylist():
                place = row["place"]
                sums = self._function(model._machine, ScoredRows(*pickle.loads(row["part"])))
                total = sums if total is None else type(sums).total([total, sums])
        if total is not None:
            yield part(place, total)


def _place() -> int:
    context = TaskContext.get()
    assert context is not None
    place: int = context.partitionId()
    return place


def _flagged(rows: pa.RecordBatch, is_rows: bool) -> pa.RecordBatch:
    return rows.append_column("is_rows", pa.array([is_rows] * rows.num_rows, pa.bool_()))


def _none_of(machine: BatchMachine, model: StreamEstimator, score: Score) -> tuple[ScoredBatch, Tally]:
    """What is known of no rows at all."""
    scored = score(machine, BatchChunk.empty())
    return ScoredBatch.of(machine, scored), Tally.of(model, scored)


def _total(machine: BatchMachine, parts: Sequence[tuple[ScoredBatch, Tally]]) -> tuple[ScoredBatch, Tally]:
    return ScoredBatch.total(machine, [batch for batch, _ in parts]), Tally.total([tally for _, tally in parts])


def _total_of(sent: Sent) -> Callable[[Sequence[Any]], Any]:
    def total(parts: Sequence[tuple[ScoredBatch, Tally]]) -> tuple[ScoredBatch, Tally]:
        return _total(sent.get()[0]._machine, parts)

    return total


def _total_of_sums(parts: Sequence[Sums]) -> Sums:
    return type(parts[0]).total(parts)
