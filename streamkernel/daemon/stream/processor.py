"""Takes records through a stage and the models, and counts and scores what became of them."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from streamkernel.connectors.ports import Fault, Label, Record
from streamkernel.daemon.base import crash
from streamkernel.daemon.base.counts import RecordCounts
from streamkernel.daemon.base.model import Model
from streamkernel.daemon.base.window_refit import refit_sentence, window_refit_of
from streamkernel.daemon.stream import isolation
from streamkernel.daemon.stream.calibration import Calibration
from streamkernel.daemon.stream.challengers import Challengers
from streamkernel.daemon.stream.dead_letter_rate import DeadLetterRate
from streamkernel.daemon.stream.learner import Learner
from streamkernel.daemon.stream.lines import predictions
from streamkernel.daemon.stream.quality import ProgressiveLoss, Quality
from streamkernel.daemon.stream.record_batch import Labeled, RecordBatch

if TYPE_CHECKING:
    from streamkernel.estimators.window_refit import WindowRefit

__all__ = ["WARM_START", "Processor", "Scores", "Stage"]

_log = logging.getLogger(__name__)

WARM_START = "warm_start"
"""The source of the records of a warm start in the position of a dead letter."""


class Stage(Protocol):
    """A stage between source and model: it makes rows of records, and settles the records by the results.

    Attributes
    ----------
    learner
        The published model.

    """

    learner: Learner

    @property
    def taken(self) -> int:
        """Labels taken from a source of their own since the first start."""

    def begin(self, records: Sequence[Record]) -> Sequence[Any]:
        """Begin with the records of a poll; return an item for each."""

    def fill(self, batch: RecordBatch, items: Sequence[Any]) -> None:
        """Add the records and rows of the items to a batch."""

    def settle(self, batch: RecordBatch) -> None:
        """Add what became of the records, and how many are dealt with."""

    def quarantine(self, batch: RecordBatch, record: Record, fault: Fault) -> None:
        """Make a dead letter of a record that no model is shown."""

    def rows(self, record: Record) -> list[tuple[dict[str, Any], Label | None]]:
        """Return the rows that would be made of a record, inputs and targets; nothing is changed."""

    def to_json(self) -> dict[str, int]:
        """Return the counts of late labels by name; empty if there are none."""


@dataclass(frozen=True)
class Scores:
    """The report metrics and the mean of the loss of one model."""

    quality: Quality
    loss: ProgressiveLoss

    def add(self, labeled: Labeled, learns: bool) -> None:
        """Take in the predictions of a batch, and leave only the finite losses in it."""
        self.quality.add(labeled.targets, labeled.predictions, labeled.probabilities)
        n_nan = labeled.n_not_finite if learns else 0  # a model that only serves has no losses
        losses = np.asarray(labeled.losses, float)
        right = np.isfinite(losses)
        labeled.n_not_finite, labeled.losses = n_nan, losses
        if not right.all():
            labeled.n_not_finite, labeled.losses = n_nan + int(np.isinf(losses).sum()), losses[right]
        self.loss.add(labeled.losses, labeled.n_not_finite)


@dataclass
class Processor:
    """Takes records through a stage and the models, and counts and scores what became of them.

    How a stream is cut into batches changes nothing.

    Parameters
    ----------
    learner
        The model.
    quality, loss
        The report metrics and the mean of the loss.
    rate
        Watches the share of dead letters.
    counts
        Those so far; added to.
    stage
        Makes events of records.
    checkpoint
        The number of the checkpoint that the model is from, which each line of predictions names; None: it learns.
    encoding
        That of the source of the records.
    name
        The name of the model, where there are several, which each line names, too.
    challengers
        The models next to it.
    others
        The scores of the challengers, by their names.
    writes_others
        Whether each line has the predictions of the challengers.
    calibration
        The calibration of its predictions; None if nobody asks for it.
    source
        The name of a source that is not the main one. No prediction of its records is written.

    Attributes
    ----------
    overrun
        Whether there were more dead letters than is borne.

    """

    learner: Learner
    quality: Quality
    loss: ProgressiveLoss
    rate: DeadLetterRate
    counts: RecordCounts
    stage: Stage
    checkpoint: int | None = None
    encoding: str = "utf-8"
    name: str = ""
    challengers: Challengers = field(default_factory=Challengers)
    others: Mapping[str, Scores] = field(default_factory=dict)
    writes_others: bool = False
    calibration: Calibration | None = None
    source: str | None = None
    overrun: bool = field(default=False, init=False)

    @property
    def taken(self) -> int:
        """Records and labels taken since the first start."""
        return self.counts.consumed + self.stage.taken

    @property
    def models(self) -> list[Model]:
        """All models that learn, the published one first."""
        return [learner.model for learner in (self.learner, *self.challengers.learners.values())]

    @property
    def windows(self) -> dict[str, WindowRefit]:
        """The models that are refitted on their windows, by name, the published one first."""
        learners = {self.name: self.learner, **self.challengers.learners}
        found = {name: window_refit_of(learner.model) for name, learner in learners.items()}
        return {name: refit for name, refit in found.items() if refit is not None}

    def refit_windows(self) -> None:
        """Refit all models that have a window; a challenger that cannot be refitted is disabled.

        Raises
        ------
        ValueError, NotFiniteError
            If the published one cannot be refitted; the message says why.

        """
        for name, refit in self.windows.items():
            try:
                solved = refit.refit()
            except (Exception, SystemExit) as error:
                if name == self.name:
                    raise
                self.challengers.disable(name, f"{type(error).__name__}: {error}")
                continue
            _log.info("%s", refit_sentence(refit.last_refit if solved else None, name))

    def replace(self, learner: Learner) -> None:
        """Predict with another model of the same task from now on."""
        self.learner = self.stage.learner = learner

    def process(self, records: Sequence[Record], stopped: Callable[[], bool] = lambda: False) -> Iterator[RecordBatch]:
        """Predict and learn records; yield them in batches, more than one if a stage decides again after a refusal.

        Parameters
        ----------
        records
            Records as they came from the source.
        stopped
            Asked between rows that take long: True leaves the records after it.

        """
        left = self.stage.begin(records)
        while True:
            batch = RecordBatch(source=self.source, encoding=self.encoding)
            self.stage.fill(batch, left)
            start = time.perf_counter()
            self.learner.advance(batch, stopped)
            if self.challengers.statuses:
                self.challengers.advance(batch, time.perf_counter() - start)
            crash.point("mid-batch")
            self.stage.settle(batch)
            left = left[batch.n_taken :]
            yield self.close(batch)
            if batch.stopped or not left:
                return

    def quarantine(self, record: Record, reason: str, detail: str) -> RecordBatch:
        """Make a dead letter of a record without showing it to the model."""
        batch = RecordBatch([record], self.source, self.encoding)
        self.stage.fill(batch, self.stage.begin([]))
        self.stage.quarantine(batch, record, Fault(reason, detail))
        return self.close(batch)

    def kills(self, record: Record, stopped: Callable[[], bool]) -> bool:
        """Return whether the process dies when the published model learns a record; see `isolation.kills`.

        Challengers in which it dies are disabled.
        """
        rows = self.stage.rows(record)
        if isolation.kills(self.learner, rows, stopped):
            return True
        self.challengers.disable_deadly(rows, stopped)
        return False

    def lines(self, batch: RecordBatch) -> Sequence[Mapping[str, Any]]:
        """Return the lines of the predictions of a batch."""
        if self.source is not None or not batch.predicted:
            return []
        written = self.challengers.others if self.writes_others else ()
        others = {name: batch.others.get(name) for name in written}
        return predictions(batch.predicted, batch.result, batch.rows, self.name, others, self.checkpoint)

    def close(self, batch: RecordBatch) -> RecordBatch:
        """Add a batch to the counts and scores, and return it."""
        self.overrun |= batch.late is not None and batch.late.overrun
        counts = batch.counts
        counts.learned = counts.learned - batch.n_ignored if self.learner.learn else 0
        counts.unlabeled += batch.n_ignored
        for number in batch.dead_numbers:
            self.overrun |= self.rate.add(self.counts.consumed + number)
        self.counts.add(counts)
        published = batch.labeled[""]
        Scores(self.quality, self.loss).add(published, self.learner.learn)
        if self.calibration is not None:
            self.calibration.add(published)
        for name, labeled in batch.labeled.items():
            if name:
                self.others[name].add(labeled, self.learner.learn)
        return batch
