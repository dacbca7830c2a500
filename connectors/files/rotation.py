"""Which files beside a log are earlier parts of it, and in which order.

Programs and logrotate rename ``data.csv`` to ``data.csv.1`` (and that to ``data.csv.2``) or to
``data.csv-20240131``, and may compress the result. Only these names are looked at: other files in the directory are
none of ours.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

from connectors.files.bytes import File, PlainFile
from connectors.files.compressed import SUFFIXES, open_file
from connectors.files.identity import FilePlace
from connectors.files.resuming import matches
from connectors.ports import Position, SourceError

# A rotation renames each part once; one that never rests is none.
_MOST_LOOKS = 100


def rotated(path: Path) -> list[Path]:
    """Return the earlier parts of the log at `path`, the oldest first.

    Where a part is there both plain and compressed (while it is being compressed), the plain one counts.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     log = Path(directory, "log")
    ...     for name in ("log", "log.1", "log.2", "log.2.gz", "log.10.zst", "log.old", "log.py"):
    ...         Path(directory, name).touch()
    ...     [part.name for part in rotated(log)]
    ['log.10.zst', 'log.2', 'log.1']

    """
    pattern = _pattern(path)
    parts: dict[tuple[int, int, str], Path] = {}
    try:
        # Reversed, so that the plain name, the shortest of its kind, is the last to be entered.
        names = sorted((entry.name for entry in path.absolute().parent.iterdir()), reverse=True)
    except OSError:
        return []
    for name in names:
        match = pattern.fullmatch(name)
        if match is None or not path.with_name(name).is_file():
            continue
        stamp = match[1]
        # The higher the number the older the part; the later the date the newer.
        age = (1, -int(stamp), "") if stamp.isdigit() and len(stamp) <= 4 else (0, 0, stamp)
        parts[age] = path.with_name(name)
    return [parts[age] for age in sorted(parts)]


def is_part_name(path: Path, name: str) -> bool:
    """Tell whether a file of that name beside the log at `path` would be taken for an earlier part of it.

    Examples
    --------
    >>> [is_part_name(Path("log"), name) for name in ("log.1", "log-20240131.gz", "log", "log.old")]
    [True, True, False, False]

    """
    return _pattern(path).fullmatch(name) is not None


def _pattern(path: Path) -> re.Pattern[str]:
    return re.compile(re.escape(path.name) + r"[.-](\d[\d._T:-]*?)(\.gz|\.zst)?")


def find_part(path: Path, position: Position) -> File | None:
    """Open the earlier part of the log at `path` in which `position` was taken; None where there is none.

    Of several that began alike that is the one with its inode, else the newest.
    """
    place = FilePlace.parse(position.stream)

    def look() -> File | None:
        parts = list(reversed(rotated(path)))
        if place is not None:
            parts.sort(key=lambda part: _inode(part) != place.inode)
        return _first_that_holds(parts, position)

    return _found_at_rest(path, look)


def find_renamed(path: Path, position: Position) -> File | None:
    """Open the file of `position` where it is an earlier part of the log by now, and not at `path` any more."""
    place = FilePlace.parse(position.stream)
    if place is None or place.inode in (None, _inode(path)):
        return None

    def look() -> File | None:
        return _first_that_holds([part for part in rotated(path) if _inode(part) == place.inode], position)

    return _found_at_rest(path, look)


def _found_at_rest(path: Path, look: Callable[[], File | None]) -> File | None:
    """Look for a part until it is found, or no part was renamed, compressed or removed during the search.

    In the midst of a rotation names move on: what is to be opened by one may have the next one already.
    """
    found = None
    for _ in range(_MOST_LOOKS):
        names = _names(path)
        found = look()
        if found is not None or _names(path) == names:
            break
    return found


def _names(path: Path) -> list[tuple[Path, int]]:
    return [(part, _inode(part)) for part in (path, *rotated(path))]


def _first_that_holds(parts: Sequence[Path], position: Position) -> File | None:
    return next((file for part in parts if (file := open_if_it_holds(part, position)) is not None), None)


def open_if_it_holds(part: Path, position: Position) -> File | None:
    """Open a part where `position` was taken in it; None where not, or where it cannot be read."""
    try:
        file = open_file(part)
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
    """Return the part of the log at `path` that follows one that was read to its end.

    Parameters
    ----------
    path
        The log.
    finished
        The part, whatever its name is now.
    end
        The position at its end.

    Returns
    -------
    Path
        Most often `path` itself; an earlier part where the log was rotated more than once meanwhile.

    """
    parts = rotated(path)
    inode, moment = finished.stat().st_ino, finished.stat().st_mtime_ns
    own = [index for index, part in enumerate(parts) if _inode(part) == inode]
    if not own:
        # It was compressed, or copied: tools that do that keep the time.
        own = [index for index, part in enumerate(parts) if _is_copy(part, finished, end)]
        own = [index for index in own if _modified(parts[index]) == moment] or own
    # Where it was deleted, or moved out of sight, what was written to after it follows it.
    later = parts[own[-1] + 1 :] if own else [part for part in parts if _modified(part) > moment]
    return later[0] if later else path


def _modified(part: Path) -> int:
    try:
        return part.stat().st_mtime_ns
    except OSError:
        return -1


def _inode(part: Path) -> int:
    try:
        return part.stat().st_ino
    except OSError:
        return -1


def _is_copy(part: Path, finished: File, end: Position) -> bool:
    """Tell whether `part` holds what was read of `finished`, and no more."""
    if isinstance(finished, PlainFile) and _plain_size(part) not in (None, finished.size):
        return False
    copy = open_if_it_holds(part, end)
    if copy is None:
        return False
    try:
        return not copy.read_at(end.offset, 1)
    except SourceError:
        return False
    finally:
        copy.close()


def _plain_size(part: Path) -> int | None:
    """Return the length of a part that is not compressed."""
    try:
        return None if part.suffix in SUFFIXES else part.stat().st_size
    except OSError:
        return None
