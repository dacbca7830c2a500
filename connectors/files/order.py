"""The order of the files of a source, as positions in checkpoints hold it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

_MARK = ";files="


class FinishedFile(NamedTuple):
    """A file that was read to its end: when it was modified, in ns since 1970, its path, and its size in bytes."""

    modified: int
    path: str
    size: int


@dataclass(frozen=True)
class FileOrder:
    """The files of a source in their order, as far as they are chosen.

    Parameters
    ----------
    files
        Their paths.
    first
        The number of the first of them; those before are finished.
    columns
        The names of the columns that the files have, in the order of the first file; None: there are none.
    reordered
        Whether a file had the columns in another order.
    finished
        Of a directory that is watched, the files that were finished last.
    watermark
        When the newest of the finished files was modified that are not known by name any more, and its path; None:
        all are.

    """

    files: tuple[str, ...] = ()
    first: int = 0
    columns: tuple[str, ...] | None = None
    reordered: bool = False
    finished: tuple[FinishedFile, ...] = ()
    watermark: tuple[int, str] | None = None

    @property
    def end(self) -> int:
        """The number after that of the last file."""
        return self.first + len(self.files)

    def path(self, number: int) -> str:
        """Return the path of the file with a number."""
        return self.files[number - self.first]

    def to_json(self) -> dict[str, Any]:
        """Return the order as JSON, without what has its default."""
        given: dict[str, Any] = {"first": self.first, "files": self.files}
        for name in ("columns", "reordered", "finished", "watermark"):
            if getattr(self, name):
                given[name] = getattr(self, name)
        return given

    @classmethod
    def from_json(cls, given: Any) -> Self:
        """Read what `to_json` gave; ValueError, TypeError or KeyError where it did not."""
        order = cls(
            tuple(given["files"]),
            given["first"],
            tuple(given["columns"]) if given.get("columns") else None,
            given.get("reordered", False),
            tuple(FinishedFile(*one) for one in given.get("finished", ())),
            tuple(given["watermark"]) if given.get("watermark") else None,
        )
        texts = [*order.files, *(order.columns or ()), *(one.path for one in order.finished)]
        numbers = [order.first, *(number for one in order.finished for number in (one.modified, one.size))]
        if order.watermark is not None:
            modified, path = order.watermark
            texts, numbers = [*texts, path], [*numbers, modified]
        if not all(type(one) is str for one in texts) or not all(type(one) is int for one in numbers):
            raise ValueError("not the order of files")
        return order


class FilesPlace(NamedTuple):
    """A place in a source of several files, as `Position.stream` in a checkpoint names it.

    Attributes
    ----------
    inner
        The place in its file, as one file names it; empty at the beginning, before anything was read.
    finished
        Whether the file was read to its end.
    order
        The files.

    Examples
    --------
    >>> place = FilesPlace("", False, FileOrder(("a.csv", "b.csv")))
    >>> str(place)
    ';files={"files": ["a.csv", "b.csv"], "first": 0}'
    >>> FilesPlace.parse(str(place)) == place, FilesPlace.parse("12:ab")
    (True, None)

    """

    inner: str
    finished: bool
    order: FileOrder

    @classmethod
    def parse(cls, stream: str) -> Self | None:
        """Read what `str` gives; None for the name of anything else."""
        inner, mark, text = stream.partition(_MARK)
        if not mark:
            return None
        try:
            given = json.loads(text)
            return cls(inner, bool(given.get("at_end", False)), FileOrder.from_json(given))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return None

    def __str__(self) -> str:
        given = self.order.to_json() | ({"at_end": True} if self.finished else {})
        return f"{self.inner}{_MARK}{json.dumps(given, sort_keys=True)}"
