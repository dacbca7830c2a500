"""Progressive validation: its figures, curves and marks, noted while the loop turns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from streamkernel.daemon.base.model import Model
from streamkernel.daemon.monitoring.view import View, changes_of, growth_of
from streamkernel.daemon.monitoring.watch import Watch
from streamkernel.daemon.stream.record_batch import RecordBatch

__all__ = ["MOST_POINTS", "POINT_RECORDS", "CurveRecorder", "Evaluation"]

#: The curves have a point each time this number of records has come, on a slow machine and on a fast one.
POINT_RECORDS = 50
# A curve with more points than this loses every second one, and has points at twice the distance from there on: a long
# stream costs no more memory, and for each rolling metric the window is gone through at most so often and half as
# often again whenever the stream doubles.
MOST_POINTS = 1000


@dataclass
class Evaluation:
    """The result of a progressive validation of one configuration."""

    view: View  # the last one
    records: list[int] = field(default_factory=list)  # after how many there are the points of the curves
    loss: list[float] = field(default_factory=list)  # the progressive one, NaN before the first
    features: list[int | None] = field(default_factory=list)  # where the model has them; None once it is disabled
    others: dict[str, Evaluation] = field(default_factory=dict)  # of the models next to the published one, by name
    rolling: dict[str, list[float]] = field(default_factory=dict)  # the report metrics over the last records
    drifts: list[int] = field(default_factory=list)  # after how many records a drift was detected
    relearnings: list[int] = field(default_factory=list)  # after how many another metric was in force
    about: Mapping[str, str] = field(default_factory=dict)  # what was evaluated, fit to be shown
    stopped: str | None = None  # the signal that ended it before its source did
    pipeline: str = ""  # the model as River draws it, as HTML

    def add(self, records: int, loss: float, growth: Mapping[str, int], rolling: Mapping[str, float]) -> None:
        """Add a point to the curves."""
        self.records.append(records)
        self.loss.append(loss)
        if "features" in growth or self.features:
            self.features.append(growth.get("features"))
        for name, value in rolling.items():
            self.rolling.setdefault(name, []).append(value)

    def drop(self, points: slice) -> None:
        """Drop points of all curves."""
        for one in (self, *self.others.values()):
            curves: list[list[Any]] = [one.records, one.loss, one.features, *one.rolling.values()]
            for curve in curves:
                del curve[points]

    def finish(self, view: View) -> None:
        """Take the last view, and give each of several models its part of it."""
        self.view = view
        for (name, model), one in zip(view.models.items(), view.by_model().values(), strict=True):
            if not model.published and name in self.others:
                self.others[name].view = one

    def by_model(self, name: str) -> dict[str, Evaluation]:
        """Return the evaluation under a name, and of several models each under the name with its own after it."""
        if not self.view.models:
            return {name: self}
        views = dict(zip(self.view.models, self.view.by_model().values(), strict=True))
        own = next(one for one, model in self.view.models.items() if model.published)
        found = {
            one: replace(self, view=view, others={}) if one == own else self.others.get(one, Evaluation(view))
            for one, view in views.items()
        }
        return {f"{name}: {one}": evaluation for one, evaluation in found.items()}

    def to_json(self) -> dict[str, Any]:
        """Return the figures, curves and marks by the names that `evaluate --json` gives them."""
        curve: dict[str, Any] = {"records": self.records, "progressive_loss": self.loss}
        if self.features:
            curve["features"] = self.features
        if self.rolling:
            curve["rolling"] = self.rolling
        curve |= {"drifts": self.drifts, "metric_relearnings": self.relearnings}
        return {**self.view.to_json(), "stopped": self.stopped, "curve": curve}


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
            curves.drop(slice(-1, None))
        curves.add(consumed, processor.loss.mean(), growth_of(processor.learner.model), processor.quality.rolling())
        models = dict(self._models())
        for name, scores in processor.others.items():
            growth = growth_of(models[name]) if name in models else {}  # it may be disabled
            self._evaluation_of(name).add(consumed, scores.loss.mean(), growth, scores.quality.rolling())
        if len(curves.records) > MOST_POINTS:
            curves.drop(slice(None, None, 2))
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
        if self._processor.challengers is not None:
            for name, learner in self._processor.challengers.learners.items():
                yield name, learner.model

    def _evaluation_of(self, name: str) -> Evaluation:
        return self.evaluation.others.setdefault(name, Evaluation(self.view)) if name else self.evaluation
