"""A directory, or a pattern, that is watched for files which arrive by rename."""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from streamkernel.connectors.files.changes import Changes
from streamkernel.connectors.files.listing import FileList, listed
from streamkernel.connectors.files.names import is_temporary, matching
from streamkernel.connectors.files.places import FileOrder, FinishedFile
from streamkernel.connectors.files.stream import ByteStream
from streamkernel.connectors.os_reason import os_reason
from streamkernel.connectors.ports import Fault, Position, SourceError

_log = logging.getLogger(__name__)

MOST_AT_ONCE = 1000
MOST_FINISHED = 1000


class WatchedFiles(FileList):
    """The files of a directory, each read once, as a whole; the list waits for more.

    A file must have its content when it gets its name, as by a rename; empty files, hidden ones and those that end in
    .tmp or .part are let be until then. A file without a record, such as a header alone, is read again once it changes.
    Those that are there together are read in the order in which they were modified, and by name where that is the same;
    the order is stored before the first of them is learned. Finished files may be removed once a checkpoint was made.

    The last 1,000 finished files are known by name. One that was modified before all of them counts as finished: where
    it comes later, it is not read, and a log line says so; of those that are there at a restart, the log says how many.
    A file that cannot be read is one record with a fault.

    Parameters
    ----------
    path
        The directory, or a pattern.

    """

    finite = False
    chooses_order = True
    pause = 0.2

    def __init__(self, path: str) -> None:
        super().__init__([path])
        self._changes: Changes | None = None
        self._reset()

    def _reset(self) -> None:
        # Files with a warning of their own; and files older than the watermark that were read, or there at the start.
        self._warned: set[str] = set()
        self._old: set[FinishedFile] = set()
        self._begun: FinishedFile | None = None
        self._order_before = self.order
        # Whether the open file gave a record; and the files that gave none, as they were then.
        self._some_records = False
        self._without_records: set[FinishedFile] = set()
        self._finished_now: list[str] = []

    def start(self, positions: Mapping[int, Position]) -> Position | None:
        """Begin, or continue in the order of an earlier run; see `FileList.start`."""
        self._reset()
        return super().start(positions)

    def _choose(self) -> FileOrder:
        if not os.path.isdir(self.path) and not any(character in self.path for character in "*?["):
            raise SourceError(
                f"{self.path}: is neither a directory nor a pattern: watch: true needs one of them. For a growing "
                "file, set follow: true"
            )
        return self._with_new(FileOrder())

    @property
    def unverified(self) -> Sequence[int]:
        """None: a file that cannot be read is a record."""
        return ()

    def _compared(self, before: FileOrder) -> FileOrder:
        """Take the files before the watermark that are there now as read: a checkpoint does not hold their names."""
        if before.watermark is not None:
            self._old = old = {found for found in self._found() if found[:2] <= before.watermark}
            if old:
                number = "1 file" if len(old) == 1 else f"{len(old):,} files"
                _log.info(
                    "%s: %s older than the last %s read, such as %s, %s there and count as read: touch a new one to "
                    "have it read",
                    *(self.path, number, f"{MOST_FINISHED:,}", max(old).path, "is" if len(old) == 1 else "are"),
                )
        return before

    def _with_new(self, order: FileOrder) -> FileOrder:
        """Return an order that continues with the new files that were not read, else with the same ones."""
        there = set(self._found())
        self._without_records &= there
        known = {one.path: one for one in order.finished}
        there -= self._without_records  # as they were
        changed = [found for found in there if known.get(found.path, found) != found]
        for found in changed:
            self._warn_once(found.path, "after it was read")
            # Known as it is now: else it would be a new file once it is forgotten as it was.
            known[found.path] = found
        if changed:
            order = replace(order, finished=tuple(sorted(known.values())))
        unknown = {found for found in there if found.path not in known}
        old = {found for found in unknown if order.watermark is not None and found[:2] <= order.watermark}
        self._report_late(old)
        new = sorted(unknown - old)[:MOST_AT_ONCE]
        return replace(order, files=tuple(one.path for one in new), first=order.end) if new else order

    def _report_late(self, old: set[FinishedFile]) -> None:
        """Log which of the old files there are new in the directory."""
        for late in old - self._old:
            _log.warning(
                "%s is late, older than the last %s files read, and is not read: touch it to have it read",
                *(late.path, f"{MOST_FINISHED:,}"),
            )
        self._old = old

    def _found(self) -> Iterator[FinishedFile]:
        try:
            if os.path.isdir(self.path):
                with os.scandir(self.path) as entries:
                    paths = [entry.path for entry in entries if not is_temporary(entry.name)]
            else:
                paths = list(matching(self.path))
        except OSError as error:
            raise SourceError(f"{self.path}: cannot be listed: {os_reason(error)}") from None
        for path in paths:
            if (found := _known(path)) is not None:
                yield found

    def _warn_once(self, path: str, when: str) -> None:
        if path in self._warned:
            return
        self._warned.add(path)
        _log.warning(
            "%s was written to %s: the late content is not read. Write files under another name and rename them; "
            "put late content into a new file (a renamed file is read again as a whole)",
            *(path, when),
        )

    def due(self) -> bool:
        """Return whether there is another file, after a look for new ones."""
        if super().due():
            return True
        order = self._with_new(self.order)
        if order.files is not self.order.files:
            self._use_new(order)
        self.order = order
        return super().due()

    def wait(self, seconds: float) -> None:
        """Wait until a file gets its name; see `FileList.wait`."""
        if self._changes is not None:
            self._changes.wait(seconds)
        else:  # what came before counts as no change: the caller looks once more
            directory = self.path if os.path.isdir(self.path) else os.path.dirname(self.path)
            self._changes = Changes(Path(directory))

    def close(self) -> None:
        """Stop to watch."""
        if self._changes is not None:
            self._changes.close()
            self._changes = None

    def open(self, position: Position | None) -> ByteStream:
        """Open the file that is due; see `FileList.open`."""
        self._begun = _known(self.name)
        self._order_before = self.order
        self._some_records = position is not None
        return super().open(position)

    def handed_out(self, end: Position) -> None:
        """Note that the open file gave records."""
        self._some_records = True
        super().handed_out(end)

    def fault(self, error: SourceError) -> Fault | None:
        """Return the fault of the rest of the open file."""
        remedy = "put the rest into a new file (a renamed file is read again as a whole)"
        remedy = remedy if self._some_records else "fix the file and rename it to have it read"
        _log.error("%s; the rest of it is a dead letter: %s", error, remedy)
        return Fault("corrupt", f"the file cannot be read: {error!s:.300}")

    def finish(self, stream: ByteStream | None) -> None:
        """Note that the open file is finished, where it gave records."""
        path, order, now = self.name, self.order_after, _known(self.name)
        super().finish(stream)
        if not self._some_records:
            # None of it can be learned twice. Its header may not be whole yet, and binds no other file.
            self._without_records.update([] if self._begun is None else [self._begun])
            self.order = self._order_before
            return
        # Those that are not known by name any more were read: they did not come late.
        known = {*self.order.finished, *([] if self._begun is None else [self._begun])}
        self._old.update(known - {*order.finished})
        self.order = order
        if now is not None and self._begun not in (None, now):
            self._warn_once(path, "while it was read")
        self._finished_now.append(path)

    @property
    def order_after(self) -> FileOrder:
        """The order with the open file among the finished ones; it keeps the newest of them."""
        if self._begun is None:
            return self.order
        order = self.order
        known = sorted({*order.finished, self._begun})
        passed = [one[:2] for one in known[:-MOST_FINISHED]] + ([order.watermark] if order.watermark else [])
        return replace(order, finished=tuple(known[-MOST_FINISHED:]), watermark=max(passed, default=None))

    def saved(self, positions: Mapping[int, Position]) -> None:
        """Log which files may be removed; see `Source.saved`."""
        if self._finished_now and positions and max(positions) >= self.number - 1:
            _log.info("%s: read and saved, may be removed", listed(self._finished_now))
            self._finished_now.clear()

    def describe(self, kind: str) -> str:
        """Return a phrase such as ``"csv files in incoming, watched"``."""
        return f"{kind} files {'in ' if os.path.isdir(self.path) else ''}{self.path}, watched"


def _known(path: str) -> FinishedFile | None:
    """Return what a regular file is known by; None where there is none, or nothing in it."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    # An empty file is yet to be filled.
    filled = stat.S_ISREG(status.st_mode) and status.st_size
    return FinishedFile(status.st_mtime_ns, path, status.st_size) if filled else None
