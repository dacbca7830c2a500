"""The lines of a topic that do not count yet, in order: sealed, sent and acknowledged ones, and how many bytes."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence

from kafka import errors

from streamkernel.connectors.kafka.writing.line import Line
from streamkernel.connectors.kafka.writing.producer import Receipt

__all__ = ["PendingLines"]

# The producer needs twice the memory of the lines it holds.
_MOST_SENT, _MOST_SENT_BYTES, _MOST_AT_ONCE = 20_000, 2**25, 1000


class PendingLines:
    """Lines in the order in which they are sent, acknowledged and committed; the caller holds the lock.

    Parameters
    ----------
    lines
        The lines of a checkpoint, which are sealed.

    Attributes
    ----------
    lines
        All lines that do not count yet.
    sealed
        How many of the first ones are in a mark.
    acked
        How many of the first ones are acknowledged.
    bytes, unacked_bytes
        The memory of all lines, and of those that are not acknowledged.
    receipts
        Those of the lines that were sent and are not acknowledged.

    """

    def __init__(self, lines: Iterable[Line] = ()) -> None:
        self.lines = list(lines)
        self.sealed = len(self.lines)
        self._sent = self.acked = self._sent_bytes = 0
        self.bytes = self.unacked_bytes = _size(self.lines)
        self.receipts: deque[Receipt] = deque()

    def __len__(self) -> int:
        return len(self.lines)

    def add(self, lines: Sequence[Line]) -> None:
        """Add lines after the last one."""
        self.lines += lines
        size = _size(lines)
        self.bytes += size
        self.unacked_bytes += size

    def seal(self) -> list[Line]:
        """Seal all lines, and return them."""
        self.sealed = len(self.lines)
        return list(self.lines)

    def next(self, sealed_only: bool) -> list[Line]:
        """Return lines to send; none while the producer holds enough."""
        if self._sent - self.acked >= _MOST_SENT or self._sent_bytes >= _MOST_SENT_BYTES:
            return []
        end = self.sealed if sealed_only else len(self.lines)
        return self.lines[self._sent : min(end, self._sent + _MOST_AT_ONCE)]

    def send(self, line: Line, receipt: Receipt) -> None:
        """Note that the next line was sent."""
        self.receipts.append(receipt)
        self._sent += 1
        self._sent_bytes += line.size

    def acknowledge(self, drop: bool) -> int:
        """Note the lines with a receipt, drop them if they count now, and return their size."""
        start = self.acked
        while self.receipts and self.receipts[0].is_done and self.receipts[0].exception is None:
            self.receipts.popleft()
            self.acked += 1
        size = _size(self.lines[start : self.acked])
        self._sent_bytes -= size
        self.unacked_bytes -= size
        if drop:
            self.bytes -= size
            del self.lines[: self.acked]
            self._sent, self.acked = self._sent - self.acked, 0
        return size

    def failure(self) -> tuple[Line, Exception] | None:
        """Return the line that caused a failure, and its error; None if the first sent line did not fail."""
        if not self.receipts or not self.receipts[0].is_done or self.receipts[0].exception is None:
            return None
        sent = zip(self.lines[self.acked :], self.receipts, strict=False)
        failed = [(line, receipt.exception) for line, receipt in sent if receipt.exception is not None]
        return next((one for one in failed if not _follows(one[1])), failed[0])

    def take_back(self) -> None:
        """Count every line as not sent: the next producer sends it."""
        self._sent = self.acked = self._sent_bytes = 0
        self.unacked_bytes = self.bytes
        self.receipts.clear()

    def settle(self) -> None:
        """Drop the sealed lines: they are committed."""
        gone = _size(self.lines[: self.sealed])
        self.bytes -= gone
        if not self._sent:  # they were committed by an earlier process or producer
            self.unacked_bytes -= gone
        del self.lines[: self.sealed]
        self._sent, self.acked = max(0, self._sent - self.sealed), max(0, self.acked - self.sealed)
        self.sealed = 0


def _size(lines: Iterable[Line]) -> int:
    return sum(line.size for line in lines)


def _follows(error: Exception) -> bool:
    """Return whether a line failed only because another one did."""
    # kafka-python has no class of its own for a line that was refused with another one of its batch.
    return type(error) is errors.KafkaError or isinstance(
        error, errors.IllegalStateError | errors.TransactionAbortedError
    )
