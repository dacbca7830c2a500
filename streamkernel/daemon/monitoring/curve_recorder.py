"""Notes the curves and marks of an evaluation while the loop turns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from streamkernel.daemon.base.model import Model
from streamkernel.daemon.monitoring.evaluation import Evaluation
from streamkernel.daemon.monitoring.growth import changes_of, growth_of
from streamkernel.daemon.monitoring.watch import Watch
from streamkernel.daemon.stream.record_batch import RecordBatch

__all__ = ["MOST_POINTS", "POINT_RECORDS", "CurveRecorder"]

#: The curves have a point each time this number of records has come, on a slow machine and on a fast one.
POINT_RECORDS = 50
# A curve with more points than this loses every second one, and has points at twice the distance from there on: a long
# stream costs no more memory, and for each rolling metric the window is gone through at most so often and half as
# often again whenever the stream doubles.
MOST_POINTS = 1000


class CurveRecorder(Watch):
    """Observes the loop as the watch does, and notes curves and marks next to it."""

    def __init__(self, *args: Any, **keywords: Any) -> None:
        super().__init__(*args, **keywords)
        self.evaluation = Evaluation(self.view)
        self._every = POINT_RECORDS
        self._changes = {name: changes_of(model) for name, model in self._models()}

    def chunk(self, done: RecordBatch) -> None:
        """Note a chunk."""
        super().chunk(done)
        if self._processor.taken % POINT_RECORDS == 0:
            self._mark()
        if self._processor.taken % self._every == 0:
            self._point()

    def finish(self) -> Evaluation:
        """Return what was noted, with the last view."""
        self._mark()
        self._point()
        self.evaluation.finish(self.refresh(exact=True))
        return self.evaluation

    def _point(self) -> None:
        """Add a point to all curves, and thin them out where there are too many."""
        curves, processor = self.evaluation, self._processor
        consumed = processor.counts.consumed
        if curves.records and curves.records[-1] == consumed:
            # Labels that come after the last record move the end of the curve.
            curves.drop_last()
        curves.add(consumed, processor.loss.mean(), growth_of(processor.learner.model), processor.quality.rolling())
        models = dict(self._models())
        for name, scores in processor.others.items():
            growth = growth_of(models[name]) if name in models else {}  # it may be disabled
            self._evaluation_of(name).add(consumed, scores.loss.mean(), growth, scores.quality.rolling())
        if len(curves.records) > MOST_POINTS:
            curves.thin_out()
            self._every *= 2

    def _mark(self) -> None:
        """Note of each model the drifts it detected and the metrics it learned since the last mark."""
        consumed = self._processor.counts.consumed
        for name, model in self._models():
            before, now = self._changes[name], changes_of(model)
            self._changes[name] = now
            new = {change: [consumed] * (count - before.get(change, 0)) for change, count in now.items()}
            if any(new.values()):
                evaluation = self._evaluation_of(name)
                evaluation.drifts += new.get("drifts", [])
                evaluation.relearnings += new.get("metric_relearnings", [])

    def _models(self) -> Iterator[tuple[str, Model]]:
        """Yield each model that learns with its name, the published one without."""
        yield "", self._processor.learner.model
        for name, learner in self._processor.challengers.learners.items():
            yield name, learner.model

    def _evaluation_of(self, name: str) -> Evaluation:
        return self.evaluation.others.setdefault(name, Evaluation(self.view)) if name else self.evaluation
