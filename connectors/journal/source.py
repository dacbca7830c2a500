"""A journal as a source: its records in the order in which they were acknowledged, each once."""

from __future__ import annotations

import os
import re
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

from streamkernel.connectors.columns.rules import ColumnRules
from streamkernel.connectors.columns.settings import InputSettings
from streamkernel.connectors.file_system import open_regular
from streamkernel.connectors.files.places import TAIL_BYTES, identity
from streamkernel.connectors.journal.layout import (
    COMMITTED,
    Segment,
    bytes_before,
    identity_of,
    is_place_of,
    parse_committed,
    segments,
)
from streamkernel.connectors.journal.lines import parse_line
from streamkernel.connectors.objects import JsonObjects
from streamkernel.connectors.os_reason import os_reason
from streamkernel.connectors.pass_through import PassedColumn
from streamkernel.connectors.pass_through_reader import PassThrough
from streamkernel.connectors.ports import ColumnUse, Fault, Position, Record, Source, SourceError

__all__ = ["JournalSource"]

_LOOK_SECONDS = 0.01
_BLOCK_BYTES = 2**18
_TAIL = re.compile(r"(journal/[^;]*)(?:;tail=((\d{1,4}):[0-9a-f]{64}))?", re.ASCII)


class JournalSource(Source):
    """Read what `streamkernel.connectors.journal.writer.JournalWriter` appends, in another process most often.

    Segments are deleted once no restart needs them.

    Parameters
    ----------
    directory
        Of the journal; it need not be there yet.
    target, target_type, max_record_bytes, max_string, inputs
        As `streamkernel.connectors.files.source.JsonLinesSource` has them.
    follow
        Whether to wait for more at the end.
    max_bytes
        How large the journal may become. From half of that on, segments are deleted before the newest checkpoint, and
        not only before the oldest of those that are kept.
    checkpoints_kept
        How many checkpoints a restart may go on from; 0: nothing is deleted.

    Examples
    --------
    >>> import tempfile
    >>> from streamkernel.connectors.journal.writer import JournalEntry, JournalWriter
    >>> folder = Path(tempfile.mkdtemp())
    >>> writer = JournalWriter(folder, max_bytes=2**24, remembered_ids=100)
    >>> writer.open()
    >>> _ = writer.append([[JournalEntry(b'{"a": 1, "y": "yes"}')]])
    >>> writer.close()
    >>> with JournalSource(folder, target="y") as source:
    ...     source.open()
    ...     records = source.poll(10, timeout=0)
    >>> records[0].x, records[0].y
    ({'a': 1}, 'yes')

    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        target: str | None = None,
        target_type: str = "str",
        follow: bool = True,
        max_record_bytes: int = 2**20,
        max_string: int = 256,
        inputs: InputSettings | None = None,
        max_bytes: int = 2**28,
        checkpoints_kept: int = 0,
    ) -> None:
        self.directory = Path(directory)
        self._place = self.directory.absolute()
        self.follow = follow
        self.max_record_bytes = max_record_bytes
        self.max_bytes = max_bytes
        self.checkpoints_kept = checkpoints_kept
        rules = None if inputs is None else ColumnRules(inputs, max_string)
        self._decoder = JsonObjects(target, target_type, max_string, rules)
        self._forget()

    def _forget(self) -> None:
        self._stream: str | None = None  # what it is known by, once it is there
        self._begin: Position | None = None  # where it is read from where no position says more
        self._watermark: int | None = None  # an open file, and so is the segment's
        self._segment: tuple[Segment, int] | None = None
        self._committed = 0
        self._at = 0  # where the lines begin that were not handed out yet
        self._lines: deque[bytes] = deque()
        self._saved: deque[int] = deque()

    def open(self, positions: Mapping[int, Position] | None = None) -> None:
        """Open the journal; see `Source.open`. One that is not there yet is waited for.

        Raises
        ------
        SourceError
            When it is another journal than that of the position, or what follows the position is gone.

        """
        self.close()
        if positions and set(positions) != {0}:
            raise SourceError(f"{self.directory}: a journal has only partition 0, not {sorted(positions)}")
        self._find()
        if positions:
            self._resume(positions[0])

    def _find(self) -> None:
        """Open the journal where it is there."""
        try:
            identity = identity_of(self.directory)
            found = segments(self.directory)
            if identity is None or not found:
                return
            self._watermark = open_regular(self.directory / COMMITTED, os.O_RDONLY)
        except FileNotFoundError:
            return  # it is being made
        except (OSError, ValueError, KeyError, TypeError) as error:
            reason = os_reason(error) if isinstance(error, OSError) else "its journal.json is damaged"
            raise SourceError(f"{self.directory}: the journal cannot be read: {reason}") from error
        self._stream, self._at = f"journal/{identity}", found[0].base
        self._begin = Position(self._stream, 0, self._at)
        self._look(self._watermark)

    def _look(self, watermark: int) -> None:
        """See how far the journal is committed."""
        committed = parse_committed(os.pread(watermark, 64, 0))
        self._committed = self._committed if committed is None else committed

    def _resume(self, position: Position) -> None:
        match = _TAIL.fullmatch(position.stream)
        if match is None or self._stream != match[1]:
            what = "there is no journal" if self._stream is None else "this is another journal than the checkpoint's"
            raise SourceError(f"{self.directory}: {what}: restore the previous one, or start over with --fresh")
        self._at = position.offset
        self._saved.append(self._at)
        segment, descriptor = self._open_segment()
        beyond = self._at - segment.base
        # Bytes that were read and are gone since, as all checkpoints were behind them, are taken to be the same.
        before = bytes_before(self.directory, self._at, int(match[3])) if match[2] else None
        if (
            beyond > os.fstat(descriptor).st_size
            or (beyond and os.pread(descriptor, 1, beyond - 1) != b"\n")
            or (before is not None and identity(before) != match[2])
        ):
            raise SourceError(
                f"{self.directory}: does not hold what was read before offset {self._at}: restore the previous "
                "journal, or start over with --fresh"
            )

    def _open_segment(self) -> tuple[Segment, int]:
        """Open the segment with the line that is read next, if it is not open."""
        if self._segment is not None:
            return self._segment
        found = [one for one in segments(self.directory) if one.base <= self._at]
        if not found:
            raise SourceError(
                f"{self.directory}: records after offset {self._at} were deleted, because a newer checkpoint had "
                "read them"
            )
        self._segment = found[-1], open_regular(found[-1].path, os.O_RDONLY)
        return self._segment

    def poll(self, max_records: int, timeout: float) -> list[Record]:
        """Hand out the next records; see `Source.poll`."""
        deadline = time.monotonic() + timeout
        while True:
            try:
                if self._lines or self._fill():
                    return self._records(max_records)
            except OSError as error:
                raise SourceError(f"{self.directory}: the journal cannot be read: {os_reason(error)}") from error
            left = deadline - time.monotonic()
            if left <= 0 or self.exhausted:
                return []
            time.sleep(min(_LOOK_SECONDS, left))

    def _fill(self) -> bool:
        """Read whole committed lines; False where there are none now."""
        if self._watermark is None:
            self._find()
        if self._watermark is None:
            return False
        self._look(self._watermark)
        if self._at >= self._committed:
            if not is_place_of(self._place, self._watermark):
                raise SourceError(
                    f"{self.directory}: the journal was removed or replaced while it was read: restore the previous "
                    "one, or start over with --fresh"
                )
            return False
        segment, descriptor = self._open_segment()
        size = _BLOCK_BYTES
        while True:
            wanted = min(size, self._committed - self._at)
            data = os.pread(descriptor, wanted, self._at - segment.base)
            if not data:  # the segment is finished: the next one is called like this offset
                self._close_segment()
                following, _ = self._open_segment()
                if following.base != self._at:
                    raise SourceError(f"{self.directory}: {segment.path.name} is shorter than what was committed")
                return self._fill()
            whole = data.rfind(b"\n") + 1
            if whole:
                self._lines.extend(data[: whole - 1].split(b"\n"))
                return True
            if len(data) < size:
                raise SourceError(f"{self.directory}: {segment.path.name} is damaged: its last line has no end")
            size *= 4

    def _records(self, max_records: int) -> list[Record]:
        assert self._stream is not None
        raws: list[bytes] = []
        places = [Position(self._stream, 0, self._at)]
        faults: dict[int, Fault] = {}
        while self._lines and len(raws) < max_records:
            line = self._lines.popleft()
            entry = parse_line(line)
            raw = line if entry is None else entry.record
            if entry is None:
                faults[len(raws)] = Fault("corrupt", "this is not a line of a journal")
            elif len(raw) > self.max_record_bytes:
                detail = f"{len(raw):,} bytes, more than max_record_bytes ({self.max_record_bytes:,})"
                faults[len(raws)] = Fault("too_long", detail)
            raws.append(raw)
            self._at += len(line) + 1
            places.append(Position(self._stream, 0, self._at))
        if not faults:
            return self._decoder.records(raws, places[:-1], places[1:])
        return [
            Record({}, None, place, following, raw[: self.max_record_bytes], faults[number])
            if number in faults
            else self._decoder.records([raw], [place], [following])[0]
            for number, (raw, place, following) in enumerate(zip(raws, places, places[1:], strict=False))
        ]

    def pass_through(self, columns: Sequence[PassedColumn], *, message: bool = False) -> None:
        """Let each record hold these columns; see `Source.pass_through`."""
        if message:
            raise SourceError(
                f"{self.describe()}: its records are not Kafka messages: there is no message column to pass through"
            )
        self._decoder.passing = PassThrough(columns)

    def decode(self, raw: bytes, position: Position, following: Position) -> Record:
        """Return the record of raw bytes; see `Source.decode`."""
        if len(raw) > self.max_record_bytes:
            detail = f"{len(raw):,} bytes, more than max_record_bytes ({self.max_record_bytes:,})"
            return Record({}, None, position, following, raw[: self.max_record_bytes], Fault("too_long", detail))
        return self._decoder.record(raw, position, following)

    def lasting(self, position: Position) -> Position:
        """Return a position with a hash of the bytes before it, which an older copy lacks; see `Source.lasting`."""
        if ";" in position.stream:
            return position
        try:
            before = bytes_before(self.directory, position.offset, TAIL_BYTES)
        except OSError:  # it was removed or replaced, which the next look at its end finds
            return position
        return position._replace(stream=f"{position.stream};tail={identity(before)}") if before else position

    def saved(self, positions: Mapping[int, Position]) -> None:
        """Delete the segments that no restart needs any more; see `Source.saved`."""
        if 0 not in positions or not self.checkpoints_kept:
            return
        offset = positions[0].offset
        if not self._saved or self._saved[-1] != offset:  # else it may stand in the place of the one before
            self._saved.append(offset)
        while len(self._saved) > self.checkpoints_kept:
            self._saved.popleft()
        found = segments(self.directory)
        # After a restart it is not known where the older checkpoints begin: it takes as many new ones to know.
        behind = self._saved[0] if len(self._saved) == self.checkpoints_kept else 0
        if found and self._committed - found[0].base > self.max_bytes // 2:
            behind = self._saved[-1]
        for one, following in pairwise(found):
            if following.base > behind:
                break
            with suppress(OSError):  # the next checkpoint brings another chance
                one.path.unlink()

    @property
    def starting_offsets(self) -> Mapping[int, Position]:
        """Where the journal begins; later, its first segment may be gone."""
        return {} if self._begin is None else {0: self._begin}

    @property
    def exhausted(self) -> bool:
        """Whether all that is committed was read, where nothing more is waited for."""
        return not self.follow and not self._lines and self._at >= self._committed

    @property
    def resumable(self) -> bool:
        """Whether a later run can go on where this one ended: always."""
        return True

    def columns(self, record: Record) -> Sequence[ColumnUse]:
        """Return what becomes of each column of a record; see `Source.columns`."""
        return self._decoder.columns(record.raw)

    def describe(self) -> str:
        """Return a phrase such as ``"journal out/journal"``."""
        return f"journal {self.directory}"

    def _close_segment(self) -> None:
        if self._segment is not None:
            os.close(self._segment[1])
            self._segment = None

    def close(self) -> None:
        """Close the files; closing twice does nothing."""
        self._close_segment()
        if self._watermark is not None:
            os.close(self._watermark)
        self._forget()
