"""The names of part files in a folder. They are found without pyarrow, which an install for other outputs lacks."""

from __future__ import annotations

import os
import re
from pathlib import Path

__all__ = ["part_name", "parts_of"]

_PART = re.compile(r"part-(\d{8,})\.parquet", re.ASCII)


def part_name(number: int) -> str:
    """Return the name of a part.

    Examples
    --------
    >>> part_name(7)
    'part-00000007.parquet'

    """
    return f"part-{number:08d}.parquet"


def parts_of(folder: Path) -> dict[int, Path]:
    """Return the parts in a folder by their number; what has another name is not ours."""
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
