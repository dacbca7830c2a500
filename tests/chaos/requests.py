"""The requests of one connection to a broker, told apart as they pass."""

from __future__ import annotations

import struct

END_TXN = 26
"""The number of the request that ends a transaction."""

_LENGTH = struct.Struct(">i")
_KEY = struct.Struct(">h")


class Requests:
    """Finds the requests of one kind in what a client sends.

    Examples
    --------
    >>> ended = bytes([0, 0, 0, 3, 0, END_TXN, 7])
    >>> requests = Requests()
    >>> other = bytes([0, 0, 0, 2, 0, 3])
    >>> [requests.find(END_TXN, piece) for piece in (other + ended[:2], ended[2:6], ended[6:] + other)]
    [[], [], [b'\\x00\\x00\\x00\\x03\\x00\\x1a\\x07']]

    """

    def __init__(self) -> None:
        self._begun = bytearray()
        self._skipped = 0

    def find(self, kind: int, data: bytes) -> list[bytes]:
        """Take what was sent next, and give the requests that are whole by now."""
        found = []
        skipped = min(self._skipped, len(data))
        self._skipped -= skipped
        self._begun += data[skipped:]
        while len(self._begun) >= _LENGTH.size + _KEY.size:
            size = _LENGTH.size + _LENGTH.unpack_from(self._begun)[0]
            if _KEY.unpack_from(self._begun, _LENGTH.size)[0] != kind:
                self._skipped = max(0, size - len(self._begun))
            elif len(self._begun) < size:
                break
            else:
                found.append(bytes(self._begun[:size]))
            del self._begun[:size]
        return found
