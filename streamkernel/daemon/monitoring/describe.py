"""The description of checkpoints, without loading the model."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from streamkernel.daemon.base.errors import CheckpointError
from streamkernel.daemon.checkpoints.file import Checkpoint, read
from streamkernel.daemon.checkpoints.reader import is_gone, until_listed
from streamkernel.daemon.checkpoints.store import checkpoint_files
from streamkernel.daemon.components.group_mode import partition_directories
from streamkernel.daemon.run_state.header import check_header

__all__ = ["describe"]


def describe(path: Path) -> dict[str, Any]:
    """Describe a checkpoint file, or the newest valid one of a directory, or of each partition's in group mode.

    Nothing is written, and no model loaded.

    Raises
    ------
    CheckpointError
        Where there is none, or none is valid.

    """
    if not path.is_dir():
        return _about(path, read(path))
    return until_listed(lambda: _describe_directory(path), path)


def _describe_directory(path: Path) -> dict[str, Any]:
    files = checkpoint_files(path)
    begun = {one: inner for one, inner in partition_directories(path).items() if checkpoint_files(inner)}
    if begun and not files:
        return {"directory": str(path), "partitions": {str(one): describe(inner) for one, inner in begun.items()}}
    if not files:
        raise CheckpointError(f"{path}: holds no checkpoint")
    invalid: list[str] = []
    for file in reversed(files):
        try:
            found = _about(file, read(file))
        except CheckpointError as error:
            if is_gone(error):
                raise
            invalid.append(str(error))
            continue
        return {**found, "directory": [other.name for other in files], "invalid": invalid}
    raise CheckpointError("; ".join(invalid))


def _about(path: Path, checkpoint: Checkpoint) -> dict[str, Any]:
    try:
        check_header(checkpoint.header)
    except CheckpointError as error:
        raise CheckpointError(f"{path}: {error}") from None
    return {
        "file": str(path),
        "number": checkpoint.number,
        **checkpoint.header,
        "payload_bytes": len(checkpoint.payload),
        "payload_sha256": hashlib.sha256(checkpoint.payload).hexdigest(),
    }
