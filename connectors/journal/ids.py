"""The ids of the last records of a journal, by which a repeat is known, also after a restart."""

from __future__ import annotations

import os
from collections import OrderedDict, deque
from collections.abc import Iterable
from pathlib import Path

import orjson

from connectors.durable import sync_folder
from connectors.journal.layout import Segment
from connectors.regular import open_regular

__all__ = ["RecentIds"]


class RecentIds:
    """The last ids of a journal, at least so many of them, as far as there were.

    Those of the segment that is being written are in its lines; of a finished one they are in a file of their own, for
    whoever reads the journal deletes the segment.

    Parameters
    ----------
    most
        How many are remembered in memory.

    Examples
    --------
    >>> ids = RecentIds(2)
    >>> ids.add(["a", "b", "c"])
    >>> ["a" in ids, "b" in ids, "c" in ids]
    [False, True, True]

    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._ids: OrderedDict[str, None] = OrderedDict()
        self._finished: deque[tuple[Path, int]] = deque()  # files of ids, the oldest first, and how many each has

    def __contains__(self, one: str) -> bool:
        return one in self._ids

    def __len__(self) -> int:
        return len(self._ids)

    def add(self, ids: Iterable[str]) -> None:
        """Remember ids, the newest last, in the place of the oldest."""
        self._ids.update(dict.fromkeys(ids))
        while len(self._ids) > self._most:
            self._ids.popitem(last=False)

    def load(self, folder: Path, active: Segment) -> None:
        """Remember the ids in the files of all segments before the active one."""
        for path in sorted(folder.glob("*.ids")):
            if path != active.ids:
                ids = [orjson.loads(line) for line in path.read_bytes().splitlines()]
                self._finished.append((path, len(ids)))
                self.add(ids)

    def finish(self, segment: Segment, ids: list[str]) -> None:
        """Write the ids of a segment that ends here into its file, durably, and remove files that hold old ones only.

        Raises
        ------
        OSError
            Where it cannot be written; it may be tried again.

        """
        aside = segment.ids.with_suffix(".tmp")
        descriptor = open_regular(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        with os.fdopen(descriptor, "wb") as file:
            file.writelines(orjson.dumps(one, option=orjson.OPT_APPEND_NEWLINE) for one in ids)
            file.flush()
            os.fsync(descriptor)
        aside.rename(segment.ids)
        sync_folder(segment.path.parent)
        if not self._finished or self._finished[-1][0] != segment.ids:  # else what came after it failed the last time
            self._finished.append((segment.ids, len(ids)))
        newer = sum(count for _, count in self._finished)
        while newer - self._finished[0][1] >= self._most:
            path, count = self._finished.popleft()
            newer -= count
            path.unlink(missing_ok=True)
