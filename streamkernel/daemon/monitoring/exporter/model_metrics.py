"""The Prometheus metrics that only our estimators have: steps of growth, weights of experts, importance of inputs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from prometheus_client import CollectorRegistry, Counter, Gauge
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from streamkernel.daemon.base.mixture import MOST_INPUTS, experts_of, important_inputs, mixes
from streamkernel.daemon.base.model import Model, is_ours, last_step, learning_part, task_of
from streamkernel.daemon.base.window_refit import window_refit_of
from streamkernel.daemon.monitoring.growth import check_margin_of, grows

__all__ = ["ModelMetrics", "metrics_of"]


class _Figure(NamedTuple):
    """A gauge of a model."""

    name: str
    text: str
    value: Callable[[Any], float]
    label: tuple[str, str] | None = None


class _Count(NamedTuple):
    """A counter that follows an attribute of a model."""

    name: str
    text: str
    attribute: str
    label: tuple[str, str] | None = None


class _Shares(NamedTuple):
    """A gauge with a value for each part of a model."""

    name: str
    text: str
    label: str
    values: Callable[[Any], Mapping[str, float]]


_Metric = _Figure | _Count | _Shares


def _most_features(step: Any) -> float:
    most = getattr(learning_part(step), "max_features", None)
    return math.inf if most is None else most


def _of_last_refit(figure: str) -> Callable[[Any], float]:
    return lambda step: math.nan if step.last_refit is None else getattr(step.last_refit, figure)


def _share_of(sample: int) -> Callable[[Any], float]:
    return lambda step: list(step.sample_shares.values())[sample]


_IGNORED = "Inputs or labels past the model's limits, ignored."
_BLOCKS = "Updates that grew a new block or reused an old one."
_SAMPLES = "Share of each sample among the last records."
_OURS: tuple[_Metric, ...] = (
    _Figure("random_features", "Random features (frequencies) of the model.", lambda step: step.n_features),
    _Count("ignored_inputs", _IGNORED, "n_ignored_inputs"),
    _Count("ignored_inputs", _IGNORED, "n_ignored_labels"),
)
_GROWTH: tuple[_Metric, ...] = (
    _Figure("max_features", "Maximum number of random features of the model. +Inf: no limit.", _most_features),
    _Count("feature_blocks", _BLOCKS, "n_grown", ("action", "grown")),
    _Count("feature_blocks", _BLOCKS, "n_reused", ("action", "reused")),
    _Figure(
        "check_margin",
        "Margin of inequality (9), right side minus left, when CDSG or a mixture last reused a block. NaN before "
        "that. Always NaN with preconditioned steps or another growth policy, which have no such check.",
        check_margin_of,
    ),
)
_WINDOW_REFIT: tuple[_Metric, ...] = (
    _Figure("window_records", "Labeled records in the window of the model.", lambda step: step.n_window),
    _Figure("window_max_records", "Maximum number of records in the window.", lambda step: step.max_window),
    _Count("window_refits", "Refits of the model on its window.", "n_refits"),
    _Count(
        "window_refit_failures",
        "Refits that the solver refused. The model continued without them.",
        "n_refit_failures",
    ),
    _Count("window_refit_seconds", "Seconds spent on refits. The stream waits meanwhile.", "refit_seconds"),
    _Figure("window_refit_last_seconds", "Seconds of the last refit. NaN before the first.", _of_last_refit("seconds")),
    _Figure(
        "window_loss",
        "Mean loss on the window right after the last refit. NaN before the first.",
        _of_last_refit("loss"),
    ),
)
_NOVELTY: tuple[_Metric, ...] = (
    _Figure("novelty_threshold", "The model's threshold. It flags records below it.", lambda step: step.threshold),
    _Count("novelties", "Records flagged as novelties before the model learned them.", "n_flagged"),
)
_DENSITY_RATIO: tuple[_Metric, ...] = (
    _Figure(
        "divergence_nats",
        "Divergence of the two samples. NaN before both have come.",
        lambda step: step.divergence,
    ),
    _Figure("sample_share", _SAMPLES, _share_of(0), ("sample", "p")),
    _Figure("sample_share", _SAMPLES, _share_of(1), ("sample", "q")),
)
_EXPERTS: tuple[_Metric, ...] = (
    _Shares(
        "expert_weight",
        "Weight of each expert and stack in the prediction. The weights sum to 1.",
        "expert",
        experts_of,
    ),
    _Shares(
        "input_importance",
        f"Share of each input in the predictions. Exports the {MOST_INPUTS} most important inputs only.",
        "input",
        important_inputs,
    ),
)
_ADAPTIVE: tuple[_Metric, ...] = (
    _Count("drift_events", "Drifts that the model detected in its losses.", "n_drifts_detected"),
    _Count(
        "metric_relearnings",
        "How often the model learned the metric of the inputs, including the first time.",
        "n_metric_relearnings",
    ),
)


class _SharesCollector(Collector):
    """A gauge whose label has other values now and then: a scrape sees those of one moment, and none that have gone."""

    def __init__(self, prefix: str, shares: _Shares) -> None:
        self._name = f"{prefix}_{shares.name}"
        self._shares = shares
        self.values: Mapping[str, float] = {}

    def collect(self) -> Iterator[GaugeMetricFamily]:
        family = GaugeMetricFamily(self._name, self._shares.text, labels=[self._shares.label])
        for name, value in self.values.items():
            family.add_metric([name], value)
        yield family


class ModelMetrics:
    """The metrics of an estimator of ours, with a prefix to their names, in a registry.

    Attributes
    ----------
    ignored_inputs
        The counter of inputs past a limit.

    """

    def __init__(self, step: Any, metrics: Iterable[_Metric], prefix: str, registry: CollectorRegistry) -> None:
        self._step = step
        self._gauges: list[tuple[Gauge, Callable[[Any], float]]] = []
        self._counters: dict[str, Counter] = {}
        self._shares: list[tuple[_SharesCollector, Callable[[Any], Mapping[str, float]]]] = []
        made: dict[str, Any] = {}
        for metric in metrics:
            if isinstance(metric, _Shares):
                collector = _SharesCollector(prefix, metric)
                registry.register(collector)
                self._shares.append((collector, metric.values))
                continue
            if metric.name not in made:
                kind = Counter if isinstance(metric, _Count) else Gauge
                labels = [metric.label[0]] if metric.label else []
                made[metric.name] = kind(metric.name, metric.text, labels, namespace=prefix, registry=registry)
            child = made[metric.name].labels(metric.label[1]) if metric.label else made[metric.name]
            if isinstance(metric, _Figure):
                self._gauges.append((child, metric.value))
            elif hasattr(step, metric.attribute):
                self._counters[metric.attribute] = child
        self.ignored_inputs: Counter = made["ignored_inputs"]
        self.follow(step)

    def follow(self, model: Model) -> None:
        """Read another model of the same classes and arguments from now on; what that one has counted is not added."""
        self._step = last_step(model)
        self._seen = {name: getattr(self._step, name) for name in self._counters}

    def refresh(self) -> None:
        """Bring all up to date."""
        for gauge, value in self._gauges:
            gauge.set(value(self._step))
        for name, counter in self._counters.items():
            now = getattr(self._step, name)
            # A machine that starts over with its measured bandwidth replays its first records: its count may fall.
            counter.inc(max(0, now - self._seen[name]))
            self._seen[name] = now
        for collector, values in self._shares:
            collector.values = values(self._step)


def metrics_of(model: Model, prefix: str, registry: CollectorRegistry) -> ModelMetrics | None:
    """Register the metrics of a model; None where it, or the last step of the pipeline, is none of ours."""
    step = last_step(model)
    metrics = _metrics_of(model, step)
    if metrics is None:
        return None
    made = ModelMetrics(step, metrics, prefix, registry)
    made.refresh()
    return made


def _metrics_of(model: Model, step: Any) -> tuple[_Metric, ...] | None:
    if window_refit_of(model) is not None:
        return _OURS + _GROWTH + _WINDOW_REFIT
    if mixes(model):
        if grows(model):
            return _OURS + _EXPERTS + _GROWTH
        return _OURS + _EXPERTS + _ADAPTIVE
    if grows(model):
        return _OURS + _GROWTH + {"novelty": _NOVELTY, "density_ratio": _DENSITY_RATIO}.get(task_of(model), ())
    return _OURS if is_ours(step) and hasattr(step, "n_features") else None
