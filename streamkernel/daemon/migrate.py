"""The newest checkpoint of a directory, written once more in the newest format: what `streamkernel migrate` does."""

from __future__ import annotations

import contextlib
import stat
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from streamkernel.daemon.base.errors import CheckpointError
from streamkernel.daemon.base.model import Model
from streamkernel.daemon.checkpoints.file import FORMAT_VERSION, Checkpoint, read
from streamkernel.daemon.checkpoints.payload import dump_with_digest, load_model
from streamkernel.daemon.checkpoints.schema import check_header
from streamkernel.daemon.checkpoints.store import CheckpointStore, checkpoint_files
from streamkernel.daemon.config.grouped import partition_directories
from streamkernel.daemon.labels.snapshot import part
from streamkernel.daemon.recovery.description import describe_model
from streamkernel.daemon.recovery.header import check_versions, versions
from streamkernel.daemon.wiring.described import load_described

__all__ = ["migrate"]


def migrate(directory: Path, imports: Sequence[str] = ()) -> list[str]:
    """Write the newest checkpoint of a state directory as the next one, in the newest format, and read it back.

    The checkpoints before stay. In the directory of a group, those of all its partitions are migrated.

    Parameters
    ----------
    directory
        The state directory; no daemon may be at work there.
    imports
        What the configuration has under ``imports``.

    Returns
    -------
    lines
        What was done, one sentence for each state directory.

    Raises
    ------
    CheckpointError
        Where there is no checkpoint, none is valid, a daemon holds the directory, or the model cannot be restored.
    OSError
        Where the new checkpoint cannot be written.

    """
    found = [one for one in (directory, *partition_directories(directory).values()) if checkpoint_files(one)]
    if not found:
        raise CheckpointError(f"{directory}: holds no checkpoint")
    return [_migrate(one, imports) for one in found]


def _migrate(directory: Path, imports: Sequence[str]) -> str:
    # With all that it holds: what stays, the configuration says.
    with contextlib.closing(CheckpointStore(directory, keep=sys.maxsize, mode=_mode(directory))) as store:
        store.lock()
        found = store.restore(lambda one: _to_write(one, imports))
        if found is None:
            raise CheckpointError(f"{directory}: holds no checkpoint")
        before, loaded = found
        if loaded is None:
            return f"{directory}: checkpoint {before.number} is of format {FORMAT_VERSION}: nothing is to be done"
        model, waiting = loaded
        written, digest = dump_with_digest(model, imports)
        header = {**before.header, "model": describe_model(model, digest), "versions": versions()}
        payload = written + waiting
        path = store.write(header, payload)
        _verify(path, header, payload, imports)
    return (
        f"{directory}: checkpoint {before.number} of format {before.format} is written as {path.name} of format "
        f"{FORMAT_VERSION}"
    )


def _mode(directory: Path) -> int:
    """Return the permissions of new files: the directory stays as open as its newest checkpoint is."""
    found = (path.lstat().st_mode for path in reversed(checkpoint_files(directory)))
    newest = next(filter(stat.S_ISREG, found), 0)
    return 0o640 if newest & stat.S_IRGRP else 0o600


def _to_write(checkpoint: Checkpoint, imports: Sequence[str]) -> tuple[Checkpoint, tuple[Model, bytes] | None]:
    """Return a checkpoint with what `_load` gives; None of one in the newest format, whose model is not needed."""
    if checkpoint.format < FORMAT_VERSION:
        return checkpoint, _load(checkpoint, imports)
    check_header(checkpoint.header)
    return checkpoint, None


def _load(checkpoint: Checkpoint, imports: Sequence[str]) -> tuple[Model, bytes]:
    """Return the model of a checkpoint and the bytes of the records that wait for labels."""
    header = checkpoint.header
    check_header(header)
    check_versions(header)
    payload, waiting = part(checkpoint.payload, header.get("labels"))
    return load_described(header, imports, lambda model: load_model(payload, model, imports)), waiting


def _verify(path: Path, header: Mapping[str, Any], payload: bytes, imports: Sequence[str]) -> None:
    """Read what was written, model and all."""
    again = read(path)
    model, _ = _load(again, imports)
    if (again.format, again.header, again.payload) != (FORMAT_VERSION, header, payload) or (
        describe_model(model, dump_with_digest(model, imports)[1]) != header["model"]
    ):
        raise CheckpointError(f"{path}: does not hold what was written: remove it, the one before is as it was")
