"""A write-ahead marker: which records are being learnt right now, for the case that one of them kills the process.

It lies in a memory-mapped page, so setting it costs no system call and it survives the death of the process (not of
the machine, but a record does not cut the power).
"""

from __future__ import annotations

import json
import mmap
import os
from typing import Any, NamedTuple

from connectors.ports import Position
from streamkernel.daemon.checkpoints.directory import StateDirectory

__all__ = ["Marker", "Suspects"]

_SIZE = 4096
_ACTIVE, _IDLE = b"A", b"-"


class Suspects(NamedTuple):
    """Records that were being learnt when a process died.

    Attributes
    ----------
    first, end
        Where they begin, and where the record after them does.
    records
        How many there are.
    deaths
        How many processes died one after the other at just these records.

    """

    first: Position
    end: Position
    records: int
    deaths: int

    def hold(self, position: Position) -> bool:
        """Say whether a record is one of them.

        Examples
        --------
        >>> suspects = Suspects(Position("a", 0, 100), Position("a", 0, 200), 5, 1)
        >>> suspects.hold(Position("a", 0, 100)), suspects.hold(Position("a", 0, 200))
        (True, False)

        """
        first, end = self.first, self.end
        # The first records of a file each have a name of their own.
        named = position.stream == first.stream or first.stream != end.stream
        return named and position.partition == first.partition and first.offset <= position.offset < end.offset


class Marker:
    """The marker file of a checkpoint directory.

    Parameters
    ----------
    directory
        The open directory.
    name
        The file; made where it is not there.

    Attributes
    ----------
    suspects
        What the process before this one died of, if it died while learning.

    """

    def __init__(self, directory: StateDirectory, name: str) -> None:
        file = directory.open(name, os.O_RDWR | os.O_CREAT, alone=True)
        try:
            if os.fstat(file).st_size != _SIZE:
                os.ftruncate(file, 0)
                os.pwrite(file, _IDLE.ljust(_SIZE, b"\0"), 0)
            self._page = mmap.mmap(file, _SIZE)
        finally:
            os.close(file)
        self.suspects = self._read() if self._page[:1] == _ACTIVE else None
        self._page[:1] = _IDLE

    def set(self, first: Position, end: Position, records: int) -> None:
        """Say that these records are learnt from now on."""
        deaths = 0
        if self.suspects is not None and (first, end) == (self.suspects.first, self.suspects.end):
            deaths = self.suspects.deaths
        data = json.dumps([first, end, records, deaths]).encode()
        if len(data) + 1 < _SIZE:  # an endless data set name: then this record is not watched
            self._page[1 : len(data) + 2] = data + b"\0"
            self._page[:1] = _ACTIVE

    def clear(self) -> None:
        """Say that they are learnt."""
        self._page[:1] = _IDLE

    def acquit(self) -> None:
        """Forget the suspects."""
        self.suspects = None

    def abandon(self) -> None:
        """Close the file with what is marked: the process ends as if these records had killed it."""
        self._page.close()

    def close(self) -> None:
        """Close the file, with nothing marked."""
        if not self._page.closed:
            self.clear()
            self._page.close()

    def _read(self) -> Suspects | None:
        try:
            first, end, records, deaths = json.loads(bytes(self._page[1 : self._page.find(b"\0", 1)]))
            if type(records) is not int or type(deaths) is not int:
                raise ValueError
            return Suspects(_position(first), _position(end), records, deaths + 1)
        except (ValueError, TypeError, RecursionError):  # the machine died while it was written
            return None


def _position(written: Any) -> Position:
    stream, partition, offset = written
    if not (type(stream) is str and type(partition) is type(offset) is int):
        raise ValueError
    return Position(stream, partition, offset)
