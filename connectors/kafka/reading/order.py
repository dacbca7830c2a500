"""In which order the partitions of a topic are handed out, and how that is written down.

What comes from several partitions comes in an order that is an accident of the network. A model learns another state
from another order; so that a run that was killed ends like one that was not, the order can be logged: which stretch of
which partition comes next is on the disk before its first record is handed out, and a restart repeats what the
checkpoint does not hold.

The log is text, one line a stretch: partition, first offset, number of offsets, CRC-32 of these three.
"""

from __future__ import annotations

import contextlib
import logging
import os
import time
import zlib
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from connectors.kafka.reading.buffers import Buffers, Stretch
from connectors.regular import open_regular

__all__ = ["ArrivalOrder", "Entry", "LoggedOrder", "Order", "OrderLog"]

_log = logging.getLogger(__name__)

_RETRY_SECONDS = 1.0


class Order(ABC):
    """Says what is handed out next."""

    @abstractmethod
    def take(self, buffers: Buffers, most: int) -> Stretch | None:
        """Take the next stretch, of one partition; None where it is not there yet."""

    @property
    def wanted(self) -> int | None:
        """The partition it must come from; None: any."""
        return None

    @property
    def held(self) -> bool:
        """Whether nothing can be handed out for a while, whatever is there."""
        return False

    def saved(self, positions: Mapping[int, int]) -> None:  # noqa: B027 - most have nothing to note
        """Take note that a restart goes on at these offsets."""

    def close(self) -> None:  # noqa: B027 - most have nothing to close
        """Release what is held."""


class _Turns:
    """Whose turn it is: one partition after the other."""

    def __init__(self) -> None:
        self._last = -1

    def next(self, buffers: Buffers) -> int | None:
        for partition in sorted(buffers.partitions, key=lambda one: (one <= self._last, one)):
            if buffers.waiting(partition) is not None:
                self._last = partition
                return partition
        return None


class ArrivalOrder(Order):
    """As they come, in turns of one chunk."""

    def __init__(self) -> None:
        self._turns = _Turns()

    def take(self, buffers: Buffers, most: int) -> Stretch | None:
        """Take from the partition whose turn it is; see `Order.take`."""
        partition = self._turns.next(buffers)
        return None if partition is None else buffers.take(partition, most)


class Entry(NamedTuple):
    """A stretch of a partition: the offsets from `first` up to, and without, `end`."""

    partition: int
    first: int
    end: int

    def to_line(self) -> bytes:
        """Write it as a line of the log.

        Examples
        --------
        >>> Entry(3, 100, 612).to_line()
        b'3 100 512 2f944555\\n'

        """
        text = b"%d %d %d" % (self.partition, self.first, self.end - self.first)
        return b"%s %08x\n" % (text, zlib.crc32(text))

    @classmethod
    def from_line(cls, line: bytes) -> Entry:
        """Read a line.

        Raises
        ------
        ValueError
            Where it is torn or damaged.

        Examples
        --------
        >>> Entry.from_line(b"3 100 512 2f944555")
        Entry(partition=3, first=100, end=612)

        """
        with contextlib.suppress(ValueError):
            partition, first, count = map(int, line.split()[:3])
            entry = cls(partition, first, first + count)
            if entry.to_line() == line + b"\n":
                return entry
        raise ValueError(f"{line!r} is torn or damaged")


class OrderLog:
    """The file of the order.

    Parameters
    ----------
    path
        The file; its folder is made by whoever owns it.
    kept
        How many checkpoints are kept: the log reaches back to the oldest, which a restart may have to go back to.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "order.log")
    >>> log = OrderLog(path, kept=1)
    >>> log.open({0: 10, 1: 0})
    []
    >>> log.append(Entry(0, 10, 20))
    >>> log.append(Entry(1, 0, 5))
    >>> log.close()
    >>> log.open({0: 15, 1: 0})
    [Entry(partition=0, first=15, end=20), Entry(partition=1, first=0, end=5)]
    >>> log.saved({0: 20, 1: 3})
    >>> log.close()
    >>> path.read_text()
    '1 0 5 1d0dcc04\\n'

    """

    def __init__(self, path: Path, kept: int) -> None:
        self.path = path
        self._kept = kept
        self._saved: deque[dict[int, int]] = deque(maxlen=kept)
        self._entries: list[Entry] = []
        self._file: int | None = None
        self._length = 0

    def open(self, positions: Mapping[int, int], first: Entry | None = None) -> list[Entry]:
        """Read the log, and give what of it is to be repeated.

        Parameters
        ----------
        positions
            Where the checkpoint goes on, by partition; empty: begin anew, whatever the log says.
        first
            What a log begins with that is not there yet, in the same write: a kill leaves no log without it.

        Raises
        ------
        OSError
            Where the file cannot be read or written.

        """
        self._saved.clear()
        entries = self._read() if positions and first is None else []
        entries += [] if first is None else [first]
        replayed = self._uncovered(entries, positions)
        if replayed is None:
            _log.warning(
                "%s does not reach back to the checkpoint: what was learnt since then is learnt in the order in which "
                "it comes now",
                self.path,
            )
            entries, replayed = [], []
        self._rewrite(entries)
        return replayed

    def _read(self) -> list[Entry]:
        try:
            file = open_regular(self.path, os.O_RDONLY)
        except FileNotFoundError:
            return []
        with open(file, "rb") as stream:
            lines = stream.read().split(b"\n")
        entries: list[Entry] = []
        for number, line in enumerate(lines[:-1], start=1):
            try:
                entries.append(Entry.from_line(line))
            except ValueError:
                # A line that was being written when the power went is the last one.
                if number < len(lines) - 1:
                    _log.warning("%s is damaged in line %d: what stands behind it is not used", self.path, number)
                break
        return entries

    @staticmethod
    def _uncovered(entries: Iterable[Entry], positions: Mapping[int, int]) -> list[Entry] | None:
        """Cut off what the checkpoint holds; None where something is missing between it and the log."""
        places = dict(positions)
        rest: list[Entry] = []
        for entry in entries:
            place = places.get(entry.partition, entry.first)
            if entry.end <= place:
                continue
            if entry.first > place:
                return None
            rest.append(entry._replace(first=place))
            places[entry.partition] = entry.end
        return rest

    def append(self, entry: Entry) -> None:
        """Write down what comes next, durably.

        Raises
        ------
        OSError
            Where the disk does not take it; it can be tried again.

        """
        assert self._file is not None
        line = entry.to_line()
        done = 0
        while done < len(line):
            # At the known length: what a full disk took of a line before is written over.
            done += os.pwrite(self._file, line[done:], self._length + done)
        os.fsync(self._file)
        self._length += len(line)
        self._entries.append(entry)

    def saved(self, positions: Mapping[int, int]) -> None:
        """Drop what no checkpoint needs any more; one that goes on at `positions` was written.

        Raises
        ------
        OSError
            Where the disk does not take the shorter file; the longer one goes on.

        """
        if self._saved and self._saved[-1].items() <= positions.items():
            self._saved.pop()  # a checkpoint that reaches no further takes the place of the one before
        self._saved.append(dict(positions))
        if len(self._saved) < self._kept:
            return
        oldest = self._saved[0]
        needed = [entry for entry in self._entries if entry.end > oldest.get(entry.partition, entry.first)]
        if len(needed) < len(self._entries):
            self._rewrite(needed)

    def _rewrite(self, entries: list[Entry]) -> None:
        """Put a file with these entries in the place of the old one."""
        data = b"".join(entry.to_line() for entry in entries)
        temporary = self.path.with_name(self.path.name + ".tmp")
        file = open_regular(temporary, os.O_RDWR | os.O_CREAT | os.O_TRUNC, alone=True)
        try:
            with open(file, "wb", closefd=False) as stream:
                stream.write(data)
            os.fsync(file)
            temporary.rename(self.path)
            folder = os.open(self.path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
        except BaseException:
            os.close(file)
            raise
        self.close()
        self._file, self._length, self._entries = file, len(data), entries

    def close(self) -> None:
        """Close the file; closing twice does nothing."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


class LoggedOrder(Order):
    """As they come, but written down first; after a restart as it is written.

    Parameters
    ----------
    log
        Open.
    replayed
        What it gave when it was opened.
    begins
        At which offset each partition is read on.

    """

    def __init__(self, log: OrderLog, replayed: Iterable[Entry], begins: Mapping[int, int]) -> None:
        self._file = log
        self._replayed = deque(entry for entry in replayed if entry.partition in begins)
        self._next = dict(begins)
        for entry in self._replayed:
            self._next[entry.partition] = entry.end
        self._entry: Entry | None = None
        self._turns = _Turns()
        self._again = 0.0
        self._refused = False

    @property
    def wanted(self) -> int | None:
        """The partition of the stretch that was begun; see `Order.wanted`."""
        return None if self._entry is None else self._entry.partition

    @property
    def held(self) -> bool:
        """Whether the disk has just refused a line; see `Order.held`."""
        return self._refused and time.monotonic() < self._again

    def take(self, buffers: Buffers, most: int) -> Stretch | None:
        """Take what the log says, or decide and log it; see `Order.take`."""
        while True:
            if self._entry is None:
                self._entry = self._replayed.popleft() if self._replayed else self._decide(buffers)
            entry = self._entry
            if entry is None:
                return None
            taken = buffers.take(entry.partition, most, before=entry.end)
            if taken is None and not buffers.passed(entry.partition, entry.end):
                return None
            if taken is None or taken.end >= entry.end:
                self._entry = None
            if taken is not None:
                return taken

    def _decide(self, buffers: Buffers) -> Entry | None:
        """Choose all that is there of the partition whose turn it is: one write to the disk for many chunks."""
        if self.held:
            return None
        partition = self._turns.next(buffers)
        there = None if partition is None else buffers.waiting(partition)
        if partition is None or there is None:
            return None
        # One that was added to the topic is read from its first offset on.
        entry = Entry(partition, self._next.get(partition, 0), there[1])
        try:
            self._file.append(entry)
        except OSError as error:
            if not self._refused:
                _log.error(
                    "%s cannot be written: %s; no record is taken until it can, for their order would be lost",
                    *(self._file.path, error.strerror),
                )
            self._refused, self._again = True, time.monotonic() + _RETRY_SECONDS
            return None
        self._refused = False
        self._next[partition] = entry.end
        return entry

    def saved(self, positions: Mapping[int, int]) -> None:
        """Drop what is covered; see `Order.saved`."""
        try:
            self._file.saved(positions)
        except OSError as error:
            _log.warning("%s cannot be shortened: %s", self._file.path, error.strerror)

    def close(self) -> None:
        """Close the log."""
        self._file.close()
