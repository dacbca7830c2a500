"""The ids of the last records of a journal, by which a repeat is known, and their digests, also after a restart."""

from __future__ import annotations

import os
from collections import OrderedDict, deque
from collections.abc import Mapping
from pathlib import Path

import orjson

from streamkernel.connectors.durable import sync_folder
from streamkernel.connectors.file_system import open_regular
from streamkernel.connectors.journal.layout import Segment

__all__ = ["RecentIds"]


class RecentIds:
    """The last ids of a journal with the digests of their records, at least so many of them, as far as there were.

    Those of the segment that is being written are in its lines; of a finished one they are in a file of their own, for
    whoever reads the journal deletes the segment.

    Parameters
    ----------
    most
        How many are remembered in memory.

    Examples
    --------
    >>> ids = RecentIds(2)
    >>> ids.add({"a": "01", "b": "02", "c": "03"})
    >>> [ids.digest(one) for one in ("a", "b", "c")]
    [None, '02', '03']

    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._ids: OrderedDict[str, str] = OrderedDict()
        self._finished: deque[tuple[Path, int]] = deque()  # files of ids, the oldest first, and how many each has

    def digest(self, one: str) -> str | None:
        """Return the digest of the record with an id; None where there is none among the last."""
        return self._ids.get(one)

    def __len__(self) -> int:
        return len(self._ids)

    def add(self, ids: Mapping[str, str]) -> None:
        """Remember ids with their digests, the newest last, in the place of the oldest."""
        self._ids.update(ids)
        while len(self._ids) > self._most:
            self._ids.popitem(last=False)

    def load(self, folder: Path, active: Segment) -> None:
        """Remember the ids in the files of all segments before the active one."""
        for path in sorted(folder.glob("*.ids")):
            if path != active.ids:
                ids = dict(orjson.loads(line) for line in path.read_bytes().splitlines())
                self._finished.append((path, len(ids)))
                self.add(ids)

    def finish(self, segment: Segment, ids: Mapping[str, str]) -> None:
        """Write the ids of a segment that ends here into its file, durably, and remove files that hold old ones only.

        Raises
        ------
        OSError
            Where it cannot be written; it may be tried again.

        """
        aside = segment.ids.with_suffix(".tmp")
        descriptor = open_regular(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        with os.fdopen(descriptor, "wb") as file:
            file.writelines(orjson.dumps(one, option=orjson.OPT_APPEND_NEWLINE) for one in ids.items())
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
