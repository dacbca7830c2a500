"""The Prometheus metrics of late labels, where there are any."""

from __future__ import annotations

from functools import partial

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from streamkernel.daemon.base.dead_letters import LABEL_REASONS
from streamkernel.daemon.labels.join import LabelJoin
from streamkernel.daemon.stream.record_batch import LabelChunk

__all__ = ["LabelMetrics"]

# From a label on its heels to one of a month.
_DELAY_BUCKETS = (0.1, 1.0, 10.0, 60.0, 300.0, 900.0, 3600.0, 14_400.0, 43_200.0, 86_400.0, 604_800.0, 2_592_000.0)


class LabelMetrics:
    """The metrics of a join of late labels, with a prefix to their names, in a registry."""

    def __init__(self, join: LabelJoin, prefix: str, registry: CollectorRegistry) -> None:
        self._join = join

        counter = partial(Counter, namespace=prefix, subsystem="labels", registry=registry)
        gauge = partial(Gauge, namespace=prefix, subsystem="labels", registry=registry)
        self._counters = {
            "taken": counter("consumed", "Labels consumed from their source."),
            "matched": counter("matched", "Labels that matched their record. The model learned it."),
            "expired": counter(
                "expired", "Records given up, because no label came in time or too many records waited."
            ),
            "early": counter("early", "Labels that came before their record."),
            "unmatched": counter("unmatched", "Labels without a record in time, or for an expired record."),
            "doubled": counter("doubled", "Labels of records that had one already."),
            "skipped": counter("skipped", "Empty lines and tombstones among the labels."),
        }
        keys = Counter(
            f"{prefix}_record_keys_refused",
            "Records that cannot wait for a label, because their key is missing or repeats an earlier one.",
            ["reason"],
            registry=registry,
        )
        self._counters |= {"keyless": keys.labels("missing"), "repeated": keys.labels("repeated")}
        self._dead = counter("dead_lettered", "Labels that became dead letters, by reason.", ["reason"])
        for reason in LABEL_REASONS:  # a rate needs the 0 before the first one
            self._dead.labels(reason)
        self._pending = gauge("pending", "Records that wait for their label.")
        self._pending_bytes = gauge("pending_bytes", "Size of the records that wait for their label.")
        self._waiting = gauge("waiting", "Labels that wait for their record.")
        gauge("max_pending", "Maximum number of records, and of labels, that may wait.").set(join.limit)
        gauge("max_pending_bytes", "Maximum bytes of records, and of labels, that may wait.").set(join.max_bytes)
        self._delay = Histogram(
            f"{prefix}_label_delay_seconds",
            "Seconds a record waited for its label, one sample per chunk.",
            buckets=_DELAY_BUCKETS,
            registry=registry,
        )
        self.refresh()

    def chunk(self, late: LabelChunk) -> None:
        """Count a chunk."""
        for name, counter in self._counters.items():
            counter.inc(getattr(late.counts, name))
        for reason, count in late.dead.items():
            self._dead.labels(reason).inc(count)
        if late.delay is not None:
            self._delay.observe(late.delay)

    def refresh(self) -> None:
        """Bring the gauges up to date."""
        self._pending.set(len(self._join.pending))
        self._pending_bytes.set(self._join.pending.n_bytes)
        self._waiting.set(len(self._join.waiting))
