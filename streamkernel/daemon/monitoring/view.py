"""The figures of a run at one moment. The status page, the metrics, the tables and the log all show this snapshot."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from streamkernel.daemon.base.model import Model, count_of, last_step
from streamkernel.daemon.base.window_refit import window_refit_of
from streamkernel.daemon.stream.processor import Processor, Scores

__all__ = [
    "CheckpointFigures",
    "ModelFigures",
    "ModelView",
    "View",
    "changes_of",
    "check_margin_of",
    "figures_of",
    "grows",
    "growth_of",
    "views_of_models",
]

_GROWTH = {"features": "n_features", "blocks": "n_blocks", "grown": "n_grown", "reused": "n_reused"}
_OF_STATUS = ("disabled", "shown", "shown_here", "refused", "not_finite", "seconds")
_CHANGES = {"drifts": "n_drifts_detected", "metric_relearnings": "n_metric_relearnings"}


@dataclass(frozen=True, kw_only=True)
class ModelFigures:
    """The figures of one model, of this process."""

    seconds: float = 0.0  # at work on it; of a run, since the process began
    loss: float = math.nan  # the progressive loss
    loss_sum: float = 0.0
    losses: int = 0  # that went into the sum
    losses_not_finite: int = 0
    overall: Mapping[str, float] = field(default_factory=dict)  # the report metrics over all records
    baseline: Mapping[str, float] = field(default_factory=dict)  # those of the majority class, or of the mean so far
    rolling: Mapping[str, float] = field(default_factory=dict)  # and over the last ones
    growth: Mapping[str, int] = field(default_factory=dict)  # features, blocks, grown and reused, if the model has them


def figures_of(scores: Scores, model: Model | None) -> dict[str, Any]:
    """Return what `ModelFigures` holds of the scores of a model, except the seconds."""
    return {
        "loss": scores.loss.mean(),
        "loss_sum": scores.loss.sum,
        "losses": scores.loss.count,
        "losses_not_finite": scores.loss.n_not_finite,
        "overall": scores.quality.overall(),
        "baseline": scores.quality.baseline(),
        "rolling": scores.quality.rolling(),
        "growth": {} if model is None else growth_of(model),
    }


@dataclass(frozen=True)
class ModelView(ModelFigures):
    """The figures of one of several models."""

    published: bool = False
    disabled: str = ""  # why; empty where it is not
    shown: int = 0  # events it was given since it began
    shown_here: int = 0  # of these, those of this process
    refused: int = 0
    not_finite: int = 0

    def to_json(self) -> dict[str, Any]:
        """Return the figures by name."""
        return asdict(self)

    @property
    def enabled(self) -> bool:
        """Whether the model learns."""
        return not self.disabled

    @property
    def state(self) -> str:
        """Published, a challenger, or disabled."""
        return "disabled" if self.disabled else "published" if self.published else "challenger"


@dataclass(frozen=True)
class CheckpointFigures:
    """The checkpoints of a run: the last one, the failures, and when the next one is due."""

    name: str | None = None  # of the last one that this process wrote
    time: float = math.nan  # when the last one was written, also by the process before, in seconds since 1970
    bytes: int | None = None
    seconds: float | None = None  # that it took
    records: int | None = None  # how far it reaches
    failures: int = 0  # of this process
    next_records: int | None = None  # the next one is due after this number of records
    next_seconds: float | None = None  # or after this time, whichever comes first


@dataclass(frozen=True)
class View(ModelFigures):
    """A snapshot of the daemon, with the figures of its only or published model."""

    account: Mapping[str, int] = field(default_factory=dict)  # `RecordCounts`, since the first start
    taken: int = 0  # records this process consumed
    rate: float = math.nan  # records a second since the first batch was learned: compiling does not count
    offset: int = 0  # where the source continues
    # Of several targets, those of each, over all records of this process and over the last ones.
    targets: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    rolling_targets: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    window: int = 0  # how many labeled records the progressive loss and the rolling metrics look back; 0: not known
    experts: Mapping[str, float] = field(default_factory=dict)  # the weights of its experts, where it has them
    inputs: Mapping[str, float] = field(default_factory=dict)  # the shares of its most important inputs
    # Drifts detected and metrics learned, where the model adapts.
    changes: Mapping[str, int] = field(default_factory=dict)
    check_margin: float = math.nan  # by how much inequality (9) held, where the model grows by CDSG
    calibration_error: float = math.nan  # of a classifier with probabilities
    interval_coverage: float = math.nan  # of a regressor with deviations: the share of targets within the central 90%
    loop_seconds: Mapping[str, float] = field(default_factory=dict)  # of the loop of this process, by activity
    slowest_record: float = math.nan  # seconds, of the last one to two minutes
    last_record: float = math.nan  # when the last record was done, in seconds since 1970
    memory: int = 0  # bytes of the models, measured now and then
    # `LabelCounts`, and how many wait; empty without late labels.
    labels: Mapping[str, int] = field(default_factory=dict)
    checkpoint: str = "off"  # a phrase on the last checkpoint
    models: Mapping[str, ModelView] = field(default_factory=dict)  # of several, each by its name

    def phrase(self) -> str:
        """Return how many records were consumed, and the progressive loss where this process has learned any.

        Examples
        --------
        >>> View({"consumed": 1500}, loss=0.25).phrase(), View({"consumed": 1500}).phrase()
        ('1,500 records: progressive loss 0.25', '1,500 records')

        """
        loss = "" if math.isnan(self.loss) else f": progressive loss {self.loss:.4g}"
        return f"{self.account.get('consumed', 0):,} records{loss}"

    def to_json(self) -> dict[str, Any]:
        """Return the figures by the names that `evaluate --json` gives them."""
        always = {
            "account": self.account,
            "records": self.taken,
            "seconds": self.seconds,
            "records_per_second": self.rate,
            "metrics": self.overall,
            "rolling": self.rolling,
            "progressive_loss": self.loss,
        }
        some = {
            "baseline": self.baseline,
            "targets": self.targets,
            "losses_not_finite": self.losses_not_finite,
            "labels": self.labels,
            "expert_weights": self.experts,
            "input_importance": self.inputs,
            "models": {name: one.to_json() for name, one in self.models.items()},
        }
        return {**always, **self.growth, **self.changes, **{name: value for name, value in some.items() if value}}

    def by_model(self) -> dict[str, View]:
        """Return a view for each of several models by its name and state; the account is the published one's."""
        return {f"{name} ({one.state})": self._of(one) for name, one in self.models.items()}

    def _of(self, one: ModelView) -> View:
        figures = {figure.name: getattr(one, figure.name) for figure in fields(ModelFigures)}
        if one.published:
            return replace(self, models={}, **figures)
        return View(taken=one.shown_here, window=self.window, **figures)


def views_of_models(processor: Processor) -> dict[str, ModelView]:
    """Return the figures of each of several models by its name; empty for one model without a name."""
    challengers = processor.challengers
    if challengers is None:
        return {}
    views = {}
    for name, status in challengers.statuses.items():
        published = name == challengers.published
        scores = Scores(processor.quality, processor.loss) if published else processor.others.get(name)
        learner = processor.learner if published else challengers.learners.get(name)
        figures = {} if scores is None else figures_of(scores, None if learner is None else learner.model)
        views[name] = ModelView(published=published, **{one: getattr(status, one) for one in _OF_STATUS}, **figures)
    return views


def grows(model: Model) -> bool:
    """Return whether a model, or the last step of a pipeline, is a kernel machine that grows."""
    step = last_step(model)
    return all(hasattr(step, attribute) for attribute in _GROWTH.values())


def growth_of(model: Model) -> dict[str, int]:
    """Read how far a model has grown, and how often it was refitted; empty for models that do not grow."""
    if not grows(model):
        return {}
    step = last_step(model)
    attributes = _GROWTH if window_refit_of(model) is None else {**_GROWTH, "refits": "n_refits", "window": "n_window"}
    return {name: int(getattr(step, attribute)) for name, attribute in attributes.items()}


def check_margin_of(model: Model) -> float:
    """Return by how much inequality (9) held when CDSG last reused a block; NaN before, and for any other model."""
    return float(getattr(last_step(model), "last_check_margin", math.nan))


def changes_of(model: Model) -> dict[str, int]:
    """Return how many drifts a model detected, and how often it learned its metric; empty for models that do not."""
    counts = {name: count_of(last_step(model), one) for name, one in _CHANGES.items()}
    return {name: count for name, count in counts.items() if count is not None}
