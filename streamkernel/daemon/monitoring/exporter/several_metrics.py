"""The Prometheus metrics of several models, with the label `model`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric, UnknownMetricFamily
from prometheus_client.registry import Collector

from streamkernel.daemon.monitoring.model_view import ModelView

__all__ = ["SeveralModelsCollector"]

_Figures = Mapping[str, tuple[str, Callable[[ModelView], float]]]


class SeveralModelsCollector(Collector):
    """The metrics of several models, with the label `model`; those without it are the published one's."""

    def __init__(self, prefix: str, window: int) -> None:
        self._prefix = f"{prefix}_model"
        self._window = str(window)
        self.views: Mapping[str, ModelView] = {}

    def collect(self) -> Iterator[Metric]:
        views = self.views
        gauges: _Figures = {
            "published": ("1 for the published model.", lambda view: float(view.published)),
            "enabled": ("0 for a model that failed and is disabled.", lambda view: float(not view.disabled)),
            "progressive_loss": ("Mean loss over the last labeled records.", lambda view: view.loss),
        }
        counters: _Figures = {
            "events": ("Events given to the model.", lambda view: view.shown_here),
            "refused_events": ("Events that the model refused.", lambda view: view.refused),
            "not_finite_predictions": ("Predictions that were not finite.", lambda view: view.not_finite),
            "busy_seconds": ("Seconds spent on the model.", lambda view: view.seconds),
            "loss_observations": ("Losses in model_loss_sum.", lambda view: view.losses),
        }
        for key, (text, value) in gauges.items():
            gauge = GaugeMetricFamily(f"{self._prefix}_{key}", text, labels=["model"])
            for name, view in views.items():
                gauge.add_metric([name], value(view))
            yield gauge
        for key, (text, value) in counters.items():
            counter = CounterMetricFamily(f"{self._prefix}_{key}", text, labels=["model"])
            for name, view in views.items():
                counter.add_metric([name], value(view))
            yield counter
        losses = UnknownMetricFamily(f"{self._prefix}_loss_sum", "Sum of the losses of the model.", labels=["model"])
        rolling = GaugeMetricFamily(
            f"{self._prefix}_rolling_metric",
            "Report metrics over the last labeled records.",
            labels=["model", "metric", "window"],
        )
        for name, view in views.items():
            losses.add_metric([name], view.loss_sum)
            for metric, figure in view.rolling.items():
                rolling.add_metric([name, metric, self._window], figure)
        yield losses
        yield rolling
