"""The log of the order in which the partitions of a topic are handed out.

It is text, one line for a range of offsets: partition, first offset, the offset after the last, CRC-32 of these three.
"""

from __future__ import annotations

import contextlib
import logging
import os
import zlib
from collections import deque
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from streamkernel.connectors.file_system import open_regular, sync_folder

__all__ = ["OPEN", "OrderEntry", "OrderLog"]

_log = logging.getLogger(__name__)

OPEN = 2**63 - 1
"""The end of an entry for all that is to come, until the next entry."""


class OrderEntry(NamedTuple):
    """A range of a partition's offsets: from `first` up to, and without, `end`."""

    partition: int
    first: int
    end: int

    def to_line(self) -> bytes:
        """Return the line of the log.

        Examples
        --------
        >>> OrderEntry(3, 100, 612).to_line()
        b'3 100 612 2dd2fb0c\\n'

        """
        text = b"%d %d %d" % self
        return b"%s %08x\n" % (text, zlib.crc32(text))

    @classmethod
    def from_line(cls, line: bytes) -> OrderEntry:
        """Return the entry of a line; raises `ValueError` where it is torn or damaged.

        Examples
        --------
        >>> OrderEntry.from_line(b"3 100 612 2dd2fb0c")
        OrderEntry(partition=3, first=100, end=612)

        """
        with contextlib.suppress(ValueError, TypeError):
            entry = cls(*map(int, line.split()[:3]))
            if entry.to_line() == line + b"\n":
                return entry
        raise ValueError(f"{line!r} is torn or damaged")


class OrderLog:
    """The order in which partitions are handed out, in a file.

    Parameters
    ----------
    path
        The file; its owner makes its folder.
    kept
        How many checkpoints are kept: the log reaches back to the oldest one, which a restart may need.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "order.log")
    >>> log = OrderLog(path, kept=1)
    >>> log.open({0: 10, 1: 0})
    []
    >>> log.append(OrderEntry(0, 10, 20))
    >>> log.append(OrderEntry(1, 0, 5))
    >>> log.close()
    >>> log.open({0: 15, 1: 0})
    [OrderEntry(partition=0, first=15, end=20), OrderEntry(partition=1, first=0, end=5)]
    >>> log.saved({0: 20, 1: 3})
    >>> log.close()
    >>> path.read_text()
    '1 0 5 1d0dcc04\\n'

    """

    def __init__(self, path: Path, kept: int) -> None:
        self.path = path
        self._saved: deque[dict[int, int]] = deque(maxlen=kept)
        self._entries: list[OrderEntry] = []
        self._file: int | None = None
        self._length = 0

    def open(self, positions: Mapping[int, int]) -> list[OrderEntry]:
        """Read the log, and return the entries to repeat after a checkpoint at `positions`; empty: start over."""
        self._saved.clear()
        entries = self._read() if positions else []
        replayed = _after(entries, positions)
        if replayed is None:
            _log.warning(
                "%s does not reach back to the checkpoint: records since then are learned in the order of arrival",
                self.path,
            )
            entries, replayed = [], []
        self._rewrite(entries)
        return replayed

    def _read(self) -> list[OrderEntry]:
        try:
            file = open_regular(self.path, os.O_RDONLY)
        except FileNotFoundError:
            return []
        with open(file, "rb") as stream:
            lines = stream.read().split(b"\n")
        entries: list[OrderEntry] = []
        for number, line in enumerate(lines[:-1], start=1):
            try:
                entries.append(OrderEntry.from_line(line))
            except ValueError:
                # A power failure tears the last line only.
                if number < len(lines) - 1:
                    _log.warning("%s is damaged in line %d: the lines after it are not used", self.path, number)
                break
        return _without_open(entries)

    def append(self, entry: OrderEntry) -> None:
        """Write down what comes next, durably; after an `OSError` it can be tried again."""
        assert self._file is not None
        if self._entries and self._entries[-1].end == OPEN:
            # This entry ends it: an older checkpoint may be before where this run began.
            entry = entry._replace(first=self._entries[-1].first)
        line = entry.to_line()
        done = 0
        while done < len(line):
            # At the known length: over the part of a line that a full disk took before.
            done += os.pwrite(self._file, line[done:], self._length + done)
        os.fsync(self._file)
        self._length += len(line)
        self._entries = _without_open([*self._entries, entry])

    def saved(self, positions: Mapping[int, int]) -> None:
        """Drop what no checkpoint needs, once one was written at `positions`; after an `OSError` the log continues."""
        if self._saved and self._saved[-1].items() <= positions.items():
            self._saved.pop()  # a checkpoint that reaches no further replaces the one before
        self._saved.append(dict(positions))
        if len(self._saved) < (self._saved.maxlen or 0):
            return
        oldest = self._saved[0]
        needed = [entry for entry in self._entries if entry.end > oldest.get(entry.partition, entry.first)]
        if len(needed) < len(self._entries):
            self._rewrite(needed)

    def _rewrite(self, entries: list[OrderEntry]) -> None:
        """Replace the file by one with these entries."""
        data = b"".join(entry.to_line() for entry in entries)
        temporary = self.path.with_name(self.path.name + ".tmp")
        file = open_regular(temporary, os.O_RDWR | os.O_CREAT | os.O_TRUNC, alone=True)
        try:
            with open(file, "wb", closefd=False) as stream:
                stream.write(data)
            os.fsync(file)
            temporary.rename(self.path)
        except BaseException:
            os.close(file)
            raise
        self.close()
        self._file, self._length, self._entries = file, len(data), entries
        sync_folder(self.path.parent)

    def close(self) -> None:
        """Close the file; closing twice does nothing."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


def _after(entries: Iterable[OrderEntry], positions: Mapping[int, int]) -> list[OrderEntry] | None:
    """Return the entries without what the checkpoint holds; None where something is missing between them."""
    places = dict(positions)
    rest: list[OrderEntry] = []
    for entry in entries:
        place = places.get(entry.partition, entry.first)
        if entry.end <= place:
            continue
        if entry.first > place:
            return None
        rest.append(entry._replace(first=place))
        places[entry.partition] = entry.end
    return rest


def _without_open(entries: list[OrderEntry]) -> list[OrderEntry]:
    """Return the entries without those that had no end until the next one came."""
    return [entry for entry in entries[:-1] if entry.end != OPEN] + entries[-1:]
