"""The parts of a folder, found without pyarrow, and their mark in a checkpoint: how many are complete."""

from __future__ import annotations

import os
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from streamkernel.connectors.file_system import file_id, is_file_id
from streamkernel.connectors.ports import Mark, SinkError

__all__ = ["REMEDY", "PartsMark", "part_name", "parts_of"]

REMEDY = "give another path to continue in a new folder, or start over with --fresh"

_PART = re.compile(r"part-(\d{8,})\.parquet", re.ASCII)


@dataclass(frozen=True)
class PartsMark:
    """The progress of a folder of parts.

    Attributes
    ----------
    part
        The number of the next part: all before it are complete.
    rows
        How many of its rows are durable next to the folder.
    folder
        The folder's `file_id`; None if the system does not give one.
    last
        The size of the part before the next one, and the SHA-256 of its last 4,096 bytes; None before the first.
    columns
        The columns, as ``(name, type)``.

    """

    part: int
    rows: int
    folder: list[int] | None
    last: tuple[int, str] | None
    columns: tuple[tuple[str, str], ...]

    def names(self, folder: Path) -> bool:
        """Whether this is a mark of the very folder; OSError if there is none."""
        return self.folder is not None and file_id(folder) == self.folder

    def to_json(self) -> dict[str, Any]:
        """Return the mark as a checkpoint has it."""
        last = None if self.last is None else list(self.last)
        return {**asdict(self), "last": last, "columns": [list(column) for column in self.columns]}

    @classmethod
    def from_json(cls, path: Path, mark: Mark | None) -> PartsMark | None:
        """Return the mark of `to_json`; raises `SinkError` for any other value.

        Examples
        --------
        >>> mark = PartsMark(3, 10, [17, 5], (900, "cd"), (("offset", "int"),))
        >>> PartsMark.from_json(Path("out"), mark.to_json()) == mark
        True

        """
        if mark is None:
            return None
        try:
            given: dict[str, Any] = mark  # type: ignore[assignment]
            folder, last = given["folder"], given["last"]
            if not is_file_id(folder):
                raise ValueError(folder)
            return cls(
                _count(given["part"]),
                _count(given["rows"]),
                folder,
                None if last is None else (_count(last[0]), str(last[1])),
                tuple((str(name), str(kind)) for name, kind in given["columns"]),
            )
        except (LookupError, TypeError, ValueError):
            raise SinkError(f"{path}: its mark in the checkpoint is not from a folder of parts: {REMEDY}") from None


def _count(value: Any) -> int:
    if type(value) is not int or not 0 <= value < 2**64:
        raise ValueError(value)
    return value


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
        entries = list(os.scandir(folder))
    except FileNotFoundError:
        return {}
    found = {
        int(match[1]): Path(entry.path)
        for entry in entries
        if (match := _PART.fullmatch(entry.name)) and entry.is_file(follow_symlinks=False)
    }
    return {number: path for number, path in sorted(found.items()) if path.name == part_name(number)}
