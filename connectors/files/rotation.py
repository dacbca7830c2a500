"""Which files beside a log are earlier parts of it, and in which order.

Programs and logrotate rename ``data.csv`` to ``data.csv.1`` (and that to ``data.csv.2``) or to
``data.csv-20240131``, and may compress the result. Only these names are looked at: other files in the directory are
none of ours.
"""

from __future__ import annotations

import re
from pathlib import Path

from connectors.files.bytes import IDENTITY_BYTES, File, PlainFile
from connectors.files.compressed import open_file
from connectors.ports import Position, SourceError


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
    pattern = re.compile(re.escape(path.name) + r"[.-](\d[\d._T:-]*?)(\.gz|\.zst)?")
    parts: dict[tuple[int, int, str], Path] = {}
    try:
        # Reversed, so that the plain name, the shortest of its kind, is the last to be entered.
        names = sorted((entry.name for entry in path.absolute().parent.iterdir()), reverse=True)
    except OSError:
        return []
    for name in names:
        match = pattern.fullmatch(name)
        if match is None:
            continue
        stamp = match[1]
        # The higher the number the older the part; the later the date the newer.
        age = (1, -int(stamp), "") if stamp.isdigit() and len(stamp) <= 4 else (0, 0, stamp)
        parts[age] = path.with_name(name)
    return [parts[age] for age in sorted(parts)]


def find_part(path: Path, position: Position) -> File | None:
    """Open the newest earlier part of the log at `path` in which `position` was taken; None where there is none."""
    for part in reversed(rotated(path)):
        try:
            file = open_file(part)
        except SourceError:
            continue
        try:
            if file.matches(position):
                return file
        except SourceError:
            pass
        file.close()
    return None


def successor(path: Path, finished: File, beginning: bytes) -> Path:
    """Return the part of the log at `path` that follows one that was read to its end.

    Parameters
    ----------
    path
        The log.
    finished
        The part, whatever its name is now.
    beginning
        Its first bytes, 4096 of them or the whole of it.

    Returns
    -------
    Path
        Most often `path` itself; an earlier part where the log was rotated more than once meanwhile.

    """
    parts = rotated(path)
    own = [index for index, part in enumerate(parts) if _same(part, finished, beginning)]
    if own:
        later = parts[own[-1] + 1 :]
    else:
        # It was deleted, or moved out of sight: what was written to after it follows it.
        moment = finished.stat().st_mtime_ns
        later = [part for part in parts if _modified(part) > moment]
    return later[0] if later else path


def _modified(part: Path) -> int:
    try:
        return part.stat().st_mtime_ns
    except OSError:
        return -1


def _same(part: Path, finished: File, beginning: bytes) -> bool:
    """Tell whether `part` is `finished` under another name, or a copy of it."""
    try:
        candidate = open_file(part)
    except SourceError:
        return False
    try:
        own = finished.stat()
        status = candidate.stat()
        if (status.st_dev, status.st_ino) == (own.st_dev, own.st_ino):
            return True
        if isinstance(candidate, PlainFile) and isinstance(finished, PlainFile) and candidate.size != finished.size:
            return False
        return candidate.beginning(IDENTITY_BYTES) == beginning
    finally:
        candidate.close()
