"""A directory, or a pattern, that is watched for files which arrive by rename."""

from __future__ import annotations

import logging
import os
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from streamkernel.connectors.files.names import is_temporary, matching
from streamkernel.connectors.files.places import FileOrder, FilePlace, FinishedFile
from streamkernel.connectors.files.several import SeveralFiles
from streamkernel.connectors.files.source import LineSource
from streamkernel.connectors.os_reason import os_reason
from streamkernel.connectors.ports import Fault, Position, Record, SourceError

_log = logging.getLogger(__name__)

MOST_AT_ONCE = 1000
MOST_FINISHED = 1000
# With more old files, to list the directory takes too long anyhow.
MOST_OLD = 100_000
_MOST_WARNED = 10_000
_LOOK_SECONDS = 0.2


class WatchedFiles(SeveralFiles):
    """Read each file of a directory once, as a whole, and wait for more.

    A file must have its content when it gets its name, as by a rename; empty files, hidden ones and those that end in
    .tmp or .part are let be until then. A file without a record, such as a header alone, is read again once it changes.
    Those that are there together are read in the order in which they were modified, and by name where that is the same;
    the order is stored before the first of them is learned. Finished files may be removed once a checkpoint was made.

    The last 1,000 finished files are known by name. One that was modified before all of them counts as finished: where
    it comes later, it is not read, and a log line says so; of those that are there at a restart, the log says how many.
    A file that cannot be read is one record with a fault.

    Parameters
    ----------
    make
        Makes the source of one file of its path.
    path
        The directory, or a pattern.

    """

    def __init__(self, make: Callable[[str], LineSource], path: str) -> None:
        self._path = path
        super().__init__(make, [path])

    def _reset(self) -> None:
        super()._reset()
        # Files with a warning of their own; and files older than the watermark that were read, or there at the start.
        self._warned: set[str] = set()
        self._old: set[FinishedFile] | None = set()
        self._begun: FinishedFile | None = None
        self._order_before = self._order
        # Whether the open file gave a record; and the files that gave none, as they were then.
        self._some_records = False
        self._without_records: set[FinishedFile] = set()
        self._finished_now: list[str] = []

    def _choose(self) -> FileOrder:
        if not os.path.isdir(self._path) and not any(character in self._path for character in "*?["):
            raise SourceError(
                f"{self._path}: is neither a directory nor a pattern: watch: true needs one of them. For a growing "
                "file, set follow: true"
            )
        return self._with_new(FileOrder())

    def _compared(self, before: FileOrder) -> FileOrder:
        """Take the files before the watermark that are there now as read: a checkpoint does not hold their names."""
        if before.watermark is None:
            return before
        old = {found for found in self._found() if found[:2] <= before.watermark}
        self._old = old
        if old:
            number = "1 file" if len(old) == 1 else f"{len(old):,} files"
            _log.info(
                "%s: %s older than the last %s read, such as %s, %s there and count as read: touch a new one to "
                "have it read",
                *(self._path, number, f"{MOST_FINISHED:,}", max(old).path, "is" if len(old) == 1 else "are"),
            )
        return before

    def _with_new(self, order: FileOrder) -> FileOrder:
        """Return an order that continues with the new files that were not read, else with the same ones."""
        known = {one.path: one for one in order.finished}
        new: list[FinishedFile] = []
        old: list[FinishedFile] = []
        there = list(self._found())
        self._without_records.intersection_update(there)
        for found in there:
            finished = known.get(found.path)
            if found in self._without_records:
                continue  # as it was
            if finished is not None:
                if finished != found:
                    self._warn_once(found.path, "after it was read")
                    # Known as it is now: else it would be a new file once it is forgotten as it was.
                    others = tuple(one for one in order.finished if one != finished)
                    order = replace(order, finished=tuple(sorted((*others, found))))
            elif order.watermark is not None and found[:2] <= order.watermark:
                old.append(found)
            else:
                new.append(found)
        self._report_late(old)
        if not new:
            return order
        files = tuple(one.path for one in sorted(new)[:MOST_AT_ONCE])
        return replace(order, files=files, first=order.end)

    def _report_late(self, old: list[FinishedFile]) -> None:
        """Log which of the old files there are new in the directory; give up where there are too many."""
        if self._old is None:
            return
        if len(old) > MOST_OLD:
            self._old = None
            _log.warning(
                "%s: more than %s files are older than the remembered names: late files among them are no longer "
                "reported. Move finished files away, which also makes listing faster",
                *(self._path, f"{MOST_OLD:,}"),
            )
            return
        for late in set(old) - self._old:
            _log.warning(
                "%s is late, older than the last %s files read, and is not read: touch it to have it read",
                *(late.path, f"{MOST_FINISHED:,}"),
            )
        self._old.update(old)
        if len(self._old) > MOST_OLD:
            self._old.intersection_update(old)

    def _found(self) -> Iterator[FinishedFile]:
        try:
            if os.path.isdir(self._path):
                with os.scandir(self._path) as entries:
                    paths = [entry.path for entry in entries if not is_temporary(entry.name)]
            else:
                paths = list(matching(self._path))
        except OSError as error:
            raise SourceError(f"{self._path}: cannot be listed: {os_reason(error)}") from None
        for path in paths:
            if (found := _known(path)) is not None:
                yield found

    def _warn_once(self, path: str, when: str) -> None:
        if path in self._warned:
            return
        if len(self._warned) >= _MOST_WARNED:
            self._warned.clear()
        self._warned.add(path)
        _log.warning(
            "%s was written to %s: the late content is not read. Write files under another name and rename them; "
            "put late content into a new file (a renamed file is read again as a whole)",
            *(path, when),
        )

    def poll(self, max_records: int, timeout: float) -> list[Record]:
        """Hand out the next records; see `Source.poll`."""
        deadline = time.monotonic() + timeout
        while True:
            try:
                if records := super().poll(max_records, timeout):
                    return records
            except SourceError as error:
                return [self._unreadable(error)]
            order = self._with_new(self._order)
            if order.files is not self._order.files:
                self._use_new(order)
                continue
            self._order = order
            left = deadline - time.monotonic()
            if left <= 0:
                return []
            time.sleep(min(_LOOK_SECONDS, left))

    def _begin(self, position: Position | None = None) -> None:
        self._begun = _known(self._order.path(self._number))
        self._order_before = self._order
        self._some_records = position is not None
        super()._begin(position)

    def _handed_out(self, end: Position) -> None:
        self._some_records = True
        super()._handed_out(end)

    def _unreadable(self, error: SourceError) -> Record:
        """Return the record of a file that cannot be read, or of the rest of one."""
        path = self._order.path(self._number)
        stream, _, offset = self._end or Position("", self._number, 0)
        start = Position(stream, self._number, offset)
        remedy = "put the rest into a new file (a renamed file is read again as a whole)"
        remedy = remedy if self._some_records else "fix the file and rename it to have it read"
        _log.error("%s; the rest of it is a dead letter: %s", error, remedy)
        self._handed_out(start)
        self._finish()
        place = FilePlace.parse(stream) or FilePlace()
        end = start._replace(stream=str(place._replace(order=self._order, at_end=True)))
        self._end = None
        fault = Fault("corrupt", f"the file cannot be read: {error!s:.300}")
        return Record({}, None, start, end, os.fsencode(path), fault)

    def _finish(self) -> None:
        path = self._order.path(self._number)
        order, now = self._order_behind, _known(path)
        super()._finish()
        if not self._some_records:
            # None of it can be learned twice. Its header may not be whole yet, and binds no other file.
            self._without_records.update([] if self._begun is None else [self._begun])
            self._order = self._order_before
            return
        if self._old is not None:
            # Those that are not known by name any more were read: they did not come late.
            self._old.update(
                {*self._order.finished, *([] if self._begun is None else [self._begun])} - {*order.finished}
            )
        self._order = order
        if now is not None and self._begun not in (None, now):
            self._warn_once(path, "while it was read")
        self._finished_now.append(path)

    @property
    def _order_behind(self) -> FileOrder:
        return self._order if self._begun is None else _with_finished(self._order, self._begun)

    def saved(self, positions: Mapping[int, Position]) -> None:
        """Tell which files may be removed; see `Source.saved`."""
        if self._finished_now and positions and max(positions) >= self._number - 1:
            names = ", ".join(self._finished_now[:3])
            more = f" and {len(self._finished_now) - 3} more" if len(self._finished_now) > 3 else ""
            _log.info("%s%s: read and saved, may be removed", names, more)
            self._finished_now.clear()

    @property
    def chooses_order(self) -> bool:
        """A later run might find other files first."""
        return True

    @property
    def exhausted(self) -> bool:
        """Never: more may come."""
        return False

    def describe(self) -> str:
        """Return a phrase such as ``"csv files in incoming, watched"``."""
        return f"{self._kind} files {'in ' if os.path.isdir(self._path) else ''}{self._path}, watched"


def _known(path: str) -> FinishedFile | None:
    """Return what a regular file is known by; None where there is none, or nothing in it."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    # An empty file is yet to be filled.
    filled = stat.S_ISREG(status.st_mode) and status.st_size
    return FinishedFile(status.st_mtime_ns, path, status.st_size) if filled else None


def _with_finished(order: FileOrder, file: FinishedFile) -> FileOrder:
    """Return an order with one more finished file, and with as few of them as are kept."""
    known = sorted({*order.finished, file})
    passed = [one[:2] for one in known[:-MOST_FINISHED]] + ([order.watermark] if order.watermark else [])
    return replace(order, finished=tuple(known[-MOST_FINISHED:]), watermark=max(passed, default=None))
