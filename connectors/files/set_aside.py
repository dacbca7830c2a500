"""Setting aside: an output file of an earlier run is renamed, and not destroyed, when a run starts over."""

from __future__ import annotations

import os
from pathlib import Path

from streamkernel.connectors.files.locking import lock
from streamkernel.connectors.files.mark import FileMark
from streamkernel.connectors.files.opening import is_special, open_existing
from streamkernel.connectors.os_reason import os_reason
from streamkernel.connectors.ports import Mark, SinkError


def set_aside(path: Path, mark: Mark | None, before: Mark | None) -> str:
    """Rename the file that a checkpoint knows, so that a new one is begun; one that it does not know stays.

    A name is all that changes, ``.old`` is appended: nothing is lost, but for what was set aside before. `mark` and
    `before`, and the phrase that it returns, are those of `Sink.set_aside`. Raises SinkError where the new name is that
    of another file, or the file is locked.
    """
    names = find_names(path, mark, before)
    if names is None:
        return ""
    path, old = names
    replaced = old.exists()
    rename(path, old)
    return renamed(path, old, replaced)


def rename(path: Path, old: Path) -> None:
    """Give what is set aside its new name; raise SinkError where it cannot have it."""
    try:
        path.rename(old)
    except OSError as error:
        raise SinkError(f"{path}: cannot be set aside as {old.name}: {os_reason(error)}: move it away") from None


def renamed(path: Path, old: Path, replaced: bool) -> str:
    """Return what was set aside, as a phrase."""
    return f"renamed {path} to {old.name}" + (" (removed: the one before)" if replaced else "")


def find_names(path: Path, mark: Mark | None, before: Mark | None) -> tuple[Path, Path] | None:
    """Return the file that `set_aside` would rename and its new name, changing nothing; None where it stays.

    Raises SinkError as `set_aside` does, as far as it can be known before.
    """
    path = Path(os.path.realpath(path))  # of a link, the file it leads to
    if is_special(path) or not path.exists() or not _is_marked(path, mark, locked=True):
        return None
    old = path.with_name(path.name + ".old")
    if old.exists() and not (before is not None and _is_marked(old, before)):
        raise SinkError(f"{path}: cannot be set aside as {old.name}, which is another file: move that one away")
    return path, old


def _is_marked(path: Path, mark: Mark | None, *, locked: bool = False) -> bool:
    """Tell whether a file is the one of a mark; without a mark, each is."""
    try:
        known = FileMark.from_json(path, mark)
        descriptor = open_existing(path, os.O_RDWR)
    except (OSError, SinkError):
        return False
    try:
        if locked:
            lock(descriptor, path)
        return known is None or (known.names(descriptor) and known.difference(descriptor) is None)
    finally:
        os.close(descriptor)
