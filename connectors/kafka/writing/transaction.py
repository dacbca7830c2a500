"""The lines of the open transaction: those to send again where the broker ends it without them."""

from __future__ import annotations

from collections.abc import Mapping

from streamkernel.connectors.kafka.writing.backlog import OVERHEAD_BYTES
from streamkernel.connectors.kafka.writing.session import Line
from streamkernel.connectors.kafka.writing.written_lines import WrittenLines

__all__ = ["Transaction"]


class Transaction:
    """The acknowledged lines of a transaction, and where each partition of the topic ended before it.

    Attributes
    ----------
    ends
        By partition of the topic, the offset after the last line before it.
    lines
        The lines, in order.
    bytes
        How many bytes of memory they take, about.

    Examples
    --------
    >>> from streamkernel.connectors.ports import Position
    >>> transaction = Transaction({0: 70})
    >>> for offset in (3, 4, 9):
    ...     transaction.add(Line(b"{}", Position("s", 0, offset)))
    >>> written = WrittenLines([Position("s", 0, 3), Position("s", 0, 9)])
    >>> [line.position.offset for line in transaction.missing(written)]
    [4]

    """

    def __init__(self, ends: Mapping[int, int]) -> None:
        self.ends = dict(ends)
        self.lines: list[Line] = []
        self.bytes = 0

    def add(self, line: Line) -> None:
        """Add a line that is acknowledged."""
        self.lines.append(line)
        self.bytes += len(line.value) + line.beside + OVERHEAD_BYTES

    def missing(self, written: WrittenLines) -> list[Line]:
        """Return the lines that are not in the topic; those that are there are forgotten among the `written` ones."""
        return [line for line in self.lines if not written.take(line.position)]
