"""The newest checkpoint of a directory, written once more in the newest format: what `streamkernel migrate` does."""

from __future__ import annotations

import contextlib
import math
import stat
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from streamkernel.daemon.base.errors import CheckpointError, UnfitError
from streamkernel.daemon.base.model import Model
from streamkernel.daemon.checkpoints.file import FORMAT_VERSION, Checkpoint, read
from streamkernel.daemon.checkpoints.payload import dump_with_digest, load_model
from streamkernel.daemon.checkpoints.schema import check_header
from streamkernel.daemon.checkpoints.store import CheckpointStore, checkpoint_files
from streamkernel.daemon.config.document import parse
from streamkernel.daemon.config.grouped import partition_directories
from streamkernel.daemon.config.problems import ConfigError
from streamkernel.daemon.labels.snapshot import part
from streamkernel.daemon.recovery.header import check_versions, describe_model, versions
from streamkernel.daemon.wiring.model import build_model

__all__ = ["migrate"]

# What stands in the head of a checkpoint, which is JSON, for what a configuration may hold, which is YAML.
_KEYS: Mapping[str, bool | None] = {"true": True, "false": False, "null": None}
_NUMBERS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


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
    steps = header["config"].get("model")
    if not isinstance(steps, list):
        raise CheckpointError("its header cannot be used: config.model: must be a list of steps")
    try:
        model = load_model(payload, _built(steps, imports), imports)
    except UnfitError:
        if (meant := _as_in_yaml(steps)) == steps:
            raise
        model = load_model(payload, _built(meant, imports), imports)
    except RecursionError:
        raise CheckpointError("its header cannot be used: config.model: nested too deeply") from None
    return model, waiting


def _built(steps: Sequence[Any], imports: Sequence[str]) -> Model:
    """Build the model as the configuration described it that the checkpoint was written with."""
    # As YAML, so that the variables of the environment are put in as in a configuration. With quotes around all of it,
    # for what needs none differs between versions of YAML.
    text = yaml.safe_dump({"model": steps}, default_style='"', width=math.inf)
    document = parse(text, "the configuration in the checkpoint")
    try:
        if document.problems:
            raise ConfigError(document.problems)
        return build_model(document.values["model"], imports)
    except ConfigError as error:
        lines = "; ".join(document.redact(document.as_written(line)) for line in error.lines)
        advice = " (--imports PACKAGE)" if "under imports" in lines else ""
        raise UnfitError(f"the model cannot be built as its configuration describes it: {lines}{advice}") from None


def _as_in_yaml(value: Any) -> Any:
    """Return arguments as YAML had them, where JSON has words: for keys that are no text, for infinities and NaN."""
    if isinstance(value, dict):
        return {_KEYS.get(key, key): _as_in_yaml(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_as_in_yaml(one) for one in value]
    return _NUMBERS.get(value, value) if isinstance(value, str) else value


def _verify(path: Path, header: Mapping[str, Any], payload: bytes, imports: Sequence[str]) -> None:
    """Read what was written, model and all."""
    again = read(path)
    model, _ = _load(again, imports)
    if (again.format, again.header, again.payload) != (FORMAT_VERSION, header, payload) or (
        describe_model(model, dump_with_digest(model, imports)[1]) != header["model"]
    ):
        raise CheckpointError(f"{path}: does not hold what was written: remove it, the one before is as it was")
