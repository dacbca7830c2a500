"""Which files a list of paths and patterns names, and in which order."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Iterator, Sequence

from streamkernel.connectors.ports import SourceError

MOST_FILES = 10_000
"""The most files of one finite source: a checkpoint holds their names."""

_TEMPORARY = (".tmp", ".part")


def natural_key(name: str) -> tuple[list[str | int], str]:
    """Return the key of the natural order, in which digits in a name count as a number.

    Examples
    --------
    >>> sorted(["part-10.csv", "part-2.csv", "part-02.csv"], key=natural_key)
    ['part-02.csv', 'part-2.csv', 'part-10.csv']

    """
    pieces = re.split(r"([0-9]+)", name)
    return [int(piece) if place % 2 else piece for place, piece in enumerate(pieces)], name


def is_pattern(path: str) -> bool:
    """Return whether a path is a pattern, as a shell has them; a file of that very name makes it a plain path.

    Examples
    --------
    >>> is_pattern("data/*.csv"), is_pattern("data.csv")
    (True, False)

    """
    return any(character in path for character in "*?[") and not os.path.lexists(path)


def is_temporary(path: str) -> bool:
    """Return whether a name is one of a file that is still being written: hidden, or ending in .tmp or .part.

    Examples
    --------
    >>> [is_temporary(name) for name in ("data/.a.csv.Xy12", "a.csv.part", "a.csv.tmp", "a.csv")]
    [True, True, True, False]

    """
    name = os.path.basename(path)
    return name.startswith(".") or name.endswith(_TEMPORARY)


def matching(pattern: str) -> Iterator[str]:
    """Yield the paths of the regular files that match a pattern and have no temporary name, in no order."""
    for path in glob.iglob(pattern, recursive=True):
        if not is_temporary(path) and os.path.isfile(path):
            yield path


def expanded(paths: Sequence[str]) -> list[str]:
    """Return the files that paths and patterns name: in the order given, those of one pattern in natural order.

    A file that is named twice, however it is spelled, is there once.

    Raises
    ------
    SourceError
        Where a pattern matches no file, or there are too many files.

    """
    found: list[str] = []
    for path in paths:
        if not is_pattern(path):
            found.append(path)
            continue
        matches = sorted(matching(path), key=natural_key)
        if not matches:
            raise SourceError(f"{path}: no file matches: check the path, or set watch: true to wait for files")
        found += matches
    files = distinct(found)
    if len(files) > MOST_FILES:
        raise SourceError(
            f"{', '.join(paths[:3])}: {len(files):,} files, and a checkpoint holds the names of {MOST_FILES:,}: "
            "set watch: true, which forgets those that are finished, or join files"
        )
    return files


def distinct(paths: Iterable[str]) -> list[str]:
    """Return paths without those that name a file a second time.

    Examples
    --------
    >>> distinct(["a.csv", "./a.csv", "b/../a.csv", "b.csv"])
    ['a.csv', 'b.csv']

    """
    found: dict[str, str] = {}
    for path in paths:
        found.setdefault(os.path.abspath(path), path)
    return list(found.values())
