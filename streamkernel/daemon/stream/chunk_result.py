"""The result of a chunk of records: counts, lines, dead letters and scores."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from streamkernel.connectors.ports import Label, Position, Record
from streamkernel.daemon.base.counts import LabelCounts, RecordCounts
from streamkernel.daemon.stream.learned import Measured
from streamkernel.daemon.stream.lines import dead_letter, predictions
from streamkernel.estimators.base import AdvanceResult

__all__ = ["ChunkResult", "LabelChunk", "Scored"]


@dataclass(slots=True)
class LabelChunk:
    """The result of the late labels of a chunk, and of the records that wait for one.

    Attributes
    ----------
    counts
        Those of the chunk alone.
    dead
        Dead letters among the labels, by reason.
    dead_numbers
        Which of the chunk's labels they are, the first being 1.
    delay
        How long the last record that was learned had waited, in seconds; None where none was.
    next
        Where the source of the labels goes on; None where none was taken.

    """

    counts: LabelCounts
    dead: Counter[str] = field(default_factory=Counter)
    dead_numbers: list[int] = field(default_factory=list)
    delay: float | None = None
    next: Position | None = None


@dataclass(slots=True)
class Scored(Measured):
    """What one model predicted in a chunk, beside the targets that are known now.

    Attributes
    ----------
    targets, predictions, probabilities
        What the report metrics compare: targets that are known now, and the predictions that were made for them;
        probabilities are None for regressors and models that give none.
    deviations
        The standard deviations of predicted numbers; None where the model gives none, and of late labels: a record
        waits for its label without.
    losses
        Losses of the records that have one; once the chunk is closed, those that are finite.
    n_losses_not_finite
        Losses that were not finite.

    """

    targets: list[Label] = field(default_factory=list)
    predictions: list[Any] = field(default_factory=list)
    probabilities: list[Any] | None = None
    deviations: np.ndarray | None = None
    losses: list[float] = field(default_factory=list)
    n_losses_not_finite: int = 0

    def add_losses(
        self,
        losses: Sequence[float],
        targets: Sequence[Any],
        predictions: Sequence[Any],
        probabilities: Sequence[Any] | None,
    ) -> None:
        """Add the losses of labeled records, and count those that are NaN and not for want of a prediction.

        There is none before the first label, nor for a label that had no probability, as it was not known yet.
        """
        self.losses += losses
        for place in [place for place, loss in enumerate(losses) if math.isnan(loss)]:
            several = isinstance(targets[place], dict)  # whose losses are NaN for no want of a probability
            known = several or probabilities is None or targets[place] in (probabilities[place] or ())
            self.n_losses_not_finite += known and predictions[place] is not None


@dataclass(slots=True)
class ChunkResult(Scored):
    """The result of a chunk of records, for the outputs, the metrics and the positions.

    Attributes
    ----------
    counts
        Those of the chunk alone.
    dead
        Dead letters by reason.
    dead_numbers
        Which of the chunk's records they are, the first being 1.
    lines, letters
        What to write to the predictions and to the dead letters.
    line_origins, letter_origins
        Where the record of each of them begins.
    next
        Where the source goes on; None where nothing was done.
    late
        What became of late labels; None where there are none.
    encoding
        That of the source of the records, in which dead letters can be read.
    model
        The name of the model whose predictions these are, where it has one.
    others
        By its name, what each model next to it predicted.
    written
        The names of those whose predictions the lines have, too.

    """

    counts: RecordCounts = field(default_factory=RecordCounts)
    dead: Counter[str] = field(default_factory=Counter)
    dead_numbers: list[int] = field(default_factory=list)
    lines: list[dict[str, Any]] = field(default_factory=list)
    letters: list[dict[str, Any]] = field(default_factory=list)
    line_origins: list[Position] = field(default_factory=list)
    letter_origins: list[Position] = field(default_factory=list)
    next: Position | None = None
    late: LabelChunk | None = None
    encoding: str = "utf-8"
    model: str = ""
    others: dict[str, Scored] = field(default_factory=dict)
    written: Sequence[str] = ()

    @property
    def taken(self) -> int:
        """Records and labels taken from their sources."""
        return self.counts.consumed + (0 if self.late is None else self.late.counts.taken)

    def add_predictions(
        self, records: Sequence[Record], result: AdvanceResult, others: Mapping[str, AdvanceResult]
    ) -> None:
        """Add the lines of records and their predictions, and those of other models by their names."""
        written = {name: others.get(name) for name in self.written}
        self.lines += predictions(records, result, self.model, written)
        self.line_origins += [record.position for record in records]
        self.counts.predicted += len(records)

    def add_dead_letter(self, record: Record, reason: str, detail: str, number: int) -> None:
        """Add a dead letter of the record with this number in the chunk, the first being 1."""
        self.counts.dead += 1
        self.dead[reason] += 1
        self.dead_numbers.append(number)
        self.letters.append(dead_letter(record.position, reason, detail, record.raw, written_in=self.encoding))
        self.letter_origins.append(record.position)

    def add_label_letter(self, position: Position, reason: str, detail: str, raw: bytes) -> None:
        """Add a dead letter of the last label that was counted, or of an earlier one that waited until now."""
        assert self.late is not None
        self.late.counts.dead += 1
        self.late.dead[reason] += 1
        self.late.dead_numbers.append(self.late.counts.taken)
        self.letters.append(dead_letter(position, reason, detail, raw, source="labels"))
        # One topic may hold both: the place of a label differs from that of a record in the same stream.
        self.letter_origins.append(position._replace(stream=f"labels:{position.stream}"))
