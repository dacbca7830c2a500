"""What `--fresh` sets aside: the checkpoints of the run before, and the outputs that they know."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from streamkernel.daemon.checkpoints.errors import CheckpointError
from streamkernel.daemon.checkpoints.file import read
from streamkernel.daemon.checkpoints.resume import mark_of
from streamkernel.daemon.checkpoints.store import CheckpointStore
from streamkernel.daemon.settings.plan import Plan
from streamkernel.daemon.settings.wiring import make_sink

__all__ = ["set_aside", "unmoved"]

_OLD = ".old"
_KEYS = ("predictions", "dead_letters")


def unmoved(plan: Plan, store: CheckpointStore) -> list[str]:
    """List the outputs that `set_aside` leaves where they are, by their keys; none where there is nothing to set aside.

    Parameters
    ----------
    plan
        The configuration.
    store
        The checkpoints.

    """
    found = _found(store)
    last = _outputs(path for path in found if path.suffix == ".skc")
    outputs = {key: plan.raw.get(key) or {} for key in _KEYS}
    return [
        key
        for key, written in outputs.items()
        if found and (written.get("kind") == "kafka" or (last is not None and mark_of(last, key, written) is None))
    ]


def set_aside(plan: Plan, store: CheckpointStore) -> None:
    """Put the outputs out of the way that the checkpoints know, then the checkpoints themselves.

    After a kill in between, the checkpoints are there to do the rest by. What was set aside before goes only when
    there is something to take its place, so that the outputs with ``.old`` to their names are always known.

    Parameters
    ----------
    plan
        The configuration.
    store
        The checkpoints, under lock.

    Raises
    ------
    SinkError
        Where an output cannot be set aside.

    """
    found = _found(store)
    if not found:
        return
    last = _outputs(path for path in found if path.suffix == ".skc")
    before = _outputs(sorted(store.directory.glob(f"checkpoint-*.skc{_OLD}"))) or {}
    for key in _KEYS:
        written = plan.raw.get(key) or {}
        mark = None if last is None else mark_of(last, key, written)
        if last is None or mark is not None:
            make_sink(getattr(plan.config, key), key).set_aside(mark, mark_of(before, key, written))
    store.clear()


def _found(store: CheckpointStore) -> list[Path]:
    return sorted(path for path in store.directory.glob("checkpoint-*.skc*") if not path.name.endswith(_OLD))


def _outputs(paths: Iterable[Path]) -> Mapping[str, Any] | None:
    """Read what the newest sound one of some checkpoints says about the outputs; None where none is sound."""
    for path in reversed(list(paths)):
        try:
            outputs = read(path).header["outputs"]
        except (CheckpointError, KeyError):
            continue
        if isinstance(outputs, dict) and all(isinstance(one, dict) for one in outputs.values()):
            return outputs
    return None
