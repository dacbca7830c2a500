"""The figures behind the Prometheus metrics of a daemon: counted per chunk, and read from the last view.

Counters start at 0 with the process, as Prometheus expects. The gauge `lifetime_records` continues over restarts.
"""

from __future__ import annotations

import math
import platform
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from types import SimpleNamespace
from typing import Any

import prometheus_client
from prometheus_client import CollectorRegistry, ProcessCollector

from streamkernel.connectors.ports import Position, Source
from streamkernel.daemon.base.counts import LabelCounts, RecordCounts
from streamkernel.daemon.base.dead_letters import LABEL_REASONS, REASONS
from streamkernel.daemon.base.mixture import experts_of, important_inputs, mixes
from streamkernel.daemon.base.model import OF_EACH, Model, is_ours, last_step, learning_part, task_of
from streamkernel.daemon.base.window_refit import window_refit_of
from streamkernel.daemon.http.published import PublishedMetrics
from streamkernel.daemon.labels.join import LabelJoin
from streamkernel.daemon.monitoring.metrics import Buckets, TableCollector
from streamkernel.daemon.monitoring.view import CheckpointFigures, View, check_margin_of, grows
from streamkernel.daemon.run_state.schedule import CheckpointObserver, SavedCheckpoint
from streamkernel.daemon.run_state.trained import TrainedModel
from streamkernel.daemon.stream.calibration import LEVEL
from streamkernel.daemon.stream.loop_time import ACTIVITIES
from streamkernel.daemon.stream.record_batch import RecordBatch

__all__ = ["Exporter", "ModelReading", "TrainedCounts"]

_TOTALS = ("n_ignored", "n_clipped", "n_not_finite", "n_losses_not_finite", "n_ignored_inputs")
_DURATIONS = ("predict_duration", "learn_duration", "checkpoint_duration", "label_delay")


@dataclass
class TrainedCounts:
    """The trained model that predicts, and how its reloads went."""

    model: TrainedModel | None = None  # None before the first
    n_reloads: int = 0
    n_failures: int = 0

    def take(self, model: TrainedModel) -> None:
        """Note the model that predicts from now on; any but the first is a reload."""
        self.n_reloads += self.model is not None
        self.model = model

    def figures(self) -> dict[str, float]:
        """Return the figures of the checkpoint of the model, 0 before the first."""
        model = self.model
        return {name: 0 if model is None else getattr(model, name) for name in ("checkpoint", "records", "written")}


class ModelReading:
    """What the metrics show of a model, or of the last step of a pipeline."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.step: Any = last_step(model)
        self._seen: dict[str, float] = {}
        self._since: dict[str, float] = {}

    @property
    def sections(self) -> dict[str, bool]:
        """By section of the table, whether the model has its metrics."""
        model, task = self.model, task_of(self.model)
        refitted, growing = window_refit_of(model) is not None, grows(model)
        mixture = mixes(model) and not refitted
        return {
            "classifier": task == "classification",
            "regressor": task == "regression",
            "ours": growing or mixture or (is_ours(self.step) and hasattr(self.step, "n_features")),
            "growing": growing,
            "refitted": refitted,
            "novelty": task == "novelty",
            "targets": task in OF_EACH,
            "ratio": task == "density_ratio",
            "mixture": mixture,
            "adaptive": mixture and not growing,
        }

    def follow(self, model: Model) -> None:
        """Read another model of the same classes and arguments; what that one has counted before is not added."""
        self.model, self.step = model, last_step(model)
        self._seen = {name: getattr(self.step, name) for name in self._seen}

    def since(self, name: str) -> float:
        """Return how far a count of the model rose since it was first asked for; 0 if the model has no such count."""
        if (now := getattr(self.step, name, None)) is None:
            return 0
        # A machine that starts over with its measured bandwidth replays its first records: its count may fall.
        rise = max(0, now - self._seen.get(name, now))
        self._since[name] = self._since.get(name, 0) + rise
        self._seen[name] = now
        return self._since[name]

    def figures(self) -> dict[str, Any]:
        """Return what is not an attribute of the model, by the names of the table."""
        model, step = self.model, self.step
        most = getattr(learning_part(model), "max_features", None)
        return {
            "step": step,
            "max_features": math.inf if most is None else most,
            "feature_blocks": {"grown": self.since("n_grown"), "reused": self.since("n_reused")},
            "check_margin": check_margin_of(model),
            "last_refit": getattr(step, "last_refit", None) or SimpleNamespace(seconds=math.nan, loss=math.nan),
            "sample_shares": dict(zip("pq", getattr(step, "sample_shares", {}).values(), strict=False)),
            "experts": experts_of(model),
            "inputs": important_inputs(model),
        }


class Exporter(CheckpointObserver, ModelReading):
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
        The join of late labels; None without late labels.
    source, labels
        The sources of the records and the late labels; None: the metrics have no lag.
    trained
        The trained model of mode predict.
    outputs
        The keys of the outputs that tell how late their lines are.

    Attributes
    ----------
    registry
        All metrics.
    served
        The metrics as the loop published them last. The server answers scrapes with them.
    checkpoint
        The figures of the last checkpoint.

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
        super().__init__(model)
        # The time each counter was made is of no use here and doubles the number of series.
        prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]
        self._report = report
        self._window = str(window)
        self._sources = (labels, Counter[int]()), (source, Counter[int]())
        self.join = late
        self.trained = TrainedCounts(trained)
        self.view = View()
        self.refreshed = math.nan  # when the loop last updated the figures
        self.checkpoint = CheckpointFigures()
        self.counts, self.late = RecordCounts(), LabelCounts()
        self.dead = Counter(dict.fromkeys(REASONS, 0))  # a rate needs the 0 before the first one
        self.late_dead = Counter(dict.fromkeys(LABEL_REASONS, 0))
        self.n_losses = 0
        self.totals = SimpleNamespace(**dict.fromkeys(_TOTALS, 0))
        self.histograms: dict[str, Any] = {f"{name}_seconds": Buckets(f"{name}_seconds") for name in _DURATIONS}
        self.histograms["output_latency_seconds"] = {one: Buckets("output_latency_seconds") for one in outputs}
        self.versions = {(version("streamkernel"), version("river"), platform.python_version()): 1}
        self.registry = CollectorRegistry(auto_describe=True)
        self.registry.register(TableCollector(lambda: SimpleNamespace(**self.figures()), lambda: self.sections))
        ProcessCollector(registry=self.registry)
        self.served = PublishedMetrics(self.registry)

    @property
    def sections(self) -> dict[str, bool]:
        """By section of the table, whether its metrics are there now."""
        return {
            **super().sections,
            "always": True,
            "outputs": bool(self.histograms["output_latency_seconds"]),
            "models": bool(self.view.models),
            "labels": self.join is not None,
            "predict": self.trained.model is not None,
        }

    def chunk(self, done: RecordBatch) -> None:
        """Count a chunk, with records of one partition and labels of one."""
        self.counts.add(done.counts)
        for name in _TOTALS:
            vars(self.totals)[name] += getattr(done, name)
        self.n_losses += len(done.losses)
        self.dead.update(done.dead)
        self._taken(1, done.next, done.counts.consumed)
        self._observe("predict_duration_seconds", done.predict_seconds)
        self._observe("learn_duration_seconds", done.learn_seconds)
        if (late := done.late) is not None:
            self.late.add(late.counts)
            self.late_dead.update(late.dead)
            self._taken(0, late.next, late.counts.taken)
            self._observe("label_delay_seconds", late.delay)

    def _taken(self, which: int, following: Position | None, n_taken: int) -> None:
        if following is not None:
            self._sources[which][1][following.partition] += n_taken

    def _observe(self, name: str, seconds: float | None) -> None:
        if seconds is not None:
            self.histograms[name].observe(seconds)

    def refresh(self, view: View) -> None:
        """Publish a view; every half second is often enough."""
        self.view = view
        self.refreshed = time.time()
        self.publish()

    def publish(self) -> None:
        """Publish all figures as they are now, for the scrapes until the next time."""
        self.served.publish()

    def published(self, output: str, seconds: float, n_lines: int) -> None:
        """Count lines that others can read, `seconds` after the daemon read their records."""
        self.histograms["output_latency_seconds"][output].observe(seconds, n_lines)

    def predicts_with(self, trained: TrainedModel) -> None:
        """Note that another model predicts from now on."""
        self.follow(trained.model)
        self.trained.take(trained)

    def reload_failed(self) -> None:
        """Count a newer checkpoint that could not be used."""
        self.trained.n_failures += 1

    def saved(self, saved: SavedCheckpoint, now: float) -> None:
        """Note a checkpoint, written at `now` (seconds since 1970)."""
        self.checkpoint = replace(
            self.checkpoint, name=saved.name, time=now, bytes=saved.size, seconds=saved.seconds, records=saved.consumed
        )
        self._observe("checkpoint_duration_seconds", saved.seconds)

    def resumed(self, written: float) -> None:
        """Note when the checkpoint was written that this process started from: an alert asks for its age."""
        self.checkpoint = replace(self.checkpoint, time=written)

    def failed(self) -> None:
        """Count a checkpoint that could not be written."""
        self.checkpoint = replace(self.checkpoint, failures=self.checkpoint.failures + 1)

    @property
    def lag(self) -> Mapping[tuple[str, int], int]:
        """The records still to come by topic and partition, where their source knows them."""
        known: dict[tuple[str, int], int] = {}
        for source, taken in self._sources:
            if source is not None:
                known |= {place: count - taken[place[1]] for place, count in source.known.items()}
        return known

    def figures(self) -> dict[str, Any]:
        """Return all that the table names."""
        view, totals, late, join, window = self.view, self.totals, self.late, self.join, self._window
        return {
            **super().figures(),
            **vars(self),
            "since": self.since,
            "lag": self.lag,
            "lifetime": view.account.get("consumed", 0),
            "not_finite": {"prediction": totals.n_not_finite, "loss": totals.n_losses_not_finite},
            "ignored_inputs": totals.n_ignored_inputs + self.since("n_ignored_inputs") + self.since("n_ignored_labels"),
            "coverage": {str(LEVEL): view.interval_coverage},
            "loop_seconds": {**dict.fromkeys(ACTIVITIES, 0.0), **view.loop_seconds},
            "rolling": {(name, window): view.rolling.get(name, math.nan) for name in self._report},
            "rolling_of_targets": {
                (name, target, str(view.window)): value
                for target, figures in view.rolling_targets.items()
                for name, value in figures.items()
            },
            "rolling_of_models": {
                (model, name, window): value
                for model, one in view.models.items()
                for name, value in one.rolling.items()
            },
            "keys_refused": {"missing": late.keyless, "repeated": late.repeated},
            "checkpoint_of_model": SimpleNamespace(**self.trained.figures()),
            "n_pending": 0 if join is None else len(join.pending),
            "n_waiting": 0 if join is None else len(join.waiting),
        }
