"""Lines that wait in memory: those to be sent, and those that were sent and are not acknowledged."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import islice

from streamkernel.connectors.kafka.writing.session import Line, Receipt
from streamkernel.connectors.ports import Position

__all__ = ["OVERHEAD_BYTES", "Backlog"]

OVERHEAD_BYTES = 250
"""Bytes of memory that a waiting line takes besides its value."""

# What the producer holds takes twice the memory of what waits here.
MOST_SENT, MOST_SENT_BYTES = 20_000, 2**25


class Backlog:
    """The lines of a sink that are not acknowledged, in order.

    Those in `queue` are to be sent, those in `sent` were, each with its receipt; `bytes` is how much memory all of them
    take, about.
    """

    def __init__(self) -> None:
        self.queue: deque[Line] = deque()
        self.sent: deque[tuple[Line, Receipt]] = deque()
        self.bytes = self._sent_bytes = 0

    def __len__(self) -> int:
        return len(self.queue) + len(self.sent)

    @property
    def full(self) -> bool:
        """Whether the producer has as many lines as it may have."""
        return len(self.sent) >= MOST_SENT or self._sent_bytes >= MOST_SENT_BYTES

    def put(self, lines: Sequence[Line]) -> None:
        """Add lines after the others."""
        self.queue += lines
        self.bytes += _size(lines)

    def put_first(self, lines: Sequence[Line]) -> None:
        """Add lines before the others."""
        self.queue.extendleft(reversed(lines))
        self.bytes += _size(lines)

    def drop(self) -> Line:
        """Remove the first line that is to be sent: it is in the topic."""
        line = self.queue.popleft()
        self.bytes -= len(line.value) + line.beside + OVERHEAD_BYTES
        return line

    def given(self, receipt: Receipt) -> None:
        """Move the first line that is to be sent to those that were, with its receipt."""
        line = self.queue.popleft()
        self.sent.append((line, receipt))
        self._sent_bytes += len(line.value) + line.beside

    def acknowledge(self) -> Line:
        """Remove the first line that was sent: it is acknowledged."""
        line, _ = self.sent.popleft()
        self._sent_bytes -= len(line.value) + line.beside
        self.bytes -= len(line.value) + line.beside + OVERHEAD_BYTES
        return line

    def take_back(self) -> None:
        """Move what was sent to what is to be sent, again."""
        self.queue.extendleft(line for line, _ in reversed(self.sent))
        self.sent.clear()
        self._sent_bytes = 0

    def behind(self, most: int) -> list[Position]:
        """Return the positions of the records of the lines after the first one that is to be sent."""
        return [line.position for line in islice(self.queue, 1, most)]


def _size(lines: Sequence[Line]) -> int:
    return sum([len(line.value) + line.beside for line in lines]) + OVERHEAD_BYTES * len(lines)
