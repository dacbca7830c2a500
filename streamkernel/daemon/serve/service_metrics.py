"""The Prometheus metrics of the prediction service."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any, NamedTuple

from prometheus_client import CollectorRegistry, Counter, ProcessCollector

from streamkernel.connectors.ports import Fault
from streamkernel.daemon.monitoring.exporter import TrainedCounts
from streamkernel.daemon.monitoring.metrics import TableCollector, make_metric

__all__ = ["JournalCounters", "ServiceMetrics"]


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
        The model and its reloads.

    """

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        made = partial(make_metric, registry=self.registry)
        self._requests, self._records = made("http_requests"), made("http_records")
        self._seconds, self._open = made("http_request_duration_seconds"), made("http_requests_in_flight")
        self._size, self._most = made("journal_bytes"), made("journal_max_bytes")
        self._entries, self._groups, self._refused = (
            made(f"journal_{name}") for name in ("records", "groups", "refused")
        )
        self.trained = TrainedCounts()
        self.registry.register(TableCollector(self._figures, lambda: {"predict": True}))
        ProcessCollector(registry=self.registry)

    def _figures(self) -> SimpleNamespace:
        return SimpleNamespace(trained=self.trained, checkpoint_of_model=SimpleNamespace(**self.trained.figures()))

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
