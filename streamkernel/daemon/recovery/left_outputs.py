"""Outputs that a run no longer writes to: what they hold after the checkpoint comes again, elsewhere."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from streamkernel.connectors.files.mark import FileMark
from streamkernel.connectors.parquet.mark import PartsMark, parts_of
from streamkernel.connectors.ports import SinkError

__all__ = ["is_marked", "tell_left"]

_log = logging.getLogger(__name__)


def tell_left(output: Mapping[str, Any]) -> None:
    """Warn of the lines after the checkpoint in a file or folder that is left: their records are learned again.

    Parameters
    ----------
    output
        What the checkpoint says about it.

    """
    path = Path(output.get("path", "-"))
    if parts := _parts_behind(path, output):
        behind, remedy = f"{len(parts)} parts", f"remove {', '.join(parts)}"
    elif n_bytes := _bytes_behind(path, output):
        behind, remedy = f"{n_bytes:,} bytes", f"cut it to {output['mark']['length']} bytes (truncate -s)"
    else:
        return
    _log.warning(
        "%s: is not an output any more, and has %s after the checkpoint. Their records come again: %s",
        *(path, behind, remedy),
    )


def is_marked(path: str | Path, output: Mapping[str, Any]) -> bool:
    """Return whether a file is the one that the mark of an output speaks of, or a copy of it."""
    try:
        mark = FileMark.from_json(Path(path), output.get("mark"))
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (SinkError, OSError):  # of a topic; or there is no such file, or none that can be read
        return False
    try:
        return mark is not None and mark.is_of(descriptor)
    except OSError:
        return False
    finally:
        os.close(descriptor)


def _bytes_behind(path: Path, output: Mapping[str, Any]) -> int:
    return path.stat().st_size - int(output["mark"]["length"]) if is_marked(path, output) else 0


def _parts_behind(path: Path, output: Mapping[str, Any]) -> list[str]:
    try:
        mark = PartsMark.from_json(path, output.get("mark"))
        if mark is None or not mark.names(path):
            return []
    except (SinkError, OSError):
        return []
    return [part.name for number, part in parts_of(path).items() if number >= mark.part]
