"""Several files of one kind as one source, one after the other."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from streamkernel.connectors.decode import shown
from streamkernel.connectors.files.bytes import STANDARD_INPUT
from streamkernel.connectors.files.csv import CsvSource
from streamkernel.connectors.files.names import distinct, expanded, is_pattern
from streamkernel.connectors.files.places import FileOrder, FilePlace
from streamkernel.connectors.files.source import LineSource
from streamkernel.connectors.pass_through import PassedColumn
from streamkernel.connectors.ports import ColumnUse, Position, Record, Source, SourceError

_log = logging.getLogger(__name__)


class SeveralFiles(Source):
    """Read several files, plain or compressed, in an order that is fixed when the first of them is begun.

    The partition of a record is the number of its file, from 0. Its offset counts in that file. A checkpoint stores the
    order, so a later run continues with the same one. CSV files have a header each, with the same columns in any
    order.

    Parameters
    ----------
    make
        Makes the source of one file of its path.
    paths
        Files, and patterns such as ``data/*.csv``, whose files are read in natural order: ``part-2`` before
        ``part-10``. Hidden files, and those that end in .tmp or .part, match no pattern.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from streamkernel.connectors import JsonLinesSource
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for number in (2, 10):
    ...         _ = Path(folder, f"part-{number}.jsonl").write_text(f'{{"a": {number}}}\\n')
    ...     with SeveralFiles(JsonLinesSource, [f"{folder}/part-*.jsonl"]) as source:
    ...         source.open()
    ...         records = source.poll(10, 0) + source.poll(10, 0)
    >>> [(record.position.partition, record.x) for record in records]
    [(0, {'a': 2}), (1, {'a': 10})]

    """

    def __init__(self, make: Callable[[str], LineSource], paths: Sequence[str]) -> None:
        if not paths:
            raise ValueError("paths must name at least one file")
        if STANDARD_INPUT in paths:
            raise ValueError("standard input is not one of several files: write it to a file, or read it alone")
        self.paths = list(paths)
        self._make = make
        self._kind = make(self.paths[0]).kind
        self._columns_to_pass: tuple[Sequence[PassedColumn], bool] | None = None
        self._reset()

    def _reset(self) -> None:
        self._order = FileOrder()
        self._number = 0
        self._reader: LineSource | None = None
        self._decoder: LineSource | None = None
        # The end of the last record; and that of the last record of the file before, with its lasting position.
        self._end: Position | None = None
        self._end_before: tuple[Position, Position] | None = None
        # Whether new files were chosen, with no record handed out yet, and where they begin.
        self._chosen = False
        self._starts: dict[int, Position] = {}

    def open(self, positions: Mapping[int, Position] | None = None) -> None:
        """Open the first file, or the one that an earlier run was at; see `Source.open`.

        Raises
        ------
        SourceError
            When a file is not there or cannot be read, when files differ in their columns, or when the positions are
            not of these files.

        """
        self.close()
        if not positions:
            self._use_new(self._choose())
            if self._order.files:
                self._note_start(self._number)
            return
        position = positions[max(positions)]
        place = FilePlace.parse(position.stream)
        order = place and place.order
        if place is not None and order is None and position.partition == 0:
            # The first of them was read alone before.
            order = self._choose()
        if place is None or order is None or not order.first <= position.partition < order.end:
            raise SourceError(
                f"{_listed(self.paths)}: the position to resume at was not taken from several files "
                f"({position.stream:.200}): use the source it came from, or start over with --fresh"
            )
        self._order = self._compared(order)
        self._number = position.partition
        if place.at_end:
            self._number += 1
        else:
            path = self._order.path(self._number)
            if not os.path.lexists(path):
                raise SourceError(
                    f"{path}: there is no such file, and the checkpoint is in the middle of it: put it back, or start "
                    "over with --fresh"
                )
            self._begin(position._replace(stream=str(place._replace(order=None))) if place.head else None)

    def _use_new(self, order: FileOrder) -> None:
        """Continue with files that were just chosen."""
        self._order = order
        self._number = order.first
        self._chosen = True

    def _choose(self) -> FileOrder:
        """Return the order of the files, each of which was opened once: later would be late to find a mistake."""
        order = FileOrder(tuple(expanded(self.paths)))
        for number, path in enumerate(order.files):
            with self._opened(path, number, None) as reader:
                order = with_columns(order, path, reader)
        return order

    def _compared(self, before: FileOrder) -> FileOrder:
        """Return the order of an earlier run, with files that were added to a list; SourceError where others were."""
        if not any(map(is_pattern, self.paths)):
            now = tuple(distinct(self.paths))
            if now[: len(before.files)] != before.files:
                raise SourceError(
                    f"{_listed(self.paths)}: the checkpoint has other files in this order, {_listed(before.files)}: "
                    "change the list back (you may add files at its end), or start over with --fresh"
                )
            return replace(before, files=now)
        try:
            new = [path for path in expanded(self.paths) if path not in set(before.files)]
        except SourceError:  # all are finished, and were removed
            new = []
        if new:
            _log.warning(
                "%s: %d files match that did not when the run began, and are not read: %s. Read them in another run "
                "with initial_model, or start over with watch: true",
                *(_listed(self.paths), len(new), _listed(new)),
            )
        return before

    def _opened(self, path: str, number: int, position: Position | None) -> LineSource:
        reader = self._make(path)
        reader.partition = number
        if self._columns_to_pass is not None:
            columns, message = self._columns_to_pass
            reader.pass_through(columns, message=message)
        try:
            reader.open(None if position is None else {0: position})
        except SourceError:
            reader.close()
            raise
        return reader

    def _begin(self, position: Position | None = None) -> None:
        """Open the file that is due, at its beginning or at a position in it."""
        path = self._order.path(self._number)
        self._reader = self._opened(path, self._number, position)
        try:
            self._order = with_columns(self._order, path, self._reader)
        except SourceError:
            self._reader.close()
            self._reader = None
            raise
        _log.info("reading %s, file %d of %s", path, self._number + 1, _listed(self.paths))

    def _finish(self) -> None:
        """Close the file that was read to its end."""
        if self._end is not None:
            self._end_before = self._end, self.lasting(self._end)
            self._end = None
        if self._reader is not None:
            self._reader.close()
            self._reader = None
        self._number += 1

    def poll(self, max_records: int, timeout: float) -> list[Record]:  # noqa: ARG002 - a file is never waited for
        """Hand out the next records; see `Source.poll`."""
        records: list[Record] = []
        while not records and not self._all_read:
            records = self._next_records(max_records)
        return records

    def _note_start(self, number: int) -> None:
        """Note that the new files begin with this one."""
        self._starts = {number: Position(str(FilePlace(order=self._order)), number, 0)}

    def _next_records(self, max_records: int) -> list[Record]:
        """Return records of the open file, which is opened where it is not; finish it where there are no more."""
        if self._reader is None:
            self._begin()
        assert self._reader is not None
        records = self._reader.poll(max_records, timeout=0.0)
        if records:
            self._handed_out(records[-1].next)
        else:
            self._finish()
        return records

    def _handed_out(self, end: Position) -> None:
        """Note the end of the records that are handed out."""
        self._end = end
        if self._chosen:
            self._note_start(end.partition)
            self._chosen = False

    def lasting(self, position: Position) -> Position:
        """Add to a position its hashes in its file, and the order of the files; see `Source.lasting`."""
        if self._end_before is not None and position == self._end_before[0]:
            return self._end_before[1]
        if self._reader is None or position.partition != self._number:
            return position
        place = FilePlace.parse(self._reader.lasting(position).stream)
        if place is None or place.order is not None:
            return position
        at_end = position == self._end and self._reader.at_end()
        order = self._order_behind if at_end else self._order
        return position._replace(stream=str(place._replace(order=order, at_end=at_end)))

    @property
    def _order_behind(self) -> FileOrder:
        """The order as it is once the open file is finished."""
        return self._order

    @property
    def starting_offsets(self) -> Mapping[int, Position]:
        """Where the files begin, with their order."""
        return self._starts

    def settled(self, positions: Mapping[int, Position]) -> Collection[int]:
        """Return the numbers of all files but the last: those before it are finished."""
        return sorted(positions)[:-1]

    def pass_through(self, columns: Sequence[PassedColumn], *, message: bool = False) -> None:
        """Let each record hold these columns; see `Source.pass_through`."""
        self._make(self.paths[0]).pass_through(columns, message=message)
        self._columns_to_pass = columns, message

    def decode(self, raw: bytes, position: Position, following: Position) -> Record:
        """Return the record of raw bytes; see `Source.decode`.

        Raises
        ------
        SourceError
            Where the columns of CSV files are in different orders, and that of the record is not known.

        """
        if self._decoder is None:
            self._decoder = self._make(self.paths[0])
            if isinstance(self._decoder, CsvSource) and self._order.columns is not None:
                if self._order.reordered:
                    raise SourceError(
                        f"{_listed(self.paths)}: the files have their columns in different orders, so one record alone "
                        "cannot be decoded: append it to a file that is not read yet"
                    )
                self._decoder.use_columns(self._order.columns)
        return self._decoder.decode(raw, position, following)

    def place(self, partition: int, offset: int) -> str:
        """Return where a record begins, and in which file; see `Source.place`."""
        if not self._order.first <= partition < self._order.end:
            return super().place(partition, offset)
        reader = self._reader if partition == self._number else None
        place = super().place(0, offset) if reader is None else reader.place(0, offset)
        return f"{place} of {self._order.path(partition)}"

    def columns(self, record: Record) -> Sequence[ColumnUse]:
        """Return the use of each column of a record; see `Source.columns`."""
        return [] if self._reader is None else self._reader.columns(record)

    @property
    def exhausted(self) -> bool:
        """Whether every file was read to its end."""
        return self._all_read

    @property
    def _all_read(self) -> bool:
        return self._reader is None and self._number >= self._order.end

    @property
    def resumable(self) -> bool:
        """Files are."""
        return True

    def describe(self) -> str:
        """Return a phrase such as ``"12 csv files data/*.csv"``."""
        number = f"{self._order.end:,} " if self._order.end else ""
        return f"{number}{self._kind} files {_listed(self.paths)}"

    def close(self) -> None:
        """Close the file that is open; closing twice does nothing."""
        if self._reader is not None:
            self._reader.close()
        self._reset()


def with_columns(order: FileOrder, path: str, reader: LineSource) -> FileOrder:
    """Return an order with the columns of an open file; SourceError where the files before it have others."""
    names = reader.column_names
    if names is None:
        return order
    if order.columns is None:
        return replace(order, columns=tuple(names))
    lacks = [name for name in order.columns if name not in set(names)]
    more = [name for name in names if name not in set(order.columns)]
    if lacks or more:
        what = [f"it lacks {_shown(lacks)}"] if lacks else []
        what += [f"it also has {_shown(more)}"] if more else []
        raise SourceError(
            f"{path}: its columns are not those of the files before it, {' and '.join(what)}: give all files the "
            "same columns, or read it in another run"
        )
    return order if tuple(names) == order.columns else replace(order, reordered=True)


def _shown(names: Sequence[str]) -> str:
    return ", ".join(map(shown, names[:5])) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def _listed(paths: Sequence[str]) -> str:
    return ", ".join(paths[:3]) + (f" and {len(paths) - 3} more" if len(paths) > 3 else "")
