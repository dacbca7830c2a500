"""The Prometheus metrics of a run in mode predict: which checkpoint its model is from, and how old that is."""

from __future__ import annotations

from functools import partial

from prometheus_client import CollectorRegistry, Counter, Gauge

from streamkernel.daemon.run_state.trained import TrainedModel

__all__ = ["TrainedMetrics"]


class TrainedMetrics:
    """The metrics of a trained model and of its reloads, with a prefix to their names, in a registry."""

    def __init__(self, prefix: str, registry: CollectorRegistry) -> None:
        counter = partial(Counter, namespace=prefix, registry=registry)
        gauge = partial(Gauge, namespace=prefix, registry=registry)
        self._checkpoint = gauge("model_checkpoint", "Number of the checkpoint that predicts.")
        self._records = gauge("model_checkpoint_records", "Records learned by the run that wrote it.")
        self._written = gauge("model_checkpoint_timestamp_seconds", "When the run wrote the checkpoint.")
        self._reloads = counter("model_reloads", "Newer checkpoints loaded while running.")
        self._failures = counter("model_reload_failures", "Failed attempts to load a newer checkpoint.")

    def set(self, trained: TrainedModel) -> None:
        """Show the model that predicts."""
        self._checkpoint.set(trained.checkpoint)
        self._records.set(trained.records)
        self._written.set(trained.written)

    def reloaded(self, trained: TrainedModel) -> None:
        """Count a model taken over while running, and show it."""
        self._reloads.inc()
        self.set(trained)

    def failed(self) -> None:
        """Count a newer checkpoint that could not be used."""
        self._failures.inc()
