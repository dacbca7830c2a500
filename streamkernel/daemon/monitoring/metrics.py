"""The table of all Prometheus metrics, `metrics.csv`, and how its rows become samples.

The names are a public interface: dashboards and alerts rest on them. docs/metrics.md is drawn from the same table.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib.resources import files
from itertools import accumulate
from operator import attrgetter
from typing import Any, NamedTuple

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, UnknownMetricFamily
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

__all__ = ["METRICS", "PREFIX", "Buckets", "Metric", "TableCollector", "make_metric"]

PREFIX = "streamkernel_"

# Parsed, not multiplied: the bounds become labels, and nobody types 4.9999999999999996e-06.
_RECORD = tuple(float(f"{base}e{power}") for power in range(-6, 1) for base in (1, 2.5, 5))
_BOUNDS: dict[str, tuple[float, ...]] = {
    "predict_duration_seconds": _RECORD,
    "learn_duration_seconds": _RECORD,
    "checkpoint_duration_seconds": tuple(float(f"{base}e{power}") for power in range(-3, 2) for base in (1, 2.5, 5)),
    # From a label right after its record to one a month later.
    "label_delay_seconds": (
        *(0.1, 1.0, 10.0, 60.0, 300.0, 900.0, 3600.0, 14_400.0, 43_200.0),
        *(86_400.0, 604_800.0, 2_592_000.0),
    ),
    # Close to each other about the default of flush_seconds, up to the usual time between two checkpoints and beyond.
    "output_latency_seconds": (
        *(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5),
        *(2.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0),
    ),
    "http_request_duration_seconds": (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0),
}
_FAMILIES: dict[str, Any] = {
    "counter": CounterMetricFamily,
    "gauge": GaugeMetricFamily,
    "histogram": HistogramMetricFamily,
    # `loss_sum` may fall, so it is no counter, and Prometheus wants no gauge to end in `_sum`.
    "unknown": UnknownMetricFamily,
}


class Metric(NamedTuple):
    """A row of the table.

    Attributes
    ----------
    section
        When the metric is there, such as ``"classifier"``.
    name
        The name without the prefix and ``_total``.
    type, unit
        Prometheus's type, and the unit in words.
    labels
        The names of the labels.
    restart
        What a restart does. ``"0"``: it starts at 0. ``"kept"``: it has the value in the checkpoint. ``"reset"``: it
        starts without the records of the previous process. ``"current"``: it shows the current state, no history.
    value
        The attribute of the source that has the value: a number, or a mapping from the labels' values. ``since NAME``
        is a count that the model keeps, ``each NAME`` an attribute of each of several models.
    meaning
        The help text.

    """

    section: str
    name: str
    type: str
    unit: str
    labels: tuple[str, ...]
    restart: str
    value: str
    meaning: str

    def collect(self, source: Any) -> Any:
        """Return the metric with the values that a source has now."""
        family = _FAMILIES[self.type](PREFIX + self.name, self.meaning, labels=self.labels)
        found = self._read(source)
        for label, value in found.items() if isinstance(found, Mapping) else [((), found)]:
            labels = [label] if isinstance(label, str) else [*map(str, label)]
            figures = (value.cumulative(), value.sum) if isinstance(value, Buckets) else (value or 0,)
            family.add_metric(labels, *figures)
        return family

    def _read(self, source: Any) -> Any:
        how, _, path = self.value.rpartition(" ")
        if how == "since":
            return source.since(path)
        if how == "each":
            return {name: getattr(view, path) for name, view in source.view.models.items()}
        found = attrgetter(path)(source)
        return found[self.name] if self.type == "histogram" else found


def _rows() -> Iterator[Metric]:
    table = (files(__package__) / "metrics.csv").read_text("utf-8")
    for line in table.splitlines()[1:]:
        section, name, kind, unit, labels, restart, value, meaning = map(str.strip, line.split("|"))
        yield Metric(section, name, kind, unit, tuple(labels.split()), restart, value, meaning)


METRICS = {metric.name: metric for metric in _rows()}
"""All metrics by name, in the order of the page."""


class Buckets:
    """The counts of a histogram; it takes many equal values at once.

    Examples
    --------
    >>> seconds = Buckets("output_latency_seconds")
    >>> seconds.observe(0.3, 512)
    >>> seconds.cumulative()[5:7]
    [('0.25', 0), ('0.5', 512)]

    """

    def __init__(self, name: str) -> None:
        self._bounds = _BOUNDS[name]
        self._counts = [0] * (len(self._bounds) + 1)
        self.sum = 0.0

    def observe(self, seconds: float, times: int = 1) -> None:
        """Count a value."""
        self._counts[bisect_left(self._bounds, seconds)] += times
        self.sum += times * seconds

    def cumulative(self) -> list[tuple[str, int]]:
        """Return how many values are at most each bound."""
        return list(zip([*map(floatToGoString, self._bounds), "+Inf"], accumulate(self._counts), strict=True))


class TableCollector(Collector):
    """Collects rows of the table from a source of their values.

    Parameters
    ----------
    source
        Returns the object whose attributes the rows name.
    sections
        Returns, by section, whether its metrics are there now.

    """

    def __init__(self, source: Callable[[], Any], sections: Callable[[], Mapping[str, bool]]) -> None:
        self._source = source
        self._sections = sections

    def collect(self) -> Iterable[Any]:
        """Yield the metrics that are there; see `prometheus_client.registry.Collector`."""
        there, source = self._sections(), self._source()
        return [metric.collect(source) for metric in METRICS.values() if there.get(metric.section)]


def make_metric(name: str, registry: CollectorRegistry) -> Any:
    """Return a metric as an object of prometheus_client, which any thread may set or increment."""
    row = METRICS[name]
    kind: Any = {"counter": Counter, "gauge": Gauge, "histogram": Histogram}[row.type]
    more = {"buckets": _BOUNDS[name]} if row.type == "histogram" else {}
    return kind(PREFIX + name, row.meaning, row.labels, registry=registry, **more)
