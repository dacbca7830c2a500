"""The newest checkpoint of a directory, written once more in the newest format: what `streamkernel migrate` does."""

from __future__ import annotations

import contextlib
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
from streamkernel.daemon.recovery.header import check_versions, describe_model, versions
from streamkernel.daemon.wiring.described import described_model

__all__ = ["migrate"]

_READABLE = 0o040  # by the group of the directory


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
    # As open as it is, and with all that it holds: what stays and who may read it, the configuration says.
    mode = 0o640 if checkpoint_files(directory)[-1].stat().st_mode & _READABLE else 0o600
    with contextlib.closing(CheckpointStore(directory, keep=sys.maxsize, mode=mode)) as store:
        store.lock()
        found = store.restore(lambda one: _load(one, imports))
        if found is None:
            raise CheckpointError(f"{directory}: holds no checkpoint")
        before, model, waiting = found
        if before.format == FORMAT_VERSION:
            return f"{directory}: checkpoint {before.number} is of format {FORMAT_VERSION}: nothing is to be done"
        written, digest = dump_with_digest(model, imports)
        header = {**before.header, "model": describe_model(model, digest), "versions": versions()}
        payload = written + waiting
        path = store.write(header, payload)
        _verify(path, header, payload, imports)
    return (
        f"{directory}: checkpoint {before.number} of format {before.format} is written as {path.name} of format "
        f"{FORMAT_VERSION}"
    )


def _load(checkpoint: Checkpoint, imports: Sequence[str]) -> tuple[Checkpoint, Model, bytes]:
    """Return a checkpoint with its model and the bytes of the records that wait for labels."""
    header = checkpoint.header
    check_header(header)
    check_versions(header)
    payload, waiting = part(checkpoint.payload, header.get("labels"))
    return checkpoint, load_model(payload, described_model(header, imports), imports), waiting


def _verify(path: Path, header: Mapping[str, Any], payload: bytes, imports: Sequence[str]) -> None:
    """Read what was written, model and all."""
    again, model, _ = _load(read(path), imports)
    if (again.format, again.header, again.payload) != (FORMAT_VERSION, header, payload) or (
        describe_model(model, dump_with_digest(model, imports)[1]) != header["model"]
    ):
        raise CheckpointError(f"{path}: does not hold what was written: remove it, the one before is as it was")
