"""The files of a source as one list: how it begins, and which file follows another."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from streamkernel.connectors.decode import shown
from streamkernel.connectors.files.bytes import open_file
from streamkernel.connectors.files.names import distinct, expanded, is_pattern
from streamkernel.connectors.files.places import FileOrder, FilePlace
from streamkernel.connectors.files.stream import STANDARD_INPUT, ByteStream, FileStream, StandardInput
from streamkernel.connectors.ports import Fault, Position, SourceError

_log = logging.getLogger(__name__)


class FileList:
    """The files of a source, plain or compressed, in an order that is fixed when the first of them is begun.

    A source calls `start`, then `open` while a file is `due`, and `finish` at the end of each. The partition of a
    record is the number of its file, from 0. Its offset counts in that file. A checkpoint stores the order of several
    files, so a later run continues with the same one. CSV files have a header each, with the same columns in any order.

    Parameters
    ----------
    paths
        Files, and patterns such as ``data/*.csv``, whose files are read in natural order: ``part-2`` before
        ``part-10``. Hidden files, and those that end in .tmp or .part, match no pattern.
    alone
        Whether it is one file, or standard input.

    Attributes
    ----------
    finite
        Whether the list ends.
    chooses_order, starts
        As `Source.chooses_order` and `Source.starting_offsets`.
    pause
        Seconds between two looks for more.
    number
        The number of the file that is open or due next.

    """

    finite = True
    chooses_order = False
    pause = 0.05

    def __init__(self, paths: Sequence[str], *, alone: bool = False) -> None:
        if not paths:
            raise ValueError("paths must name at least one file")
        if STANDARD_INPUT in paths and not alone:
            raise ValueError("standard input is not one of several files: write it to a file, or read it alone")
        self.path = listed(paths)
        self.paths = list(paths)
        self.alone = alone
        self.order = FileOrder()
        self.number = 0
        self.starts: Mapping[int, Position] = {}
        # Whether new files were chosen, with no record handed out yet.
        self._chosen = False

    @property
    def name(self) -> str:
        """The open file in an error."""
        return "standard input" if self.path == STANDARD_INPUT else self.file_of(self.number) or self.path

    def start(self, positions: Mapping[int, Position]) -> Position | None:
        """Begin, or continue in the order of an earlier run; return the position in the file that is due, if any.

        Raises
        ------
        SourceError
            When a file is not there, or when the positions are not of these files.

        """
        self.starts, self._chosen = {}, False
        if not positions or self.alone:
            if positions and set(positions) != {0}:
                raise SourceError(f"{self.name}: a file has only partition 0, not {sorted(positions)}")
            self._use_new(FileOrder(tuple(self.paths)) if self.alone else self._choose())
            return positions.get(0)
        position = positions[max(positions)]
        place = FilePlace.of(position)
        order = None if place is None else place.order
        if place is not None and order is None and position.partition == 0:
            # The first of them was read alone before.
            order = self._choose()
        if place is None or order is None or not order.first <= position.partition < order.end:
            raise SourceError(
                f"{self.path}: the position to resume at was not taken from several files "
                f"({position.stream:.200}): use the source it came from, or start over with --fresh"
            )
        self._chosen = place.order is None
        self.order = self._compared(order)
        self.number = position.partition
        if place.at_end:
            self.number += 1
            return None
        if not os.path.lexists(self.name):
            raise SourceError(
                f"{self.name}: there is no such file, and the checkpoint is in the middle of it: put it back, or start "
                "over with --fresh"
            )
        return position if position.stream else None

    def _use_new(self, order: FileOrder) -> None:
        """Continue with files that were just chosen."""
        self.order = order
        self.number = order.first
        self._chosen = True

    def _choose(self) -> FileOrder:
        """Return the order of the files."""
        return FileOrder(tuple(expanded(self.paths)))

    @property
    def unverified(self) -> Sequence[int]:
        """The numbers of the files to open once before the first record: later is late to find a mistake."""
        return range(self.order.end) if self._chosen and not self.alone else ()

    def note_start(self, number: int) -> None:
        """Note that new files begin with this one."""
        if self._chosen and self.order.files and not self.alone:
            self.starts = {number: Position("", number, 0, FilePlace(order=self.order).known)}

    def _compared(self, before: FileOrder) -> FileOrder:
        """Return the order of an earlier run, with files that were added to a list; SourceError where others were."""
        if not any(map(is_pattern, self.paths)):
            now = tuple(distinct(self.paths))
            if now[: len(before.files)] != before.files:
                raise SourceError(
                    f"{self.path}: the checkpoint has other files in this order, {listed(before.files)}: "
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
                *(self.path, len(new), listed(new)),
            )
        return before

    def due(self) -> bool:
        """Return whether a file is to be opened, after a look for new ones."""
        return self.number < self.order.end

    def wait(self, seconds: float) -> None:
        """Wait until another file may be due."""
        time.sleep(seconds)

    @property
    def last(self) -> bool:
        """Whether no file will follow the open one."""
        return self.finite and self.number + 1 >= self.order.end

    def open(self, position: Position | None) -> ByteStream:
        """Open the file that is due; SourceError where it cannot be read, or is not the one of the position."""
        if self.path == STANDARD_INPUT:
            if position is not None:
                raise SourceError(
                    f"standard input cannot be resumed at byte {position.offset:,}: start over with --fresh"
                )
            return StandardInput()
        return FileStream(open_file(Path(self.name)), position)

    def use_columns(self, names: Sequence[str]) -> None:
        """Compare the columns of the open file with those of the files before it; SourceError where they differ."""
        if self.alone:
            return
        known = self.order.columns
        if known is None:
            self.order = replace(self.order, columns=tuple(names))
            return
        lacks = [name for name in known if name not in set(names)]
        more = [name for name in names if name not in set(known)]
        if lacks or more:
            what = [f"it lacks {_shown(lacks)}"] if lacks else []
            what += [f"it also has {_shown(more)}"] if more else []
            raise SourceError(
                f"{self.name}: its columns are not those of the files before it, {' and '.join(what)}: give all files "
                "the same columns, or read it in another run"
            )
        if tuple(names) != known:
            self.order = replace(self.order, reordered=True)

    def handed_out(self, end: Position) -> None:
        """Note that records up to `end` were handed out: the first of new files tells where these begin."""
        if self._chosen:
            self.note_start(end.partition)
            self._chosen = False

    def finish(self, stream: ByteStream | None) -> None:
        """Leave the file that was read to its end."""
        if stream is not None:
            stream.close()
        self.number += 1

    def fault(self, error: SourceError) -> Fault | None:  # noqa: ARG002 - here the run ends
        """Return the fault of the rest of a file that cannot be read; None where that is an error of the source."""
        return None

    def lasting(self, position: Position, *, at_end: bool) -> Position:
        """Add the order of several files to a position in the open file."""
        place = FilePlace.of(position)
        if self.alone or place is None or place.order is not None:
            return position
        order = self.order_after if at_end else self.order
        return position._replace(known=replace(place, order=order, at_end=at_end).known)

    @property
    def order_after(self) -> FileOrder:
        """The order as it is once the open file is finished."""
        return self.order

    def file_of(self, partition: int) -> str | None:
        """Return the path of the file with a number; None where it is not among those chosen."""
        order = self.order
        return order.files[partition - order.first] if order.first <= partition < order.end else None

    def describe(self, kind: str) -> str:
        """Return a phrase such as ``"12 csv files data/*.csv"``."""
        if self.alone:
            return f"{kind} from standard input" if self.path == STANDARD_INPUT else f"{kind} file {self.path}"
        number = f"{self.order.end:,} " if self.order.end else ""
        return f"{number}{kind} files {self.path}"

    def saved(self, positions: Mapping[int, Position]) -> None:
        """Note that a checkpoint is durable; see `Source.saved`."""

    def close(self) -> None:
        """Release what is held."""


def _shown(names: Sequence[str]) -> str:
    return ", ".join(map(shown, names[:5])) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def listed(paths: Iterable[str]) -> str:
    """Return up to three paths, and how many more there are."""
    known = list(paths)
    return ", ".join(known[:3]) + (f" and {len(known) - 3} more" if len(known) > 3 else "")
