"""The bytes a stream gave last, in bounded memory."""

from __future__ import annotations

from streamkernel.connectors.files.identity import TAIL_BYTES

# Twice what one poll hands out: a record that is longer still is known by its end alone.
MOST_BYTES = 2**25


class RecentBytes:
    """The bytes read last, of which those before any record that was handed out last can be had again.

    A checkpoint is due when a record has been learned, not when it was read, and by then the file may have been
    truncated: what was read is all that can be relied on. Reading begins at `offset`, `before` are the bytes before
    that, `TAIL_BYTES` of them or all there are.

    Examples
    --------
    >>> recent = RecentBytes(0, b"")
    >>> recent.add(b"a,b\\n1,2\\n")
    >>> recent.before(4)
    b'a,b\\n'

    """

    def __init__(self, offset: int, before: bytes) -> None:
        self._data = bytearray(before)
        self._end = offset
        self._kept = offset, before

    def add(self, block: bytes) -> None:
        """Add what was read."""
        self._data += block
        self._end += len(block)
        del self._data[:-MOST_BYTES]

    def go_back(self, offset: int) -> None:
        """Take back what was added from `offset` on."""
        del self._data[max(0, offset - (self._end - len(self._data))) :]
        self._end = offset

    def forget(self, offset: int) -> None:
        """Forget what no place from `offset` on needs."""
        self._kept = offset, self.before(offset)
        superfluous = offset - TAIL_BYTES - (self._end - len(self._data))
        if superfluous > 0:
            del self._data[:superfluous]

    def before(self, offset: int) -> bytes:
        """Return the last bytes before `offset`: `TAIL_BYTES`, or as many as are there and known."""
        if offset == self._kept[0]:
            return self._kept[1]
        end = offset - (self._end - len(self._data))
        return bytes(self._data[max(0, end - TAIL_BYTES) : max(0, end)])
