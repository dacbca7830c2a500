"""What `inspect` says about checkpoints, without loading the model."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.box import SIMPLE
from rich.markup import escape
from rich.table import Table

from streamkernel.daemon.checkpoints.store import Checkpoint, CheckpointError, read
from streamkernel.daemon.settings.grouped import shares

__all__ = ["describe", "description_table"]

# Enough to tell two models apart, and fit for a narrow terminal.
_DIGEST_SHOWN = 12
_SHARES = ("expert_weights", "input_importance")


def describe(path: Path) -> dict[str, Any]:
    """Describe a checkpoint file, or the newest valid one of a directory, or of each partition's in group mode.

    Parameters
    ----------
    path
        The file or directory; it is only read.

    Raises
    ------
    CheckpointError
        Where there is none, or none is valid.

    """
    if not path.is_dir():
        return _about(path, read(path))
    begun = {one: share for one, share in shares(path).items() if any(share.glob("checkpoint-*.skc"))}
    if begun and not any(path.glob("checkpoint-*.skc")):
        return {"directory": str(path), "partitions": {str(one): describe(share) for one, share in begun.items()}}
    files = sorted(path.glob("checkpoint-*.skc"), reverse=True)
    if not files:
        raise CheckpointError(f"{path}: holds no checkpoint")
    invalid: list[str] = []
    for file in files:
        try:
            found = _about(file, read(file))
        except CheckpointError as error:
            invalid.append(str(error))
            continue
        return {**found, "directory": [other.name for other in reversed(files)], "invalid": invalid}
    raise CheckpointError("; ".join(invalid))


def _about(path: Path, checkpoint: Checkpoint) -> dict[str, Any]:
    return {
        "file": str(path),
        "number": checkpoint.number,
        **checkpoint.header,
        "payload_bytes": len(checkpoint.payload),
        "payload_sha256": hashlib.sha256(checkpoint.payload).hexdigest(),
    }


def description_table(described: dict[str, Any]) -> Table:
    """Make the table a person reads."""
    if "partitions" in described:
        return _partitions_table(described["partitions"])
    table = Table(box=SIMPLE, show_header=False)
    table.add_column()
    table.add_column(overflow="fold")
    for name, value in described.items():
        if name == "written":
            table.add_row(name, datetime.fromtimestamp(float(value), UTC).isoformat(timespec="seconds"))
        elif isinstance(value, dict):
            for key, one in value.items():
                if isinstance(one, dict):
                    for label, part in one.items():
                        shown = f"{part:.1%}" if key in _SHARES else _shown(part)
                        table.add_row(escape(f"{name}: {key}: {label}"), shown)
                else:
                    table.add_row(f"{name}: {key}", _shown(one))
        elif value not in ([], None):
            table.add_row(name, _shown(value))
    return table


def _partitions_table(partitions: dict[str, dict[str, Any]]) -> Table:
    table = Table("partition", "written", "records", "goes on at", "state digest", box=SIMPLE)
    for partition, about in partitions.items():
        table.add_row(
            partition,
            datetime.fromtimestamp(float(about["written"]), UTC).isoformat(timespec="seconds"),
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
