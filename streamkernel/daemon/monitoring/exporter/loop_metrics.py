"""The Prometheus metrics of the loop's time: seconds by activity, and the slowest record."""

from __future__ import annotations

import math
from collections.abc import Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge

from streamkernel.daemon.stream.loop_time import ACTIVITIES

__all__ = ["LoopMetrics"]


class LoopMetrics:
    """The metrics of the time of the loop, with a prefix to their names, in a registry."""

    def __init__(self, prefix: str, registry: CollectorRegistry) -> None:
        seconds = Counter(
            f"{prefix}_loop_seconds",
            "Seconds of the loop: waiting for records and reading them (source), predicting and learning (model), "
            "writing lines or waiting for an output (sinks), saving (checkpoints).",
            ["activity"],
            registry=registry,
        )
        self._seconds = {activity: seconds.labels(activity) for activity in ACTIVITIES}
        self._seen = dict.fromkeys(ACTIVITIES, 0.0)
        self._slowest = Gauge(
            f"{prefix}_slowest_record_seconds",
            "Longest time in the last one to two minutes from reading a record, or its late label, until it is "
            "learned. NaN if none came.",
            registry=registry,
        )
        self._slowest.set(math.nan)

    def refresh(self, seconds: Mapping[str, float], slowest: float) -> None:
        """Bring both up to date."""
        for activity, now in seconds.items():
            self._seconds[activity].inc(now - self._seen[activity])
            self._seen[activity] = now
        self._slowest.set(slowest)
