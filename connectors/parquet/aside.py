"""Setting aside a folder of parts: it is renamed, and not destroyed, when a run starts over."""

from __future__ import annotations

import shutil
from pathlib import Path

from streamkernel.connectors.files.existing import rename, renamed
from streamkernel.connectors.parquet.mark import PartsMark
from streamkernel.connectors.parquet.part_names import parts_of
from streamkernel.connectors.parquet.parts import fingerprint
from streamkernel.connectors.ports import SinkError

__all__ = ["find_old_name", "is_marked", "set_aside"]


def find_old_name(path: Path, mark: PartsMark | None, before: PartsMark | None) -> Path | None:
    """Return the name under which `set_aside` would keep a folder; None where it stays.

    Raises SinkError where that is the name of something else.
    """
    if not parts_of(path) or not (mark is None or is_marked(path, mark)):
        return None
    old = path.with_name(path.name + ".old")
    if old.exists() and not (before is not None and is_marked(old, before) and _holds_nothing_else(old)):
        raise SinkError(f"{path}: cannot be set aside as {old.name}, which is another one: move that away")
    return old


def set_aside(path: Path, mark: PartsMark | None, before: PartsMark | None) -> str:
    """Rename the folder that a mark knows, ``.old`` is appended; what was set aside before goes; say what was done."""
    old = find_old_name(path, mark, before)
    if old is None:
        return ""
    replaced = old.exists()
    if replaced:
        shutil.rmtree(old)
    rename(path, old)
    return renamed(path, old, replaced)


def is_marked(path: Path, mark: PartsMark) -> bool:
    """Return whether a folder is the one of a mark."""
    try:
        if mark.names(path):
            return True
        last = parts_of(path).get(mark.part - 1)
        return last is not None and fingerprint(last) == mark.last
    except OSError:
        return False


def _holds_nothing_else(folder: Path) -> bool:
    return len(list(folder.iterdir())) == len(parts_of(folder))
