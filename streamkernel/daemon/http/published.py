"""The metrics of one moment, published by the thread that learns, and the answers to scrapes."""

from __future__ import annotations

import gzip
from urllib.parse import parse_qs

from prometheus_client import CollectorRegistry, Metric
from prometheus_client.exposition import choose_encoder, gzip_accepted
from prometheus_client.registry import Collector

__all__ = ["PublishedMetrics", "answer_scrape"]


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
    >>> b"records_total 0.0" in answer_scrape(published)[0]
    True
    >>> published.publish()
    >>> b"records_total 1.0" in answer_scrape(published)[0]
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


def answer_scrape(
    metrics: CollectorRegistry | PublishedMetrics, query: str = "", accept: str = "", encoding: str = ""
) -> tuple[bytes, dict[str, str]]:
    """Return metrics as a scrape wants them, by its query and its fields Accept and Accept-Encoding, and the headers.

    A registry is collected now, on this thread.
    """
    if isinstance(metrics, PublishedMetrics):
        registry = CollectorRegistry(auto_describe=True)  # by names, for a scrape that asks for some only
        registry.register(metrics)
    else:
        registry = metrics
    encoder, content_type = choose_encoder(accept)
    names = parse_qs(query).get("name[]")
    body = encoder(registry if names is None else registry.restricted_registry(names))
    if gzip_accepted(encoding):
        return gzip.compress(body), {"Content-Type": content_type, "Content-Encoding": "gzip"}
    return body, {"Content-Type": content_type}
