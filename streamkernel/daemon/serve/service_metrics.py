"""The Prometheus metrics of the prediction service."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector

from streamkernel.connectors.ports import Fault
from streamkernel.daemon.monitoring.exporter.trained_metrics import TrainedMetrics

__all__ = ["JournalCounters", "ServiceMetrics"]

_PREFIX = "streamkernel"
_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


@dataclass
class _Request:
    status: int = 500


class JournalCounters(NamedTuple):
    """The counters of a journal: new records, repeats, committed groups, and refused requests."""

    accepted: Counter
    repeated: Counter
    groups: Counter
    refused: Counter


class ServiceMetrics:
    """Counts requests and records, measures seconds, and shows journals and the model.

    Attributes
    ----------
    registry
        The registry of all metrics.
    trained
        The metrics of the model.

    """

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        counter = partial(Counter, namespace=_PREFIX, registry=self.registry)
        gauge = partial(Gauge, namespace=_PREFIX, registry=self.registry)
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
        self._open = gauge("http_requests_in_flight", "Requests being answered.")
        self.trained = TrainedMetrics(_PREFIX, self.registry)
        self._size = gauge("journal_bytes", "Size of a journal.", ["journal"])
        self._most = gauge("journal_max_bytes", "Maximum size of a journal.", ["journal"])
        records = "Records for a journal: new ones, and repeats."
        self._entries = counter("journal_records", records, ["journal", "result"])
        self._groups = counter("journal_groups", "Groups of records made durable together.", ["journal"])
        refused = "Requests refused because the journal is full or cannot be written."
        self._refused = counter("journal_refused", refused, ["journal"])
        ProcessCollector(registry=self.registry)

    def journal(self, section: str, size: Callable[[], int], max_bytes: int) -> JournalCounters:
        """Show a journal by the section of its source, and return its counters."""
        self._size.labels(section).set_function(size)
        self._most.labels(section).set(max_bytes)
        return JournalCounters(
            self._entries.labels(section, "accepted"),
            self._entries.labels(section, "repeated"),
            self._groups.labels(section),
            self._refused.labels(section),
        )

    @contextmanager
    def request(self, path: str) -> Iterator[_Request]:
        """Measure and count a request; the caller sets its status."""
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
