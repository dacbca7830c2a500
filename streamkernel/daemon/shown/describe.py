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

__all__ = ["describe", "description_table"]

_SHARES = ("expert_weights", "input_importance")


def describe(path: Path) -> dict[str, Any]:
    """Describe a checkpoint file, or the newest valid one of a directory.

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
    table = Table(box=SIMPLE, show_header=False)
    table.add_column()
    table.add_column(overflow="fold")
    for name, value in described.items():
        if name == "written":
            table.add_row(name, datetime.fromtimestamp(float(value), UTC).isoformat(timespec="seconds"))
        elif isinstance(value, dict):
            for key, one in value.items():
                if key in _SHARES:
                    for label, share in one.items():
                        table.add_row(escape(f"{name}: {key}: {label}"), f"{share:.1%}")
                else:
                    table.add_row(f"{name}: {key}", _shown(one))
        elif value not in ([], None):
            table.add_row(name, _shown(value))
    return table


def _shown(value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    if isinstance(value, list):
        return ", ".join(str(one) for one in value)
    return str(value)
