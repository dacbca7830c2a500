"""The mark of a folder of parts in a checkpoint: which part comes next, and which of its rows are kept next to it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from streamkernel.connectors.file_system import file_id, is_file_id
from streamkernel.connectors.ports import Mark, SinkError

__all__ = ["REMEDY", "PartsMark"]

REMEDY = "give another path to continue in a new folder, or start over with --fresh"


@dataclass(frozen=True)
class PartsMark:
    """How far a folder of parts was written.

    Attributes
    ----------
    part
        The number of the next part: all before it are complete.
    rows, bytes
        How many rows of it are kept already, and in how many bytes.
    tail
        The SHA-256 of the last 4,096 of these bytes, in hexadecimal.
    folder
        Its `file_id`; None where the system does not tell.
    last
        The size of the part before the next one, and the SHA-256 of its last 4,096 bytes; None before the first.
    columns
        The columns, as ``[name, type]``.

    """

    part: int
    rows: int
    bytes: int
    tail: str
    folder: list[int] | None
    last: tuple[int, str] | None
    columns: tuple[tuple[str, str], ...]

    def names(self, folder: Path) -> bool:
        """Tell whether this is a mark of the very folder; OSError where there is none."""
        return self.folder is not None and file_id(folder) == self.folder

    def to_json(self) -> dict[str, Any]:
        """Return the mark as a checkpoint has it."""
        last = None if self.last is None else list(self.last)
        return {**asdict(self), "last": last, "columns": [list(column) for column in self.columns]}

    @classmethod
    def from_json(cls, path: Path, mark: Mark | None) -> PartsMark | None:
        """Return the mark that `to_json` returned; raises `SinkError` where it is none.

        Examples
        --------
        >>> mark = PartsMark(3, 10, 400, "ab", [17, 5], (900, "cd"), (("offset", "int"),))
        >>> PartsMark.from_json(Path("out"), mark.to_json()) == mark
        True

        """
        if mark is None:
            return None
        try:
            given: dict[str, Any] = mark  # type: ignore[assignment]
            last = given["last"]
            return cls(
                _count(given["part"]),
                _count(given["rows"]),
                _count(given["bytes"]),
                str(given["tail"]),
                _id(given["folder"]),
                None if last is None else (_count(last[0]), str(last[1])),
                tuple((str(name), str(kind)) for name, kind in given["columns"]),
            )
        except (LookupError, TypeError, ValueError):
            raise SinkError(f"{path}: its mark in the checkpoint is not from a folder of parts: {REMEDY}") from None


def _count(value: Any) -> int:
    if type(value) is not int or not 0 <= value < 2**64:
        raise ValueError(value)
    return value


def _id(value: Any) -> list[int] | None:
    if not is_file_id(value):
        raise ValueError(value)
    return None if value is None else list(value)
