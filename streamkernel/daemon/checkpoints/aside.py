"""What `--fresh` does with the outputs of the run whose checkpoints it sets aside."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from streamkernel.daemon.checkpoints.errors import CheckpointError
from streamkernel.daemon.checkpoints.file import read
from streamkernel.daemon.checkpoints.resume import mark_of
from streamkernel.daemon.settings.plan import Plan
from streamkernel.daemon.settings.wiring import make_sink

__all__ = ["set_outputs_aside"]


def set_outputs_aside(plan: Plan, directory: Path) -> None:
    """Put the outputs out of the way that the checkpoints of a directory know, before these are set aside themselves.

    Parameters
    ----------
    plan
        The configuration.
    directory
        The checkpoints, under lock.

    Raises
    ------
    SinkError
        Where an output cannot be set aside; the checkpoints that know it are still there then.

    """
    last, before = (_outputs(directory, pattern) for pattern in ("checkpoint-*.skc", "checkpoint-*.skc.old"))
    for key in ("predictions", "dead_letters"):
        written = plan.raw.get(key) or {}
        sink = make_sink(getattr(plan.config, key), key)
        sink.set_aside(mark_of(last, key, written), mark_of(before, key, written))


def _outputs(directory: Path, pattern: str) -> Mapping[str, Any]:
    """Read what the newest sound checkpoint of some names says about the outputs; nothing where there is none."""
    for path in sorted(directory.glob(pattern), reverse=True):
        try:
            outputs = read(path).header["outputs"]
        except (CheckpointError, KeyError):
            continue
        if isinstance(outputs, dict) and all(isinstance(one, dict) for one in outputs.values()):
            return outputs
    return {}
