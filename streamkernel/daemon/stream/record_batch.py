"""The carrier of records: what one poll brought, what the models are shown of it, and what they make of it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress
from typing import Any, Self

import numpy as np

from streamkernel.connectors.ports import Fault, Label, Position, Record
from streamkernel.daemon.base.counts import LabelCounts, RecordCounts
from streamkernel.daemon.base.model import Model, lagging
from streamkernel.daemon.stream.lines import dead_letter
from streamkernel.daemon.stream.results import part_of
from streamkernel.estimators.base import AdvanceResult

__all__ = ["LABELS", "LabelChunk", "Labeled", "RecordBatch"]

LABELS = "labels"
"""The source of a late label in the position of a dead letter."""


@dataclass(slots=True)
class LabelChunk:
    """The late labels of a batch, and the records that wait for one.

    Attributes
    ----------
    counts
        Those of the batch alone.
    dead
        Dead letters among the labels, by reason.
    dead_numbers
        Their numbers among the labels of the batch, the first being 1.
    delay
        How long the last learned record had waited, in seconds; None if none was learned.
    next
        Where the source of the labels continues; None if none was taken.
    overrun
        Whether there were too many dead letters among the labels.

    """

    counts: LabelCounts
    dead: Counter[str] = field(default_factory=Counter)
    dead_numbers: list[int] = field(default_factory=list)
    delay: float | None = None
    next: Position | None = None
    overrun: bool = False


@dataclass(slots=True)
class Labeled:
    """The predictions of one model for targets that are known now.

    Attributes
    ----------
    targets, predictions
        One of each per record; numbers also as an array.
    probabilities
        Those of each record, also as a table; None for regressors and models without them.
    deviations
        The standard deviations of predicted numbers; None if the model has none, and for late labels.
    losses
        The losses of the records that have one, also as an array; only the finite ones once the batch is closed.
    n_not_finite
        How many losses were not finite.

    """

    targets: list[Label] = field(default_factory=list)
    predictions: Any = field(default_factory=list)
    probabilities: Any = None
    deviations: np.ndarray | None = None
    losses: Any = field(default_factory=list)
    n_not_finite: int = 0

    @classmethod
    def of(cls, targets: list[Any], result: AdvanceResult) -> Self:
        """Take the results of the records that have a target; None is no target."""
        if None in targets:
            chosen = [target is not None for target in targets]
            targets, result = list(compress(targets, chosen)), part_of(result, chosen)
        numbers, given = result.numbers, result.distributions
        if numbers is None and given is None:
            labeled = cls(targets, result.predictions, result.probabilities, result.deviations)
            labeled.add_losses(result.losses.tolist(), targets, result.predictions, result.probabilities)
            return labeled
        labeled = cls(targets, result.predictions if numbers is None else numbers, given, result.deviations)
        labeled.losses, missing = result.losses, np.isnan(result.losses)
        if given is not None and missing.any():
            missing &= given.given(targets) != -1
        labeled.n_not_finite = int(missing.sum())
        return labeled

    def add_losses(
        self,
        losses: Sequence[float],
        targets: Sequence[Any],
        predictions: Sequence[Any],
        probabilities: Sequence[Any] | None,
    ) -> None:
        """Add the losses of labeled records, and count those that are NaN although there was a prediction.

        A record before the first label has none, nor has a label that was new: it had no probability yet.
        """
        self.losses += losses
        for place in [place for place, loss in enumerate(losses) if math.isnan(loss)]:
            several = isinstance(targets[place], dict)  # such a loss is never NaN for a new label
            known = several or probabilities is None or targets[place] in (probabilities[place] or ())
            self.n_not_finite += known and predictions[place] is not None


_NO_RESULT = AdvanceResult([], None, np.zeros(0))


@dataclass(slots=True)
class RecordBatch:
    """A batch of records on its way from a source to the sinks; each step adds to it.

    1. The source gives the records.
    2. A stage adds rows: what the models predict and learn of the records now.
    3. The models add a result for each row.
    4. The stage settles the records: predictions, scores, dead letters, counts and the next position.

    Attributes
    ----------
    records
        As they came from the source, in order.
    source
        The name of a source that is not the main one, such as ``"warm_start"``.
    encoding
        That of the source, in which dead letters can be read.
    inputs, targets
        The inputs and the target of each row; the target is None if nothing is learned.
    wanted
        Whether the prediction of each row is wanted; None: of all.
    lags
        The targets known before each row, the latest first; None if no model wants them.
    until_refused
        Whether the rows after a refused one are made again, knowing of the refusal.
    result
        The predictions of the rows that were dealt with; None and NaN for a refused row.
    refused
        Why the model refuses a row, by its number.
    others
        The results of the challengers, by name; None and NaN for rows without one.
    stopped
        Whether the rows after these were left because the run stops.
    failure
        What the first row without a result raised, if that was caught.
    predict_seconds, learn_seconds
        Seconds a row; None if not measured.
    n_not_finite
        Rows with a prediction, probability or deviation that is not finite. Such a prediction becomes None.
    n_clipped
        Targets beyond the largest number that can be squared: they were learned as that number.
    n_ignored_inputs
        Inputs past the limit of the daemon: rows were learned without them.
    n_ignored
        Rows that were not learned, because their class is past the limit of the model. They count as unlabeled.
    n_taken
        How many of the records are dealt with.
    counts
        Those of the batch alone.
    predicted, rows
        The records with a prediction, and the row of each; None: all rows, in order.
    labeled
        By the name of each model, its predictions for targets that are known now; the published one has no name here.
    dead
        Dead letters by reason.
    dead_numbers
        Their numbers among the records of the batch, the first being 1.
    letters, faults, letter_origins
        The lines of the dead letters, their faults, and where their records begin.
    next
        Where the source continues; None if no record was taken.
    late
        The late labels; None if there are none.

    """

    records: Sequence[Record] = ()
    source: str | None = None
    encoding: str = "utf-8"
    inputs: Sequence[Mapping[str, Any]] = ()
    targets: Sequence[Label | None] = ()
    wanted: Sequence[bool] | None = None
    lags: Sequence[Sequence[Label]] | None = None
    until_refused: bool = False
    result: AdvanceResult = _NO_RESULT
    refused: dict[int, Fault] = field(default_factory=dict)
    others: dict[str, AdvanceResult] = field(default_factory=dict)
    stopped: bool = False
    failure: BaseException | None = None
    predict_seconds: float | None = None
    learn_seconds: float | None = None
    n_not_finite: int = 0
    n_clipped: int = 0
    n_ignored_inputs: int = 0
    n_ignored: int = 0
    n_taken: int = 0
    counts: RecordCounts = field(default_factory=RecordCounts)
    predicted: Sequence[Record] = ()
    rows: Sequence[int] | None = None
    labeled: dict[str, Labeled] = field(default_factory=lambda: {"": Labeled()})
    dead: Counter[str] = field(default_factory=Counter)
    dead_numbers: list[int] = field(default_factory=list)
    letters: list[dict[str, Any]] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    letter_origins: list[Position] = field(default_factory=list)
    next: Position | None = None
    late: LabelChunk | None = None

    @property
    def taken(self) -> int:
        """Records and labels taken from their sources."""
        return self.counts.consumed + (0 if self.late is None else self.late.counts.taken)

    @property
    def losses(self) -> Sequence[float]:
        """The losses of the published model."""
        losses: Sequence[float] = self.labeled[""].losses
        return losses

    @property
    def n_losses_not_finite(self) -> int:
        """How many losses of the published model were not finite."""
        return self.labeled[""].n_not_finite

    def inputs_for(self, model: Model) -> Sequence[Mapping[str, Any]]:
        """Return the inputs of each row, with the lags if the model wants some."""
        one = lagging(model)
        if self.lags is None or one is None:
            return self.inputs
        return [one.with_lags(dict(x), known) for x, known in zip(self.inputs, self.lags, strict=True)]

    def add_dead_letter(self, record: Record, fault: Fault, number: int) -> None:
        """Add a dead letter of the record with this number in the batch, the first being 1."""
        self.counts.dead += 1
        self.dead[fault.reason] += 1
        self.dead_numbers.append(number)
        self._add_letter(record.position, fault, record.raw, self.source, self.encoding)

    def add_label_letter(self, position: Position, fault: Fault, raw: bytes) -> None:
        """Add a dead letter of the last counted label, or of an earlier one that waited until now."""
        assert self.late is not None
        self.late.counts.dead += 1
        self.late.dead[fault.reason] += 1
        self.late.dead_numbers.append(self.late.counts.taken)
        self._add_letter(position, fault, raw, LABELS, "utf-8")

    def _add_letter(self, position: Position, fault: Fault, raw: bytes, source: str | None, encoding: str) -> None:
        self.letters.append(dead_letter(position, fault.reason, fault.detail, raw, source=source, written_in=encoding))
        self.faults.append(fault)
        # One topic may hold both: the place in one source differs from the same place in another.
        origin = position if source is None else position._replace(stream=f"{source}:{position.stream}")
        self.letter_origins.append(origin)
