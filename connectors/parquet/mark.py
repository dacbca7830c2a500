"""The parts of a folder, found without pyarrow, and their mark in a checkpoint: how many are complete."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path
from typing import Any, NamedTuple

from streamkernel.connectors.file_system import file_id
from streamkernel.connectors.ports import Mark, SinkError

__all__ = ["REMEDY", "PartsMark", "fingerprint", "part_name", "parts_of"]

REMEDY = "give another path to continue in a new folder, or start over with --fresh"

_PART = re.compile(r"part-(\d{8,})\.parquet", re.ASCII)
_FOOTER_BYTES = 4096


class PartsMark(NamedTuple):
    """The progress of a folder of parts. As JSON it is a mapping with these keys.

    Attributes
    ----------
    part
        The number of the next part: all before it are complete.
    rows
        How many of its rows are durable next to the folder.
    folder
        The folder's `file_id`; None if the system does not give one.
    last
        The `fingerprint` of the part before the next one; None before the first.
    columns
        The names and types of the columns.

    """

    part: int
    rows: int
    folder: list[int] | None
    last: list[Any] | None
    columns: str

    @classmethod
    def from_json(cls, path: Path, mark: Mark | None) -> PartsMark | None:
        """Return the mark of a checkpoint; raises `SinkError` for a mark of another output.

        Examples
        --------
        >>> mark = PartsMark(3, 10, [17, 5], [900, "cd"], "offset (int)")
        >>> PartsMark.from_json(Path("out"), mark._asdict()) == mark
        True

        """
        if mark is None:
            return None
        if isinstance(mark, dict) and mark.keys() == set(cls._fields):
            return cls(**mark)
        raise SinkError(f"{path}: its mark in the checkpoint is not from a folder of parts: {REMEDY}")

    def names(self, folder: Path) -> bool:
        """Whether this is a mark of the very folder; OSError if there is none."""
        return self.folder is not None and file_id(folder) == self.folder

    def fits(self, folder: Path) -> bool:
        """Whether this is a mark of a folder or of a copy, which has the last part."""
        try:
            return self.names(folder) or (self.last is not None and fingerprint(folder, self.part - 1) == self.last)
        except OSError:
            return False


def fingerprint(folder: Path, part: int) -> list[Any] | None:
    """Return the size of a part and the SHA-256 of its last bytes, Parquet's footer; None if it is not there."""
    try:
        with (folder / part_name(part)).open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _FOOTER_BYTES))
            return [size, hashlib.sha256(file.read()).hexdigest()]
    except OSError:
        return None


def part_name(number: int) -> str:
    """Return the name of a part.

    Examples
    --------
    >>> part_name(7)
    'part-00000007.parquet'

    """
    return f"part-{number:08d}.parquet"


def parts_of(folder: Path) -> dict[int, Path]:
    """Return the parts in a folder by their number; files with other names are not ours."""
    try:
        files = [Path(entry.path) for entry in os.scandir(folder) if entry.is_file(follow_symlinks=False)]
    except FileNotFoundError:
        return {}
    found = {int(match[1]): path for path in sorted(files) if (match := _PART.fullmatch(path.name))}
    return {number: path for number, path in sorted(found.items()) if path.name == part_name(number)}
