"""Which files next to a log are earlier parts of it, and in which order.

Programs and logrotate rename ``data.csv`` to ``data.csv.1`` (and that to ``data.csv.2``) or to
``data.csv-20240131``, and may compress the result. Only these names are looked at: other files in the directory are
none of ours.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from streamkernel.connectors.files.bytes import SUFFIXES, File, PlainFile, open_file
from streamkernel.connectors.files.places import FilePlace, matches
from streamkernel.connectors.ports import Position, SourceError

# A rotation renames each part once; one that never rests is none.
_MOST_LOOKS = 100


class Part(NamedTuple):
    """A file that is, or once was, the log, as it was found: its length in bytes, and when it was modified in ns."""

    path: Path
    inode: int
    size: int
    modified: int

    @classmethod
    def at(cls, path: Path) -> Part | None:
        """Return the file at `path`, None where there is none."""
        try:
            status = os.stat(path)
        except OSError:
            return None
        regular = stat.S_ISREG(status.st_mode)
        return cls(path, status.st_ino, status.st_size, status.st_mtime_ns) if regular else None


def rotated(path: Path) -> list[Part]:
    """Return the earlier parts of the log at `path`, the oldest first.

    Where a part is there both plain and compressed (while it is being compressed), the plain one counts.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     log = Path(directory, "log")
    ...     for name in ("log", "log.1", "log.2", "log.2.gz", "log.10.zst", "log.old", "log.py"):
    ...         Path(directory, name).touch()
    ...     [part.path.name for part in rotated(log)]
    ['log.10.zst', 'log.2', 'log.1']

    """
    pattern = _pattern(path)
    parts: dict[tuple[int, int, str], Part] = {}
    try:
        # Reversed, so that the plain name, the shortest of its kind, is the last to be entered.
        names = sorted((entry.name for entry in path.absolute().parent.iterdir()), reverse=True)
    except OSError:
        return []
    for name in names:
        match = pattern.fullmatch(name)
        part = None if match is None else Part.at(path.with_name(name))
        if match is not None and part is not None:
            stamp = match[1]
            # The higher the number the older the part; the later the date the newer.
            age = (1, -int(stamp), "") if stamp.isdigit() and len(stamp) <= 4 else (0, 0, stamp)
            parts[age] = part
    return [parts[age] for age in sorted(parts)]


def is_part_name(path: Path, name: str) -> bool:
    """Return whether a file of that name next to the log at `path` would be taken for an earlier part of it.

    Examples
    --------
    >>> [is_part_name(Path("log"), name) for name in ("log.1", "log-20240131.gz", "log", "log.old")]
    [True, True, False, False]

    """
    return _pattern(path).fullmatch(name) is not None


def _pattern(path: Path) -> re.Pattern[str]:
    return re.compile(re.escape(path.name) + r"[.-](\d[\d._T:-]*?)(\.gz|\.zst)?")


def find_part(path: Path, position: Position, *, renamed: bool = False) -> File | None:
    """Open the earlier part of the log at `path` in which `position` was taken; None where there is none.

    Of several that began alike that is the one with its inode, else the newest; with `renamed` it must have the inode,
    and be no longer at `path`. In the midst of a rotation names move on, and what is to be opened by one may have the
    next one already: the search is repeated until no part was renamed, compressed or removed during it.
    """
    place = FilePlace.parse(position.stream)
    if place is None or (renamed and place.inode in (None, _inode(path))):
        return None
    for _ in range(_MOST_LOOKS):
        names = _names(path)
        parts = [part for part in reversed(rotated(path)) if not renamed or part.inode == place.inode]
        parts.sort(key=lambda part: part.inode != place.inode)
        found = next(filter(None, (open_if_it_holds(part.path, position) for part in parts)), None)
        if found is not None or _names(path) == names:
            return found
    return None


def _inode(path: Path) -> int | None:
    part = Part.at(path)
    return None if part is None else part.inode


def _names(path: Path) -> list[tuple[Path, int]]:
    here = Part.at(path)
    return [(part.path, part.inode) for part in ([] if here is None else [here]) + rotated(path)]


def open_if_it_holds(path: Path, position: Position) -> File | None:
    """Open a part where `position` was taken in it; None where not, or where it cannot be read."""
    try:
        file = open_file(path)
    except SourceError:
        return None
    try:
        if matches(file, position):
            return file
    except SourceError:
        pass
    file.close()
    return None


def successor(path: Path, finished: File, end: Position) -> Path:
    """Return the part of the log at `path` that follows the `finished` one, which was read to the position `end`.

    Most often that is `path` itself; an earlier part where the log was rotated more than once meanwhile.
    """
    parts = rotated(path)
    own = _own(parts, finished, end)
    # Where it was deleted, or moved out of sight, what was written to after it follows it.
    moment = finished.stat().st_mtime_ns
    later = parts[own[-1] + 1 :] if own else [part for part in parts if part.modified > moment]
    return later[0].path if later else path


def is_kept(path: Path, finished: File, end: Position) -> bool:
    """Return whether the `finished` part, which was read to the position `end`, is an earlier part of the log."""
    return bool(_own(rotated(path), finished, end))


def _own(parts: Sequence[Part], finished: File, end: Position) -> list[int]:
    """Return which of the parts are the finished one, or may be."""
    inode, moment = finished.stat().st_ino, finished.stat().st_mtime_ns
    own = [index for index, part in enumerate(parts) if part.inode == inode]
    if not own:
        # It was compressed, or copied: tools that do that keep the time.
        own = [index for index, part in enumerate(parts) if _is_copy(part, finished, end)]
        own = [index for index in own if parts[index].modified == moment] or own
    return own


def _is_copy(part: Part, finished: File, end: Position) -> bool:
    """Return whether `part` has the bytes that were read of `finished`, and no more."""
    if isinstance(finished, PlainFile) and part.path.suffix not in SUFFIXES and part.size != finished.size:
        return False
    copy = open_if_it_holds(part.path, end)
    if copy is None:
        return False
    try:
        return not copy.read_at(end.offset, 1)
    except SourceError:
        return False
    finally:
        copy.close()
