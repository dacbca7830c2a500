"""The lines of the open transaction: what must be known to go on where the broker does not know it any more."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from connectors.kafka.writing.written_lines import WrittenLines, extend
from connectors.ports import Position, SinkError

__all__ = ["Transaction"]


class Transaction:
    """The lines of a transaction that were acknowledged, and where each partition of the topic ended before it.

    Attributes
    ----------
    ends
        By partition of the topic, the offset behind the last line before it.
    n_lines
        How many lines were added.

    Examples
    --------
    >>> transaction = Transaction({0: 70})
    >>> for offset in (3, 4, 9):
    ...     transaction.add(Position("s", 0, offset))
    >>> transaction.check(WrittenLines([Position("s", 0, 3), Position("s", 0, 9)]), "it timed out")
    Traceback (most recent call last):
        ...
    connectors.ports.connector.SinkError: 1 lines that were acknowledged are not there any more, because ...

    """

    def __init__(self, ends: Mapping[int, int]) -> None:
        self.ends = dict(ends)
        self.n_lines = 0
        self._runs: defaultdict[tuple[str, int], list[list[int]]] = defaultdict(list)

    def add(self, position: Position) -> None:
        """Add the line of a record, which is acknowledged."""
        extend(self._runs[position[:2]], position.offset)
        self.n_lines += 1

    def check(self, written: WrittenLines, reason: str) -> None:
        """Raise `SinkError` where acknowledged lines are not in the topic, once the session broke for a reason.

        Those that are there are forgotten among the `written` ones.
        """
        missing = sum(
            not written.take(Position(*place, offset))
            for place, runs in self._runs.items()
            for first, last in runs
            for offset in range(first, last + 1)
        )
        if missing:
            raise SinkError(
                f"{missing:,} lines that were acknowledged are not there any more, because their transaction was ended "
                f"({reason}); start again, nothing is lost"
            )
