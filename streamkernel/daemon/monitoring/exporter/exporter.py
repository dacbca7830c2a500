"""The Prometheus metrics of the daemon. Their names are a public interface: dashboards and alerts rest on them.

Counters start at 0 with the process, as Prometheus expects; what reaches over restarts is the gauge `lifetime_records`.
Everything is updated per chunk of records by children that were bound once.
"""

from __future__ import annotations

import math
import platform
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib.metadata import version
from operator import attrgetter
from typing import Any, TypeVar

import prometheus_client
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from prometheus_client.core import UnknownMetricFamily
from prometheus_client.registry import Collector

from streamkernel.connectors.ports import Source
from streamkernel.daemon.base.dead_letters import REASONS
from streamkernel.daemon.base.model import OF_EACH, Model, task_of
from streamkernel.daemon.http.published import PublishedMetrics
from streamkernel.daemon.labels.join import LabelJoin
from streamkernel.daemon.monitoring.exporter.label_metrics import LabelMetrics
from streamkernel.daemon.monitoring.exporter.lag import LagCollector
from streamkernel.daemon.monitoring.exporter.model_metrics import metrics_of
from streamkernel.daemon.monitoring.exporter.output_latency import OutputLatency
from streamkernel.daemon.monitoring.exporter.several_metrics import SeveralModelsCollector
from streamkernel.daemon.monitoring.exporter.trained_metrics import TrainedMetrics
from streamkernel.daemon.monitoring.model_view import ModelView
from streamkernel.daemon.monitoring.view import View
from streamkernel.daemon.run_state.schedule import CheckpointObserver, SavedCheckpoint
from streamkernel.daemon.run_state.trained import TrainedModel
from streamkernel.daemon.stream.calibration import LEVEL
from streamkernel.daemon.stream.loop_time import ACTIVITIES
from streamkernel.daemon.stream.record_batch import RecordBatch

__all__ = ["Exporter"]

Made = TypeVar("Made")

_PREFIX = "streamkernel"
# Parsed, not multiplied: the bounds become labels, and 4.9999999999999996e-06 is none to type.
_RECORD_BUCKETS = tuple(float(f"{base}e{power}") for power in range(-6, 1) for base in (1, 2.5, 5))
_CHECKPOINT_BUCKETS = tuple(float(f"{base}e{power}") for power in range(-3, 2) for base in (1, 2.5, 5))

# By what of a chunk they count: name and description.
_COUNTERS = {
    "counts.learned": ("records_learned", "Records the model learned."),
    "counts.predicted": ("records_predicted", "Records the model predicted."),
    "counts.unlabeled": ("records_unlabeled", "Records only predicted, mostly for lack of a target."),
    "n_ignored": ("ignored_labels", "Records not learned because their class exceeds the model's limit."),
    "n_clipped": ("clipped_targets", "Targets beyond 1e100, learned as 1e100."),
    "counts.skipped": ("records_skipped", "Empty lines and tombstones."),
}
_DURATIONS = {
    "predict_seconds": ("predict_duration_seconds", "Seconds to predict a record, sampled."),
    "learn_seconds": (
        "learn_duration_seconds",
        "Seconds to learn a record (our estimators: to predict and learn it), one sample per chunk.",
    ),
}


_Figures = dict[str, tuple[str, Callable[[View], float]]]
# Gauges of a view: name, description and figure.
_FIGURES: _Figures = {
    "progressive_loss": (
        "Mean loss over the last labeled records. For a regressor, in standard deviations of the targets.",
        attrgetter("loss"),
    ),
    "lifetime_records": ("Records consumed since the first start.", lambda view: view.account.get("consumed", 0)),
    "slowest_record_seconds": (
        "Longest time in the last one to two minutes from reading a record, or its late label, until it is "
        "learned. NaN if none came.",
        attrgetter("slowest_record"),
    ),
}
_OF_CLASSES: _Figures = {
    "calibration_error": (
        "Expected calibration error of the predicted label's probability, in ten bins, over the last labeled "
        "records, sampled. NaN if the model gives no probabilities.",
        attrgetter("calibration_error"),
    ),
}
_COVERAGE = (
    "Share of the targets in the central Gaussian interval of this level, over the last labeled records, "
    "sampled. NaN if lines have no std, and for late labels, which have none."
)
_LOOP = (
    "Seconds of the loop: waiting for records and reading them (source), predicting and learning (model), "
    "writing lines or waiting for an output (sinks), saving (checkpoints)."
)


def _make(registry: CollectorRegistry, kind: Callable[..., Made], name: str, *described: Any, **settings: Any) -> Made:
    return kind(name, *described, namespace=_PREFIX, registry=registry, **settings)


class _LossSum(Collector):
    """`loss_sum` without a type: it may fall, so it is no counter, and Prometheus wants no gauge to end in `_sum`."""

    def __init__(self) -> None:
        self.value = 0.0

    def collect(self) -> Iterator[UnknownMetricFamily]:
        text = "Sum of the losses before each learning step. For a regressor, in standard deviations of the targets."
        yield UnknownMetricFamily(f"{_PREFIX}_loss_sum", text, self.value)


class Exporter(CheckpointObserver):
    """The metrics of one daemon, in a registry of their own.

    Parameters
    ----------
    model
        The model; those of ours have more to export.
    report
        Names of the report metrics.
    window
        How many records the rolling ones look back.
    late
        The join of late labels; None where there are none.
    source, labels
        Where the records and the late labels come from, asked at each scrape for how many are known of; None: unknown.
    trained
        Of mode predict, the model with the checkpoint it is from.
    outputs
        The keys of the outputs that tell how late their lines are.

    Attributes
    ----------
    registry
        All metrics.
    served
        What to serve: the metrics as they were when the loop published them last.

    """

    def __init__(
        self,
        model: Model,
        report: Sequence[str],
        window: int,
        late: LabelJoin | None = None,
        source: Source | None = None,
        labels: Source | None = None,
        trained: TrainedModel | None = None,
        outputs: Sequence[str] = (),
    ) -> None:
        # The time each counter was made is of no use here and doubles the number of series.
        prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = CollectorRegistry()
        self._make = partial(_make, self.registry)
        self._lag = LagCollector(_PREFIX, source, labels)
        self.registry.register(self._lag)
        self._make_chunk_metrics()
        self._make_view_metrics(model, report, window)
        self._make_checkpoint_metrics()
        ProcessCollector(registry=self.registry)
        self._model = metrics_of(model, _PREFIX, self.registry)
        self._counters[attrgetter("n_ignored_inputs")] = (
            self._make(Counter, "ignored_inputs", "Inputs ignored because they exceed the daemon's limits.")
            if self._model is None
            else self._model.ignored_inputs
        )
        self._latency = OutputLatency(_PREFIX, outputs)
        if outputs:
            self.registry.register(self._latency)
        self._labels = LabelMetrics(late, _PREFIX, self.registry) if late is not None else None
        self._trained: TrainedMetrics | None = None
        if trained is not None:
            self._trained = TrainedMetrics(_PREFIX, self.registry)
            self._trained.set(trained)
        self.served = PublishedMetrics(self.registry)

    def _make_chunk_metrics(self) -> None:
        """Make what counts the records of a chunk."""
        self._counters = {attrgetter(count): self._make(Counter, *named) for count, named in _COUNTERS.items()}
        not_finite = self._make(
            Counter, "not_finite", "Predictions and losses of the model that were not finite.", ["value"]
        )
        self._counters[attrgetter("n_not_finite")] = not_finite.labels("prediction")
        self._counters[attrgetter("n_losses_not_finite")] = not_finite.labels("loss")
        self._dead = self._make(Counter, "records_dead_lettered", "Dead letters, by reason.", ["reason"])
        for reason in REASONS:  # a rate needs the 0 before the first one
            self._dead.labels(reason)
        self._observations = self._make(Counter, "loss_observations", "Losses in loss_sum.")
        self._durations = {
            attrgetter(one): self._make(Histogram, *named, buckets=_RECORD_BUCKETS) for one, named in _DURATIONS.items()
        }

    def _make_view_metrics(self, model: Model, report: Sequence[str], window: int) -> None:
        """Make what shows a view."""
        task = task_of(model)
        self._loss_sum = _LossSum()
        self.registry.register(self._loss_sum)
        figures = _FIGURES | _OF_CLASSES if task == "classification" else _FIGURES
        self._figures = [(self._make(Gauge, name, text), value) for name, (text, value) in figures.items()]
        if task == "regression":
            coverage = self._make(Gauge, "interval_coverage", _COVERAGE, ["level"]).labels(str(LEVEL))
            self._figures.append((coverage, attrgetter("interval_coverage")))
        for gauge, value in self._figures:
            gauge.set(value(View()))
        rolling = self._make(
            Gauge, "rolling_metric", "Report metrics over the last labeled records.", ["metric", "window"]
        )
        self._rolling = {name: rolling.labels(name, str(window)) for name in report}
        self._of_targets: Gauge | None = None
        if task in OF_EACH:
            text = "Report metrics of each target over the last labeled records."
            self._of_targets = self._make(Gauge, "rolling_target_metric", text, ["metric", "target", "window"])
        seconds = self._make(Counter, "loop_seconds", _LOOP, ["activity"])
        self._loop = {activity: seconds.labels(activity) for activity in ACTIVITIES}
        self._loop_seconds = dict.fromkeys(ACTIVITIES, 0.0)
        self._last_record = self._make(
            Gauge, "last_record_timestamp_seconds", "When the daemon finished the last record."
        )
        self._memory = self._make(Gauge, "model_memory_bytes", "Size of the model's state and of the records it keeps.")
        self._models = SeveralModelsCollector(_PREFIX, window)
        build = self._make(Gauge, "build_info", "Versions this daemon runs with.", ["version", "river", "python"])
        build.labels(version("streamkernel"), version("river"), platform.python_version()).set(1)
        self._snapshot = self._make(Gauge, "snapshot_timestamp_seconds", "When the loop last updated these figures.")
        self._snapshot.set(math.nan)

    def _make_checkpoint_metrics(self) -> None:
        """Make what shows the checkpoints."""
        self._failures = self._make(Counter, "checkpoint_failures", "Checkpoints that the daemon failed to write.")
        self._checkpoint_time = self._make(
            Gauge, "checkpoint_last_success_timestamp_seconds", "When the daemon wrote the last checkpoint."
        )
        self._checkpoint_time.set(math.nan)  # and not 1970: nothing was written yet
        self._checkpoint_size = self._make(Gauge, "checkpoint_size_bytes", "Size of the last checkpoint.")
        self._checkpoint_seconds = self._make(
            Histogram, "checkpoint_duration_seconds", "Seconds to write a checkpoint.", buckets=_CHECKPOINT_BUCKETS
        )

    def publish(self) -> None:
        """Publish all figures as they are now, for the scrapes until the next time."""
        self.served.publish()

    def chunk(self, processed: RecordBatch) -> None:
        """Count a chunk."""
        self._lag.chunk(processed)
        for count, counter in self._counters.items():
            counter.inc(count(processed))
        for reason, dead in processed.dead.items():
            self._dead.labels(reason).inc(dead)
        self._observations.inc(len(processed.losses))
        if self._labels is not None and processed.late is not None:
            self._labels.chunk(processed.late)
        for duration, histogram in self._durations.items():
            if (seconds := duration(processed)) is not None:
                histogram.observe(seconds)

    def refresh(self, view: View, last_record: float) -> None:
        """Set the gauges by a view; every half second is often enough.

        The time of the last record is in seconds since 1970, NaN before the first.
        """
        if self._model is not None:
            self._model.refresh()
        if self._labels is not None:
            self._labels.refresh()
        self.show_models(view.models)
        for activity, now in view.loop_seconds.items():
            self._loop[activity].inc(now - self._loop_seconds[activity])
            self._loop_seconds[activity] = now
        for gauge, figure in self._figures:
            gauge.set(figure(view))
        self._last_record.set(last_record)
        self._loss_sum.value = view.loss_sum
        for name, value in view.rolling.items():
            self._rolling[name].set(value)
        if self._of_targets is not None:
            for target, figures in view.rolling_targets.items():
                for name, value in figures.items():
                    self._of_targets.labels(name, target, str(view.window)).set(value)
        self._snapshot.set(time.time())

    def lag(self) -> Mapping[tuple[str, int], int]:
        """Return how many records are still to come by topic and partition, as far as known."""
        return self._lag.left()

    def predicts_with(self, trained: TrainedModel) -> None:
        """Note that another model predicts from now on."""
        if self._model is not None:
            self._model.follow(trained.model)
        if self._trained is not None:
            self._trained.reloaded(trained)

    def reload_failed(self) -> None:
        """Count a newer checkpoint that could not be used."""
        if self._trained is not None:
            self._trained.failed()

    def show_models(self, views: Mapping[str, ModelView]) -> None:
        """Show each of several models next to the published one; nothing where there is one without a name."""
        if views and not self._models.views:
            self._models.views = views
            self.registry.register(self._models)
        self._models.views = views

    def memory(self, size: int) -> None:
        """Set the memory of the model, in bytes."""
        self._memory.set(size)

    def published(self, output: str, seconds: float, n_lines: int) -> None:
        """Count lines that others can read, `seconds` after the daemon read their records."""
        self._latency.observe(output, seconds, n_lines)

    def saved(self, saved: SavedCheckpoint, now: float) -> None:
        """Note a checkpoint, written at `now` (seconds since 1970)."""
        self._checkpoint_time.set(now)
        self._checkpoint_size.set(saved.size)
        self._checkpoint_seconds.observe(saved.seconds)

    def resumed(self, written: float) -> None:
        """Note when the checkpoint was written that this process started from: its age is what an alert asks for."""
        self._checkpoint_time.set(written)

    def failed(self) -> None:
        """Count a checkpoint that could not be written."""
        self._failures.inc()
