"""Write-ahead markers: which records are being learned right now, for the case that one of them kills the process.

A marker lies in a memory-mapped page, so setting it costs no system call and it survives the death of the process (not
of the machine, but a record does not cut the power).
"""

from __future__ import annotations

import json
import logging
import mmap
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from pydantic import TypeAdapter

from streamkernel.connectors.file_system import open_regular
from streamkernel.connectors.ports import Position, Record, RecordColumns
from streamkernel.daemon.base.events import LabelRecord
from streamkernel.daemon.checkpoints.directory import StateDirectory

__all__ = ["InFlight", "InFlightMarker", "InFlightMarkers", "is_marked"]

_log = logging.getLogger(__name__)

_SIZE = 4096
_ACTIVE, _IDLE = b"A", b"-"


class InFlight(NamedTuple):
    """Records that were being learned when a process died.

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

    def holds(self, position: Position) -> bool:
        """Return whether a record is one of them.

        Examples
        --------
        >>> in_flight = InFlight(Position("a", 0, 100), Position("a", 0, 200), 5, 1)
        >>> in_flight.holds(Position("a", 0, 100)), in_flight.holds(Position("a", 0, 200))
        (True, False)

        """
        first, end = self.first, self.end
        # The first records of a file each have a name of their own.
        named = position.stream == first.stream or first.stream != end.stream
        return named and position.partition == first.partition and first.offset <= position.offset < end.offset


_IN_FLIGHT = TypeAdapter(InFlight)


class InFlightMarker:
    """The marker file of a checkpoint directory.

    Parameters
    ----------
    directory
        The open directory.
    name
        The file; made where it is not there.

    Attributes
    ----------
    interrupted
        The records in flight when the process before this one died, if it died while learning; None: there are none.

    """

    def __init__(self, directory: StateDirectory, name: str) -> None:
        file = directory.open(name, os.O_RDWR | os.O_CREAT, alone=True)
        try:
            with directory.naming(name):
                if os.fstat(file).st_size != _SIZE:
                    os.ftruncate(file, 0)
                    with open(file, "wb", closefd=False) as page:  # all of it, or an error: os.pwrite may write less
                        page.write(_IDLE.ljust(_SIZE, b"\0"))
                self._page = mmap.mmap(file, _SIZE)
        finally:
            os.close(file)
        self.interrupted = self._read() if self._page[:1] == _ACTIVE else None
        self._page[:1] = _IDLE

    def set(self, first: Position, end: Position, records: int) -> None:
        """Mark records as being learned from now on."""
        deaths = 0
        if self.interrupted is not None and (first, end) == (self.interrupted.first, self.interrupted.end):
            deaths = self.interrupted.deaths
        data = json.dumps([first, end, records, deaths]).encode()
        if len(data) + 1 < _SIZE:  # an endless data set name: then this record is not watched
            self._page[1 : len(data) + 2] = data + b"\0"
            self._page[:1] = _ACTIVE

    def clear(self) -> None:
        """Mark no records: they are learned."""
        self._page[:1] = _IDLE

    def abandon(self) -> None:
        """Close the file with what is marked: the process ends as if these records had killed it."""
        self._page.close()

    def close(self) -> None:
        """Close the file, with nothing marked."""
        if not self._page.closed:
            self.clear()
            self._page.close()

    def _read(self) -> InFlight | None:
        try:
            read = _IN_FLIGHT.validate_json(bytes(self._page[1 : self._page.find(b"\0", 1)]), strict=True)
        except ValueError:  # the machine died while it was written
            return None
        return read._replace(deaths=read.deaths + 1)


def is_marked(directory: Path) -> bool:
    """Return whether records of a checkpoint directory are being learned, or were when a process died over them."""
    for name in ("learning", "learning-labels"):
        with suppress(OSError), open(open_regular(directory / name, os.O_RDONLY), "rb") as file:
            if file.read(1) == _ACTIVE:
                return True
    return False


class InFlightMarkers:
    """The markers of a run: one for each source that has any.

    Parameters
    ----------
    markers
        By the kind of record, `Record` or `LabelRecord`.

    """

    def __init__(self, markers: Mapping[type[Record], InFlightMarker]) -> None:
        self._markers = markers

    @property
    def any_interrupted(self) -> bool:
        """Whether there are records that a process died with and that were not passed since."""
        return any(marker.interrupted is not None for marker in self._markers.values())

    def warn(self) -> None:
        """Log what the process before this one died with."""
        for kind, marker in self._markers.items():
            if marker.interrupted is not None:
                _log.warning(
                    "the previous process died while it learned the %d %s from position %d on: this one learns them "
                    "one at a time",
                    marker.interrupted.records,
                    "labels" if kind is LabelRecord else "records",
                    marker.interrupted.first.offset,
                )

    def interrupted_at(self, record: Record) -> InFlight | None:
        """Return the records a process died with, if this is one of them."""
        marker = self._markers.get(type(record))
        interrupted = marker.interrupted if marker is not None else None
        return interrupted if interrupted is not None and interrupted.holds(record.position) else None

    def set(self, records: Sequence[Record]) -> None:
        """Mark records as being learned from now on."""
        for kind, marker in self._markers.items():
            if isinstance(records, RecordColumns):
                alike: Sequence[Record] = records if kind is Record else ()
            else:
                alike = [record for record in records if type(record) is kind]
            if alike:
                marker.set(alike[0].position, alike[-1].next, len(alike))

    def clear(self) -> None:
        """Mark no records: they are learned."""
        for marker in self._markers.values():
            marker.clear()

    def abandon(self) -> None:
        """Leave the marks as they are: the process ends as if these records had killed it."""
        for marker in self._markers.values():
            marker.abandon()

    def forget(self, kind: type[Record]) -> None:
        """Forget the records of a kind that a process died with."""
        self._markers[kind].interrupted = None

    def passed(self, kind: type[Record], following: Position | None) -> None:
        """Forget records in flight once their source has passed them, so that no later record is compared with them."""
        marker = self._markers.get(kind)
        if following is None or marker is None or marker.interrupted is None:
            return
        end = marker.interrupted.end
        if following[:2] == end[:2] and following.offset >= end.offset:
            marker.interrupted = None
