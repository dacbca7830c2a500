"""The transaction that is open: what must be known to go on where the broker does not know it any more."""

from __future__ import annotations

from collections.abc import Mapping

from connectors.kafka.writing.emitted import Emitted
from connectors.ports import Position, SinkError

__all__ = ["Transaction"]


class Transaction:
    """Which lines of a transaction were acknowledged, and are not kept in memory any more.

    Parameters
    ----------
    ends
        By partition, where the topic ended before the transaction.

    Examples
    --------
    >>> transaction = Transaction({0: 70})
    >>> for offset in (3, 4, 9):
    ...     transaction.add(Position("s", 0, offset))
    >>> transaction.missing(Emitted([Position("s", 0, 3), Position("s", 0, 9)]))
    1

    """

    def __init__(self, ends: Mapping[int, int]) -> None:
        self.ends = dict(ends)
        self._runs: dict[tuple[str, int], list[list[int]]] = {}
        self._last: tuple[str, int, int] | None = None
        self._run = [0, 0]

    def add(self, position: Position) -> None:
        """Note that the line of a record is acknowledged."""
        stream, partition, offset = position
        if self._last != (stream, partition, offset - 1):
            self._run = [offset, offset]
            self._runs.setdefault((stream, partition), []).append(self._run)
        self._run[1] = offset
        self._last = position

    def check(self, emitted: Emitted, reason: str) -> None:
        """Raise SinkError where acknowledged lines do not stand in the topic, once the session broke for a reason."""
        missing = self.missing(emitted)
        if missing:
            raise SinkError(
                f"{missing:,} lines that were acknowledged are not there any more, because their transaction was ended "
                f"({reason}); start again, nothing is lost"
            )

    def missing(self, emitted: Emitted) -> int:
        """Count the acknowledged lines that do not stand in the topic, and have those that do forgotten."""
        return sum(
            not emitted.take(Position(*place, offset))
            for place, runs in self._runs.items()
            for first, last in runs
            for offset in range(first, last + 1)
        )
