"""The rows of a batch, wherever they are: what a step asks of them, and those of one process."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from streamkernel.batch.chunk import BatchChunk
from streamkernel.batch.passes import ScoredChunk, ScoredRows, kept
from streamkernel.batch.sample import BatchSample, merged_samples, sample
from streamkernel.batch.sums import Sums
from streamkernel.records.inputs import Inputs
from streamkernel.records.targets import Targets
from streamkernel.records.vocabulary import Vocabulary

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
        """What is known of the rows of all parts, of which there is at least one, added in this order."""
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
