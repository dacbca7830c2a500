"""The Prometheus metrics of the prediction service."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from streamkernel.connectors.ports import Fault
from streamkernel.daemon.monitoring.exporter.trained_metrics import TrainedMetrics
from streamkernel.daemon.service.group_commit import GroupCommit

__all__ = ["ServiceMetrics"]

_PREFIX = "streamkernel"
_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


@dataclass
class _Request:
    status: int = 500


class ServiceMetrics:
    """Counts requests and records, measures seconds, and shows journals and the model.

    Attributes
    ----------
    registry
        What is exported.
    trained
        The metrics of the model.

    """

    def __init__(self, journals: Mapping[str, tuple[GroupCommit, int]]) -> None:
        self.registry = CollectorRegistry()
        counter = partial(Counter, namespace=_PREFIX, registry=self.registry)
        self._requests = counter("http_requests", "Requests answered, by path and status.", ["path", "status"])
        self._records = counter("http_records", "Records of requests: ok, or why they were unusable.", ["result"])
        self._seconds = Histogram(
            "http_request_duration_seconds",
            "Seconds from the complete request to its answer.",
            ["path"],
            namespace=_PREFIX,
            registry=self.registry,
            buckets=_BUCKETS,
        )
        self._open = Gauge(
            "http_requests_in_flight", "Requests being answered.", namespace=_PREFIX, registry=self.registry
        )
        self.trained = TrainedMetrics(_PREFIX, self.registry)
        self.registry.register(_JournalMetrics(journals))
        ProcessCollector(registry=self.registry)

    @contextmanager
    def request(self, path: str) -> Iterator[_Request]:
        """Measure and count a request, whose status is set meanwhile."""
        request, started = _Request(), time.perf_counter()
        self._open.inc()
        try:
            yield request
        finally:
            self._open.dec()
            self._seconds.labels(path).observe(time.perf_counter() - started)
            self._requests.labels(path, request.status).inc()

    def count(self, answers: Sequence[dict[str, Any] | Fault]) -> None:
        """Count the records of a request."""
        for answer in answers:
            self._records.labels(answer.reason if isinstance(answer, Fault) else "ok").inc()


class _JournalMetrics(Collector):
    """The journals, by the section of their source, as they are when they are asked for."""

    def __init__(self, journals: Mapping[str, tuple[GroupCommit, int]]) -> None:
        self._journals = journals

    def collect(self) -> Iterator[Metric]:
        gauges = {
            "bytes": GaugeMetricFamily(f"{_PREFIX}_journal_bytes", "Size of a journal.", labels=["journal"]),
            "most": GaugeMetricFamily(f"{_PREFIX}_journal_max_bytes", "Maximum size of a journal.", labels=["journal"]),
        }
        entries = CounterMetricFamily(
            f"{_PREFIX}_journal_records", "Records for a journal: new ones, and repeats.", labels=["journal", "result"]
        )
        groups = CounterMetricFamily(
            f"{_PREFIX}_journal_groups", "Groups of records made durable together.", labels=["journal"]
        )
        refused = CounterMetricFamily(
            f"{_PREFIX}_journal_refused",
            "Requests refused because the journal is full or cannot be written.",
            labels=["journal"],
        )
        for name, (journal, most) in self._journals.items():
            gauges["bytes"].add_metric([name], journal.size)
            gauges["most"].add_metric([name], most)
            entries.add_metric([name, "accepted"], journal.n_appended)
            entries.add_metric([name, "repeated"], journal.n_repeated)
            groups.add_metric([name], journal.n_groups)
            refused.add_metric([name], journal.n_refused)
        yield from (*gauges.values(), entries, groups, refused)
