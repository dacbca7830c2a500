"""The result of a progressive validation: figures, curves and marks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from streamkernel.daemon.monitoring.view import View

__all__ = ["Evaluation"]


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

    def drop_last(self) -> None:
        """Drop the last point of all curves."""
        for one in (self, *self.others.values()):
            for curve in one._curves():
                del curve[-1:]

    def thin_out(self) -> None:
        """Drop every second point of all curves, the first one to begin with."""
        for one in (self, *self.others.values()):
            for curve in one._curves():
                del curve[::2]

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

    def _curves(self) -> list[list[Any]]:
        return [self.records, self.loss, self.features, *self.rolling.values()]
