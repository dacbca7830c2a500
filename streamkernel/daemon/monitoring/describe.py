"""The description of checkpoints that `inspect` prints, without loading the model."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.box import SIMPLE
from rich.table import Table
from rich.text import Text

from streamkernel.daemon.base.errors import CheckpointError
from streamkernel.daemon.checkpoints.file import Checkpoint, read
from streamkernel.daemon.checkpoints.reader import is_gone, until_listed
from streamkernel.daemon.checkpoints.schema import check_header
from streamkernel.daemon.checkpoints.store import checkpoint_files
from streamkernel.daemon.config.grouped import partition_directories
from streamkernel.daemon.monitoring.visible import visible

__all__ = ["describe", "description_table"]

# Enough to tell two models apart, and fit for a narrow terminal.
_DIGEST_SHOWN = 12
_SHARES = ("expert_weights", "input_importance")


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


def description_table(described: dict[str, Any]) -> Table:
    """Return the description as a table."""
    if "partitions" in described:
        return _partitions_table(described["partitions"])
    table = Table(box=SIMPLE, show_header=False)
    table.add_column()
    table.add_column(overflow="fold")
    for name, value in described.items():
        if name == "written":
            _add(table, name, _time(value))
        elif isinstance(value, dict):
            for key, one in value.items():
                _add_nested(table, f"{name}: {key}", one, key in _SHARES, inner=name == "models")
        elif value not in ([], None):
            _add(table, name, _shown(value))
    return table


def _add_nested(table: Table, name: str, value: Any, shares: bool, inner: bool) -> None:
    """Add a row for each entry of a mapping, and where those are mappings within, for each entry of these."""
    if not isinstance(value, dict):
        _add(table, name, f"{value:.1%}" if shares and isinstance(value, float) else _shown(value))
        return
    for key, one in value.items():
        if inner and isinstance(one, dict):
            for label, part in one.items():
                _add_nested(table, f"{name}: {key}: {label}", part, label in _SHARES, inner=False)
        else:
            _add(table, f"{name}: {key}", f"{one:.1%}" if shares else _shown(one))


def _add(table: Table, *cells: str) -> None:
    """Add a row as it is: no cell holds markup, or steers the terminal."""
    table.add_row(*(Text(visible(cell)) for cell in cells))


def _time(written: float) -> str:
    return datetime.fromtimestamp(float(written), UTC).isoformat(timespec="seconds")


def _partitions_table(partitions: dict[str, dict[str, Any]]) -> Table:
    table = Table("partition", "written", "records", "goes on at", "state digest", box=SIMPLE)
    for partition, about in partitions.items():
        _add(
            table,
            partition,
            _time(about["written"]),
            _shown(about["account"]["consumed"]),
            ", ".join(f"{offset:,}" for _, _, offset in about["positions"]),
            str(about["model"].get("state_digest", ""))[:_DIGEST_SHOWN],
        )
    return table


def _shown(value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    if isinstance(value, list):
        return ", ".join(str(one) for one in value)
    return str(value)
