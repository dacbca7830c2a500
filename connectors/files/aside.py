"""An output file of an earlier run is put out of the way, and not destroyed, when a run begins anew."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from connectors.files.compressed import SUFFIXES
from connectors.files.locking import lock
from connectors.files.mark import FileMark
from connectors.files.opening import is_special
from connectors.ports import Mark, SinkError

__all__ = ["find_place", "set_aside"]

_OLD = ".old"


def set_aside(path: Path, mark: Mark | None, before: Mark | None) -> None:
    """Rename the file that a checkpoint knows, so that a new one is begun; one that it does not know stays.

    A name is all that changes: nothing is lost, but for what was set aside before.

    Parameters
    ----------
    path
        The file; it gets ``.old`` appended.
    mark
        What the checkpoint says of it; None where that cannot be read any more.
    before
        What the checkpoint set aside before that one said of it: the file set aside with that one is replaced.

    Raises
    ------
    SinkError
        When the new name is that of another file, or the file is locked.

    """
    old = find_place(path, mark, before)
    if old is None:
        return
    path = old.with_name(old.name.removesuffix(_OLD))
    try:
        path.rename(old)
    except OSError as error:
        raise SinkError(f"{path}: cannot be set aside as {old.name}: {error.strerror}: move it away") from None


def find_place(path: Path, mark: Mark | None, before: Mark | None) -> Path | None:
    """Give the name under which `set_aside` would put a file, changing nothing; None where it stays.

    Raises
    ------
    SinkError
        As `set_aside`, as far as it can be known before.

    """
    path = Path(os.path.realpath(path))  # of a link, the file it leads to
    if is_special(path) or not path.exists() or not _is_marked(path, mark, locked=True):
        return None
    old = path.with_name(path.name + _OLD)
    if old.exists() and not (before is not None and _is_marked(old, before)):
        raise SinkError(f"{path}: cannot be set aside as {old.name}, which is another file: move that one away")
    return old


def _is_marked(path: Path, mark: Mark | None, *, locked: bool = False) -> bool:
    """Say whether a file is the one of a mark; without a mark, each is."""
    try:
        known = None if mark is None else FileMark.from_json(path, mark)
        descriptor = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, SinkError):
        return False
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return False
        if locked:
            lock(descriptor, path)
        if known is None:
            return True
        return known.names(descriptor) and known.difference(descriptor, text=path.suffix not in SUFFIXES) is None
    finally:
        os.close(descriptor)
