"""The status as it was published last: what of it stays the same until the next time, and the history."""

from __future__ import annotations

import bisect
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import orjson

__all__ = ["StatusHistory", "StatusSnapshot"]


@dataclass(frozen=True)
class StatusHistory:
    """Time series of figures that nobody writes to: the times, which rise, and the values of each figure then."""

    interval: float
    time: Sequence[float]
    series: Mapping[str, Sequence[float]]

    def newer(self, since: float) -> StatusHistory:
        """Return the points newer than a time in seconds since 1970."""
        first = bisect.bisect_right(self.time, since)
        return StatusHistory(
            self.interval, self.time[first:], {name: points[first:] for name, points in self.series.items()}
        )


@dataclass(frozen=True)
class StatusSnapshot:
    """The status of a daemon at one moment: a JSON object without its state and without its history, and that."""

    document: bytes
    history: StatusHistory

    def to_json(self, now: float, state: tuple[str, str | None], since: float) -> bytes:
        """Return the status as it is now, with the state of this moment and the points newer than a time.

        Examples
        --------
        >>> snapshot = StatusSnapshot(b'{"kind":"run"}', StatusHistory(5.0, [10.0, 15.0], {"loss": [0.5, 0.25]}))
        >>> json.loads(snapshot.to_json(17.0, ("ready", None), since=10.0))["history"]["series"]
        {'loss': [0.25]}

        """
        name, detail = state
        # A sentence may name a file whose name is no text, which orjson does not take.
        told = json.dumps({"now": round(now, 3), "state": {"name": name, "detail": detail}}).encode()
        return self.document[:-1] + b"," + told[1:-1] + b',"history":' + orjson.dumps(self.history.newer(since)) + b"}"
