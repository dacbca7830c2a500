"""The rows of a batch in a Spark data frame, and the passes of a step as jobs on its executors."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Self

import pyarrow as pa
from pyspark import StorageLevel, TaskContext
from pyspark.sql import DataFrame

from streamkernel.batch.chunk import BatchChunk
from streamkernel.batch.least_squares import LeastSquaresMachine
from streamkernel.batch.passes import ScoredChunk, ScoredRows
from streamkernel.batch.rows import BatchMachine, Score, ScoredBatch, SumsT, take_batch_step
from streamkernel.batch.sums import Sums
from streamkernel.connectors.encode import to_json
from streamkernel.connectors.ports import Fault, Record
from streamkernel.daemon.stream.lines import predictions
from streamkernel.estimators.base import StreamEstimator, machine_of
from streamkernel.records.frames import RecordFrame
from streamkernel.spark.executors import SCHEMA, Broadcast, part, parts_of, tree_reduce
from streamkernel.spark.partials import Partials, SourceChunk
from streamkernel.spark.score_sums import ScoreSums

__all__ = ["SparkRows"]

#: The rows kept of a chunk, what is known of all rows of a partition, or the line of a prediction.
_SCORED = "place int, part binary, kind string"

#: Makes chunks of the Arrow batches of a partition.
Chunks = Callable[[Iterable[pa.RecordBatch]], Iterator[SourceChunk]]


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
    writes_lines
        Whether the executors make lines of the predictions.

    Attributes
    ----------
    partials
        What is known of the rows; None before they are scored.
    sent_bytes
        The bytes of the model as it was sent to the executors last.

    """

    foresees = True

    def __init__(self, df: DataFrame, model: StreamEstimator, chunks: Chunks, writes_lines: bool = False) -> None:
        self._writes_lines = writes_lines
        self._df = df
        self._model = model
        self._chunks = chunks
        self._n = df.rdd.getNumPartitions()
        self._sent: Broadcast | None = None
        self._scored: DataFrame | None = None
        self.partials: Partials | None = None
        self.sent_bytes = 0

    def score(self, machine: BatchMachine, score: Score) -> ScoredBatch:
        self._forget()
        self._sent = Broadcast(self._df.sparkSession, _SentModel(self._model, score))
        self.sent_bytes = self._sent.size
        self._scored = self._df.mapInArrow(_Scorer(self._sent, self._chunks, self._writes_lines), _SCORED)
        self._scored.persist(StorageLevel.MEMORY_AND_DISK)
        known = self._scored.where("kind = 'partials'").select("place", "part")
        found = tree_reduce(known, self._n, _total_of(self._sent))
        partials: Partials = _none_of(machine, self._model, score) if found is None else found  # no partition at all
        self.partials = partials
        return partials.batch

    def reduce(self, function: Callable[[Any, ScoredRows], SumsT]) -> SumsT:
        assert self._scored is not None
        assert self._sent is not None
        rows = self._scored.where("kind = 'rows'").select("place", "part")
        sums: SumsT = tree_reduce(rows.mapInArrow(_Reducer(self._sent, function), SCHEMA), self._n, _total_of_sums)
        return sums

    def learn(self) -> Partials:
        """Take a batch step on the rows; where it fails, the model stays as it was."""
        take_batch_step(self._model, self)  # the job has checked it
        assert self.partials is not None
        return self.partials

    @property
    def lines(self) -> DataFrame:
        """The lines of the predictions, in the column `part`."""
        assert self._scored is not None
        return self._scored.where("kind = 'line'")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._forget()

    def _forget(self) -> None:
        """Release what the executors keep of the rows and the model."""
        if self._scored is not None:
            self._scored.unpersist()
            self._scored = None
        if self._sent is not None:
            self._sent.forget()
            self._sent = None


class _SentModel:
    """A model on its way to the executors, with the function that scores rows by it."""

    def __init__(self, model: StreamEstimator, score: Score) -> None:
        self._score = score
        self._model = model
        self._machine: LeastSquaresMachine | None = None
        if isinstance(machine_of(model), LeastSquaresMachine):  # most of which only a step needs
            self._model, self._machine = model.clone(), machine_of(model).to_send()

    def received(self) -> tuple[StreamEstimator, Score]:
        """The model and the function."""
        if self._machine is not None:
            self._model._machine, self._model._targets = self._machine, self._machine.targets
        return self._model, self._score


class _Scorer:
    """Scores the chunks of a partition, and gives what is kept of each, and then what is known of all."""

    def __init__(self, sent: Broadcast, chunks: Chunks, writes_lines: bool) -> None:
        self._sent = sent
        self._chunks = chunks
        self._writes_lines = writes_lines

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        place = _place()
        for rows in parts_of(self._scored(batches, place), batches, place):
            yield rows if "kind" in rows.schema.names else _of_kind(rows, "partials")

    def _scored(self, batches: Iterable[pa.RecordBatch], place: int) -> Iterator[pa.RecordBatch]:
        model, score = self._sent.get().received()
        machine = machine_of(model)
        known = none = _none_of(machine, model, score)
        for given in self._chunks(batches):
            found = [known, replace(none, dead=given.dead, n_skipped=given.n_skipped, ends=given.ends)]
            for scored, records in _isolated(given.chunk, given.records, partial(score, machine)):
                if scored is None:
                    found.append(replace(none, dead=tuple(records)))
                    continue
                if scored.rows is not None:
                    yield _of_kind(part(place, tuple(scored.rows)), "rows")
                if self._writes_lines and records:
                    yield _of_kind(_lines(place, predictions(records, model._outcome(scored.result))), "line")
                found.append(Partials(ScoredBatch.of(machine, scored), ScoreSums.of(model, scored)))
            known = Partials.total(machine, found)
        yield part(place, known)


def _isolated(
    chunk: BatchChunk, records: Sequence[Record], score: Callable[[BatchChunk], ScoredChunk]
) -> Iterator[tuple[ScoredChunk | None, Sequence[Record]]]:
    """Score a chunk; where the model refuses a row, score the others in parts, and yield that record with its fault."""
    try:
        yield score(chunk), records
        return
    except ValueError as error:
        if not records:
            raise
        if len(records) == 1:
            yield None, [records[0]._replace(x={}, y=None, fault=Fault("refused", str(error)))]
            return
    half = len(records) // 2
    for rows in (slice(half), slice(half, None)):
        part_of = BatchChunk(RecordFrame([record.x for record in records[rows]]), chunk.y[rows], None)
        yield from _isolated(part_of, records[rows], score)


class _Reducer:
    """Runs a pass over the rows kept of a partition."""

    def __init__(self, sent: Broadcast, function: Callable[[Any, ScoredRows], Sums]) -> None:
        self._sent = sent
        self._function = function

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return parts_of(self._sums(batches), batches, _place())

    def _sums(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        machine = machine_of(self._sent.get().received()[0])
        total: Sums | None = None
        for row in (row for batch in batches for row in batch.to_pylist()):
            sums = self._function(machine, ScoredRows(*pickle.loads(row["part"])))
            total = sums if total is None else type(sums).total([total, sums])
        if total is not None:
            yield part(_place(), total)


def _place() -> int:
    context = TaskContext.get()
    assert context is not None
    place: int = context.partitionId()
    return place


def _of_kind(rows: pa.RecordBatch, kind: str) -> pa.RecordBatch:
    return rows.append_column("kind", pa.array([kind] * rows.num_rows, pa.string()))


def _lines(place: int, lines: Sequence[Mapping[str, Any]]) -> pa.RecordBatch:
    texts = [to_json(line) for line in lines]
    return pa.record_batch({"place": pa.array([place] * len(texts), pa.int32()), "part": pa.array(texts, pa.binary())})


def _none_of(machine: BatchMachine, model: StreamEstimator, score: Score) -> Partials:
    """What is known of no rows at all."""
    scored = score(machine, BatchChunk.empty())
    return Partials(ScoredBatch.of(machine, scored), ScoreSums.of(model, scored))


def _total_of(sent: Broadcast) -> Callable[[Sequence[Partials]], Partials]:
    def total(parts: Sequence[Partials]) -> Partials:
        return Partials.total(machine_of(sent.get().received()[0]), parts)

    return total


def _total_of_sums(parts: Sequence[Sums]) -> Sums:
    return type(parts[0]).total(parts)
