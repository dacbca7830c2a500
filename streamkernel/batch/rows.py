"""The rows of a batch, wherever they are: what a step asks of them, and those of one process.

What any batch step does with them before and after: new inputs and labels, moments and counts. Whatever depends on the
order of rows is taken from the sample of the batch.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from streamkernel.batch.chunk import BatchChunk, BatchSample, merged_samples, sample
from streamkernel.batch.passes import ScoredChunk, ScoredRows, kept
from streamkernel.batch.sums import Sums
from streamkernel.records.frames import Frame, target_list
from streamkernel.records.inputs import Inputs
from streamkernel.records.results import BatchResult
from streamkernel.records.targets import Numbers, Targets
from streamkernel.records.vocabulary import Vocabulary, admissible, count_vocabulary

SumsT = TypeVar("SumsT", bound=Sums)


class BatchMachine(Protocol):
    """What a batch asks of any machine that takes steps on it."""

    inputs: Inputs
    targets: Targets
    n_records: int


#: Encodes and predicts a chunk by a machine, which is not changed.
Score = Callable[[Any, BatchChunk], ScoredChunk]


@dataclass(frozen=True)
class ScoredBatch:
    """What a step knows of the rows of a batch once they are scored."""

    n: int  #: All rows, also those that are predicted only
    vocabulary: Vocabulary  #: What the learned rows bring
    sample: BatchSample  #: Some of the learned rows
    sums: Any  #: What the machine asks of the learned rows
    n_clipped: int  #: Targets that were cut to the largest there may be

    @classmethod
    def of(cls, machine: BatchMachine, chunk: ScoredChunk) -> "ScoredBatch":
        """What is known of the rows of one chunk."""
        encoded = chunk.encoded
        of_rows = sample(encoded, machine.inputs.columns.keys, machine.n_records)
        return cls(len(encoded.y), encoded.vocabulary, of_rows, chunk.sums, encoded.n_clipped)

    @classmethod
    def total(cls, machine: BatchMachine, parts: Sequence["ScoredBatch"]) -> "ScoredBatch":
        """Add up what is known of the rows of all parts, in this order; there is at least one part."""
        found = Vocabulary()
        for part in parts:
            found.merge(part.vocabulary, machine.inputs, machine.targets)
        return cls(
            sum(part.n for part in parts),
            found,
            merged_samples([part.sample for part in parts]),
            type(parts[0].sums).total([part.sums for part in parts]),
            sum(part.n_clipped for part in parts),
        )


class BatchRows(Protocol):
    """The rows of a batch, wherever they are."""

    #: Whether a pass has so much overhead that it also takes the next one's sums, in case they are needed.
    foresees: bool

    def score(self, machine: BatchMachine, score: Score) -> ScoredBatch:
        """Send out a machine, and have the rows scored by it; what was kept of them before is forgotten."""

    def reduce(self, function: Callable[[Any, ScoredRows], SumsT]) -> SumsT:
        """The sums over all learned rows as they were scored, by the machine that was sent out."""


class LocalRows:
    """The rows of a batch in this process.

    - chunks: The rows, in at least one chunk.
    - scored: The chunks as the machine saw them that was sent out last.
    """

    foresees = False

    def __init__(self, chunks: Sequence[BatchChunk]) -> None:
        self._chunks = chunks
        self.scored: list[ScoredChunk] = []

    def score(self, machine: BatchMachine, score: Score) -> ScoredBatch:
        self._machine = machine
        self.scored = [score(machine, chunk) for chunk in self._chunks]
        self._rows = [chunk.rows for chunk in self.scored if chunk.rows is not None]
        return ScoredBatch.total(machine, [ScoredBatch.of(machine, chunk) for chunk in self.scored])

    def reduce(self, function: Callable[[Any, ScoredRows], SumsT]) -> SumsT:
        self._rows = [kept(self._machine, rows, function) for rows in self._rows]
        parts = [function(self._machine, rows) for rows in self._rows]
        return type(parts[0]).total(parts)


def score_admitted(machine: BatchMachine, batch: BatchRows, score: Score) -> tuple[ScoredBatch, list[list[Any]]]:
    """Score a batch with its new inputs and labels in the machine, as far as there is room; return the new inputs, too.

    The inputs are as `InputColumns` yields them.
    """
    scored = batch.score(machine, score)
    columns, labels = admissible(machine.inputs, machine.targets, scored.vocabulary)
    machine.inputs.add(columns)
    if columns or labels:
        machine.targets.admit(machine.targets.prepare(labels)[0])
        scored = batch.score(machine, score)
    return scored, columns


def take_targets(machine: BatchMachine, sample: BatchSample) -> None:
    """Take the targets of a sample into the moments of numbers."""
    if isinstance(machine.targets, Numbers):
        machine.targets.admit(sample.targets)


def count_arrivals(machine: BatchMachine, scored: ScoredBatch, columns: list[list[Any]]) -> None:
    """Count what a batch repeated, and what of it was ignored or cut; `columns` are the inputs that came with it."""
    count_vocabulary(machine.inputs, machine.targets, scored.vocabulary, columns)
    machine.targets.n_limited += scored.n_clipped


RowsT = TypeVar("RowsT", bound=BatchRows)


def take_batch_step(estimator: Any, rows: RowsT) -> RowsT:
    """Have an estimator learn rows, wherever they are, which then know what was predicted of them before."""
    before = estimator.__getstate__()
    try:
        estimator._learn_batch(rows)
    except BaseException:
        estimator.__setstate__(before)
        raise
    return rows


def step_here(estimator: Any, X: Any, y: Any, w: Sequence[float] | None) -> BatchResult:
    """Have an estimator learn a batch in this process, and give what was predicted of its rows before."""
    machine = estimator._machine
    n_inputs, n_targets = machine.inputs.n_ignored, machine.targets.n_limited
    rows = take_batch_step(estimator, LocalRows([BatchChunk(Frame(X), target_list(y), w)]))
    # By the machine of now, which may be another than before; past the estimator: the line that learns.
    estimator._machine._encoder.warn_of_ignored(n_inputs, n_targets, stacklevel=4)
    return rows.scored[0].result
