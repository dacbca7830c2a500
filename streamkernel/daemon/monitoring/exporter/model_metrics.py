"""The Prometheus metrics that only our estimators have: steps of growth, weights of experts, importance of inputs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from streamkernel.daemon.base.mixture import MOST_INPUTS, experts_of, important_inputs, mixes
from streamkernel.daemon.base.model import Model, is_ours, last_step, learning_part, task_of
from streamkernel.daemon.base.window_refit import window_refit_of
from streamkernel.daemon.monitoring.growth import check_margin_of, grows

__all__ = ["ModelMetrics", "metrics_of"]


class ModelMetrics:
    """The metrics of an estimator of ours, with a prefix to their names, in a registry.

    Attributes
    ----------
    ignored_inputs
        The counter of inputs past a limit.

    """

    def __init__(self, step: Any, prefix: str, registry: CollectorRegistry) -> None:
        self._step = step
        self._counter = partial(Counter, namespace=prefix, registry=registry)
        self._gauge = partial(Gauge, namespace=prefix, registry=registry)
        self._features = self._gauge("random_features", "Random features (frequencies) of the model.")
        self.ignored_inputs = self._counter("ignored_inputs", "Inputs or labels past the model's limits, ignored.")
        self._counters: dict[str, Counter] = {}
        self._seen: dict[str, int] = {}
        for name in ("n_ignored_inputs", "n_ignored_labels"):
            if hasattr(self._step, name):
                self._count(name, self.ignored_inputs)

    def follow(self, model: Model) -> None:
        """Read another model of the same classes and arguments from now on; what that one has counted is not added."""
        self._step = last_step(model)
        self._seen = {name: int(getattr(self._step, name)) for name in self._counters}

    def refresh(self) -> None:
        """Bring all up to date."""
        self._features.set(self._step.n_features)
        for name, counter in self._counters.items():
            now = int(getattr(self._step, name))
            # A machine that starts over with its measured bandwidth replays its first records: its count may fall.
            if now > self._seen[name]:
                counter.inc(now - self._seen[name])
            self._seen[name] = now

    def _count(self, name: str, counter: Counter) -> None:
        """Let a counter follow an attribute of the model, from now on."""
        self._counters[name] = counter
        self._seen[name] = int(getattr(self._step, name))


class _Growth(ModelMetrics):
    """The metrics of a growing machine."""

    def __init__(self, step: Any, prefix: str, registry: CollectorRegistry) -> None:
        super().__init__(step, prefix, registry)
        limit = self._gauge("max_features", "Maximum number of random features of the model. +Inf: no limit.")
        most = getattr(learning_part(step), "max_features", None)
        limit.set(math.inf if most is None else most)
        blocks = self._counter("feature_blocks", "Updates that grew a new block or reused an old one.", ["action"])
        self._count("n_grown", blocks.labels("grown"))
        self._count("n_reused", blocks.labels("reused"))
        self._margin = self._gauge(
            "check_margin",
            "Margin of inequality (9), right side minus left, when CDSG or a mixture last reused a block. NaN before "
            "that. Always NaN with preconditioned steps or another growth policy, which have no such check.",
        )

    def refresh(self) -> None:
        super().refresh()
        self._margin.set(check_margin_of(self._step))


class _WindowRefit(_Growth):
    """The metrics of a growing machine that is refitted on its window."""

    def __init__(self, step: Any, prefix: str, registry: CollectorRegistry) -> None:
        super().__init__(step, prefix, registry)
        self._records = self._gauge("window_records", "Labeled records in the window of the model.")
        self._most = self._gauge("window_max_records", "Maximum number of records in the window.")
        self._count("n_refits", self._counter("window_refits", "Refits of the model on its window."))
        failures = self._counter(
            "window_refit_failures", "Refits that the solver refused. The model continued without them."
        )
        self._count("n_refit_failures", failures)
        self._seconds = self._counter("window_refit_seconds", "Seconds spent on refits. The stream waits meanwhile.")
        self._last = self._gauge("window_refit_last_seconds", "Seconds of the last refit. NaN before the first.")
        self._loss = self._gauge(
            "window_loss", "Mean loss on the window right after the last refit. NaN before the first."
        )
        self._counted_seconds = float(step.refit_seconds)

    def follow(self, model: Model) -> None:
        super().follow(model)
        self._counted_seconds = float(self._step.refit_seconds)

    def refresh(self) -> None:
        super().refresh()
        self._records.set(self._step.n_window)
        self._most.set(self._step.max_window)
        last = self._step.last_refit
        self._last.set(math.nan if last is None else last.seconds)
        self._loss.set(math.nan if last is None else last.loss)
        seconds = float(self._step.refit_seconds)
        self._seconds.inc(max(0.0, seconds - self._counted_seconds))
        self._counted_seconds = seconds


class _Novelty(_Growth):
    """The metrics of a novelty detector."""

    def __init__(self, step: Any, prefix: str, registry: CollectorRegistry) -> None:
        super().__init__(step, prefix, registry)
        self._threshold = self._gauge("novelty_threshold", "The model's threshold. It flags records below it.")
        self._count(
            "n_flagged", self._counter("novelties", "Records flagged as novelties before the model learned them.")
        )

    def refresh(self) -> None:
        super().refresh()
        self._threshold.set(self._step.threshold)


class _DensityRatio(_Growth):
    """The metrics of a density ratio."""

    def __init__(self, step: Any, prefix: str, registry: CollectorRegistry) -> None:
        super().__init__(step, prefix, registry)
        self._divergence = self._gauge("divergence_nats", "Divergence of the two samples. NaN before both have come.")
        shares = self._gauge("sample_share", "Share of each sample among the last records.", ["sample"])
        self._shares = {"p": shares.labels("p"), "q": shares.labels("q")}

    def refresh(self) -> None:
        super().refresh()
        self._divergence.set(self._step.divergence)
        for child, share in zip(self._shares.values(), self._step.sample_shares.values(), strict=True):
            child.set(share)


class _Shares(Collector):
    """A gauge whose label has other values now and then: a scrape sees those of one moment, and none that have gone."""

    def __init__(self, name: str, text: str, label: str) -> None:
        self._name = name
        self._text = text
        self._label = label
        self.values: Mapping[str, float] = {}

    def collect(self) -> Iterator[GaugeMetricFamily]:
        family = GaugeMetricFamily(self._name, self._text, labels=[self._label])
        for name, value in self.values.items():
            family.add_metric([name], value)
        yield family


class _Experts(ModelMetrics):
    """The metrics of a mixture of experts."""

    def __init__(self, step: Any, prefix: str, registry: CollectorRegistry) -> None:
        super().__init__(step, prefix, registry)
        self._experts = _Shares(
            f"{prefix}_expert_weight",
            "Weight of each expert and stack in the prediction. The weights sum to 1.",
            "expert",
        )
        self._inputs = _Shares(
            f"{prefix}_input_importance",
            f"Share of each input in the predictions. Exports the {MOST_INPUTS} most important inputs only.",
            "input",
        )
        registry.register(self._experts)
        registry.register(self._inputs)

    def refresh(self) -> None:
        super().refresh()
        self._experts.values = experts_of(self._step)
        self._inputs.values = important_inputs(self._step)


class _Adaptive(_Experts):
    """The metrics of an adaptive machine."""

    def __init__(self, step: Any, prefix: str, registry: CollectorRegistry) -> None:
        super().__init__(step, prefix, registry)
        drifts = self._counter("drift_events", "Drifts that the model detected in its losses.")
        relearnings = self._counter(
            "metric_relearnings", "How often the model learned the metric of the inputs, including the first time."
        )
        for name, counter in {"n_drifts_detected": drifts, "n_metric_relearnings": relearnings}.items():
            if hasattr(step, name):
                self._count(name, counter)


class _GrowingMixture(_Growth, _Experts):
    """The metrics of a growing machine with several heads."""


def metrics_of(model: Model, prefix: str, registry: CollectorRegistry) -> ModelMetrics | None:
    """Register the metrics of a model; None where it, or the last step of the pipeline, is none of ours."""
    kind = _kind(model)
    if kind is None:
        return None
    made = kind(last_step(model), prefix, registry)
    made.refresh()
    return made


def _kind(model: Model) -> type[ModelMetrics] | None:
    if window_refit_of(model) is not None:
        return _WindowRefit
    if mixes(model):
        return _GrowingMixture if grows(model) else _Adaptive
    if grows(model):
        kinds: dict[str, type[ModelMetrics]] = {"novelty": _Novelty, "density_ratio": _DensityRatio}
        return kinds.get(task_of(model), _Growth)
    step = last_step(model)
    return ModelMetrics if is_ours(step) and hasattr(step, "n_features") else None
