"""The metrics of one moment, published by the thread that learns, and the answers to scrapes."""

from __future__ import annotations

import gzip
from typing import NamedTuple
from urllib.parse import parse_qs

from prometheus_client import CollectorRegistry, Metric
from prometheus_client.exposition import choose_encoder, gzip_accepted
from prometheus_client.registry import Collector

__all__ = ["PublishedMetrics", "Scrape", "ScrapeAnswer", "answer_scrape"]


class Scrape(NamedTuple):
    """A request for the metrics: its query string, and its fields Accept and Accept-Encoding."""

    query: str = ""
    accept: str = ""
    encoding: str = ""


class ScrapeAnswer(NamedTuple):
    """The answer to a request for the metrics."""

    headers: dict[str, str]
    body: bytes


def answer_scrape(registry: CollectorRegistry, scrape: Scrape) -> ScrapeAnswer:
    """Render the metrics of a registry in the format that a scrape asks for."""
    encoder, content_type = choose_encoder(scrape.accept)
    names = parse_qs(scrape.query).get("name[]")
    body = encoder(registry if names is None else registry.restricted_registry(names))
    if gzip_accepted(scrape.encoding):
        return ScrapeAnswer({"Content-Type": content_type, "Content-Encoding": "gzip"}, gzip.compress(body))
    return ScrapeAnswer({"Content-Type": content_type}, body)


class PublishedMetrics(Collector):
    """The metrics of a registry as they were published last.

    One thread publishes, between two chunks of records, so all figures are of one moment. Other threads render them,
    and never ask the collectors, which read a model that is learning.

    Parameters
    ----------
    registry
        The registry, which is collected here for the first time.

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
        """Collect all metrics, to be served from now on."""
        self._families = tuple(self._registry.collect())

    def collect(self) -> tuple[Metric, ...]:
        """Return the metrics of the last moment."""
        return self._families

    def answer(self, scrape: Scrape) -> ScrapeAnswer:
        """Answer a scrape with the metrics of the last moment."""
        registry = CollectorRegistry(auto_describe=True)  # by names, for a scrape that asks for some only
        registry.register(self)
        return answer_scrape(registry, scrape)
