"""Which files next to a log are earlier parts of it, and in which order.

Programs and logrotate rename ``data.csv`` to ``data.csv.1`` (and that to ``data.csv.2``) or to
``data.csv-20240131``, and may compress the result. Only these names are looked at: other files in the directory are
none of ours.
"""

from __future__ import annotations

import os
import re
import stat
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from streamkernel.connectors.files.bytes import SUFFIXES, File, open_file
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
        with suppress(OSError):
            status = os.stat(path)
            if stat.S_ISREG(status.st_mode):
                return cls(path, status.st_ino, status.st_size, status.st_mtime_ns)
        return None


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
    parts: dict[tuple[int, int, str], Part] = {}
    try:
        # Reversed, so that the plain name, the shortest of its kind, is the last to be entered.
        names = sorted(os.listdir(path.absolute().parent), reverse=True)
    except OSError:
        return []
    for name in names:
        if (match := _part_name(path, name)) and (part := Part.at(path.with_name(name))):
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
    return _part_name(path, name) is not None


def _part_name(path: Path, name: str) -> re.Match[str] | None:
    return re.fullmatch(re.escape(path.name) + r"[.-](\d[\d._T:-]*?)(\.gz|\.zst)?", name)


def find_part(path: Path, position: Position, *, renamed: bool = False) -> File | None:
    """Open the earlier part of the log at `path` in which `position` was taken; None where there is none.

    Of several that began alike that is the one with its inode, else the newest; with `renamed` it must have the inode,
    and be no longer at `path`. In the midst of a rotation names move on, and what is to be opened by one may have the
    next one already: the search is repeated until no part was renamed, compressed or removed during it.
    """
    place = FilePlace.of(position)
    here = Part.at(path)
    if place is None or (renamed and place.inode in (None, here and here.inode)):
        return None
    for _ in range(_MOST_LOOKS):
        names = _names(path)
        parts = [part for part in reversed(rotated(path)) if not renamed or part.inode == place.inode]
        parts.sort(key=lambda part: part.inode != place.inode)
        found = next(filter(None, (_open_if_it_holds(part.path, position) for part in parts)), None)
        if found is not None or _names(path) == names:
            return found
    return None


def _names(path: Path) -> list[tuple[Path, int]]:
    return [part[:2] for part in (Part.at(path), *rotated(path)) if part is not None]


def _open_if_it_holds(path: Path, position: Position) -> File | None:
    """Open a part where `position` was taken in it; None where not, or where it cannot be read."""
    with suppress(SourceError):
        file = open_file(path)
        with suppress(SourceError):
            if matches(file, position):
                return file
        file.close()
    return None


def successor(path: Path, finished: File, end: Position) -> tuple[Path, bool]:
    """Return what follows the `finished` part of the log at `path`, and whether that part is still there.

    The part was read to the position `end`. Most often `path` itself follows it; an earlier part where the log was
    rotated more than once meanwhile.
    """
    parts = rotated(path)
    status = finished.stat()
    own = [index for index, part in enumerate(parts) if part.inode == status.st_ino]
    if not own:
        # It was compressed, or copied: tools that do that keep the time.
        own = [index for index, part in enumerate(parts) if _is_copy(part, finished, end)]
        own = [index for index in own if parts[index].modified == status.st_mtime_ns] or own
    # Where it was deleted, or moved out of sight, what was written to after it follows it.
    later = parts[own[-1] + 1 :] if own else [part for part in parts if part.modified > status.st_mtime_ns]
    return (later[0].path if later else path), bool(own)


def _is_copy(part: Part, finished: File, end: Position) -> bool:
    """Return whether `part` has the bytes that were read of `finished`, and no more."""
    if finished.plain and part.path.suffix not in SUFFIXES and part.size != finished.size:
        return False
    copy = _open_if_it_holds(part.path, end)
    if copy is None:
        return False
    try:
        return not copy.read(end.offset)
    except SourceError:
        return False
    finally:
        copy.close()
