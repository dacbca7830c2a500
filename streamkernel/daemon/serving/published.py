"""The snapshot of the metrics that scrapes are answered from: collected by the thread that learns, at one moment."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from prometheus_client import CollectorRegistry, Metric, make_wsgi_app
from prometheus_client.registry import Collector

__all__ = ["MetricsSnapshot", "PublishedMetrics", "Scrape", "ScrapeAnswer", "answer_scrape"]

# Formats and selections of metrics that are kept of a snapshot, as many as a few Prometheus servers ask for.
_MOST_KEPT = 8


class Scrape(NamedTuple):
    """What a request for the metrics asks for: its query string, and its fields Accept and Accept-Encoding."""

    query: str = ""
    accept: str | None = None
    encoding: str | None = None


class ScrapeAnswer(NamedTuple):
    """The answer to a request for the metrics."""

    status: int
    headers: dict[str, str]
    body: bytes


class PublishedMetrics:
    """The metrics of a registry as they were published last.

    One thread publishes, between two chunks of records: its figures are of one moment. Others render what was
    published, and never ask the collectors, which read a model that is learning.

    Parameters
    ----------
    registry
        What is collected, here for the first time.

    Examples
    --------
    >>> from prometheus_client import Counter
    >>> registry = CollectorRegistry()
    >>> counter = Counter("records", "Records.", registry=registry)
    >>> published = PublishedMetrics(registry)
    >>> counter.inc()
    >>> b"records_total 0.0" in published.answer(Scrape()).body
    True
    >>> published.publish()
    >>> b"records_total 1.0" in published.answer(Scrape()).body
    True

    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self.publish()

    def publish(self) -> None:
        """Collect all metrics; from now on they are what is served."""
        self._snapshot = MetricsSnapshot(self._registry.collect())

    def collect(self) -> tuple[Metric, ...]:
        """Return what was published last."""
        return self._snapshot.collect()

    def answer(self, scrape: Scrape) -> ScrapeAnswer:
        """Answer a request from what was published last."""
        return self._snapshot.answer(scrape)


class MetricsSnapshot(Collector):
    """The metrics of one moment, and the answers that were made of them."""

    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = tuple(families)
        self._application: Callable[..., Iterable[bytes]] | None = None
        self._answers: dict[Scrape, ScrapeAnswer] = {}

    def collect(self) -> tuple[Metric, ...]:
        """Return the metrics; see `prometheus_client.registry.Collector`."""
        return self._families

    def answer(self, scrape: Scrape) -> ScrapeAnswer:
        """Render the metrics, once for all who ask alike."""
        known = self._answers.get(scrape)
        if known is not None:
            return known
        if self._application is None:
            # Of its own, and made by whoever is the first to ask: a snapshot that nobody asks for costs no more.
            registry = CollectorRegistry(auto_describe=True)  # by names, for a scrape that asks for some only
            registry.register(self)
            self._application = make_wsgi_app(registry)
        made = answer_scrape(self._application, scrape)
        if len(self._answers) < _MOST_KEPT:
            self._answers[scrape] = made
        return made


def answer_scrape(application: Callable[..., Iterable[bytes]], scrape: Scrape) -> ScrapeAnswer:
    """Answer as prometheus_client does, which knows formats and compression, by its application for threads."""
    begun: dict[str, Any] = {}

    def start(status: str, headers: list[tuple[str, str]]) -> None:
        begun.update(status=int(status.split()[0]), headers=dict(headers))

    environ = {
        "REQUEST_METHOD": "GET",
        "PATH_INFO": "/metrics",
        "QUERY_STRING": scrape.query,
        "HTTP_ACCEPT": scrape.accept,
        "HTTP_ACCEPT_ENCODING": scrape.encoding,
    }
    body = b"".join(application(environ, start))
    return ScrapeAnswer(body=body, **begun)
