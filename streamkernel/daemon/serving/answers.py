"""What the process that learns answers to that of its HTTP server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from streamkernel.daemon.base.health import Health
from streamkernel.daemon.serving.published import PublishedMetrics

__all__ = ["Answers", "answers_of"]

Answers = dict[str, Callable[[int], tuple[int, Any]]]
"""By what is asked for: gives, for the version that the server has, the newest one, and its value or None."""


class _Versioned:
    """Numbers what a function gives: another object is another version, from 1 on."""

    def __init__(self, newest: Callable[[], Any]) -> None:
        self._newest = newest
        self._version = 0
        self._last: Any = None

    def __call__(self, known: int) -> tuple[int, Any]:
        value = self._newest()
        if value is not self._last:
            self._version += 1
            self._last = value
        return self._version, None if self._version == known else value


def answers_of(metrics: PublishedMetrics, health: Health) -> Answers:
    """Return the answers to questions for the metrics, the health and, where there is one, the status.

    Examples
    --------
    >>> from prometheus_client import CollectorRegistry
    >>> answers = answers_of(PublishedMetrics(CollectorRegistry()), Health(ready=True))
    >>> answers["health"](0), answers["metrics"](0), answers["metrics"](1)
    ((1, (True, None, None)), (1, ()), (1, None))

    """
    answers: Answers = {
        "health": lambda known: (known + 1, (health.ready, health.trouble(), health.obstacle())),
        "metrics": _Versioned(metrics.collect),
    }
    if health.snapshot is not None:
        answers["status"] = _Versioned(health.snapshot)
    return answers
