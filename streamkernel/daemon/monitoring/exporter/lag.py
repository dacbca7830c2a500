"""The lag: how many records were taken, and how many are still to come, two metrics that add up at every scrape."""

from __future__ import annotations

import threading
from collections import Counter

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from streamkernel.connectors.ports import Position, Source
from streamkernel.daemon.stream.record_batch import RecordBatch

__all__ = ["LagCollector"]


class LagCollector(Collector):
    """`records_consumed_total` and `consumer_lag_records`, of one moment: a record counts in one of them.

    A record that was handed out and is being learned still counts. The loop counts, and the thread of a scrape asks.

    Parameters
    ----------
    prefix
        What the names begin with.
    source, labels
        Where the records and the late labels come from; None: it is not known how many are still to come.

    Examples
    --------
    >>> lag = LagCollector("streamkernel", None, None)
    >>> [family.name for family in lag.collect()]
    ['streamkernel_records_consumed', 'streamkernel_consumer_lag_records']

    """

    def __init__(self, prefix: str, source: Source | None, labels: Source | None) -> None:
        self._prefix = prefix
        self._source = source
        self._labels = labels
        self._changed = threading.Lock()
        self._consumed = 0
        self._records: Counter[int] = Counter()
        self._late: Counter[int] = Counter()

    def chunk(self, processed: RecordBatch) -> None:
        """Count a chunk, whose records are of one partition, and so are its labels."""
        late = processed.late
        with self._changed:
            self._consumed += processed.counts.consumed
            _count(self._records, processed.next, processed.counts.consumed)
            if late is not None:
                _count(self._late, late.next, late.counts.taken)

    def collect(self) -> list[CounterMetricFamily | GaugeMetricFamily]:
        """Return both metrics."""
        consumed = CounterMetricFamily(f"{self._prefix}_records_consumed", "Records consumed from the source.")
        lag = GaugeMetricFamily(
            f"{self._prefix}_consumer_lag_records",
            "Known records still to come.",
            labels=["topic", "partition"],
        )
        with self._changed:
            consumed.add_metric([], self._consumed)
            left = self._left()
        for (topic, partition), count in left.items():
            lag.add_metric([topic, str(partition)], count)
        return [consumed, lag]

    def left(self) -> dict[tuple[str, int], int]:
        """Return how many records are still to come by topic and partition, as far as known."""
        with self._changed:
            return self._left()

    def _left(self) -> dict[tuple[str, int], int]:
        return _left(self._labels, self._late) | _left(self._source, self._records)

    def describe(self) -> list[CounterMetricFamily | GaugeMetricFamily]:
        """Return the names of both, for a scrape that asks for some metrics only."""
        return self.collect()


def _count(counts: Counter[int], following: Position | None, taken: int) -> None:
    if following is not None:
        counts[following.partition] += taken


def _left(source: Source | None, taken: Counter[int]) -> dict[tuple[str, int], int]:
    if source is None:
        return {}
    return {place: count - taken[place[1]] for place, count in source.known.items()}
