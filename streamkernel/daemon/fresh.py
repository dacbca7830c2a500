"""`--fresh`: tries all that a run would fail with, then sets aside its checkpoints and the outputs that they know."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry

from streamkernel.connectors.files.existing import is_special
from streamkernel.connectors.ports import Mark, Sink
from streamkernel.daemon.assembly.connectors import let_pass, make_sink, make_source
from streamkernel.daemon.assembly.model import try_model
from streamkernel.daemon.base.errors import CheckpointError, UnfitError
from streamkernel.daemon.base.health import Health
from streamkernel.daemon.checkpoints.file import read
from streamkernel.daemon.checkpoints.store import CheckpointStore
from streamkernel.daemon.config.plan import Plan
from streamkernel.daemon.config.schema import SourceConfig
from streamkernel.daemon.config.sources import paths_of
from streamkernel.daemon.http.server import Server
from streamkernel.daemon.run_state.header import check_header
from streamkernel.daemon.run_state.outputs import mark_of
from streamkernel.daemon.run_state.resume import resume
from streamkernel.daemon.run_state.run import check_mode

__all__ = ["set_aside", "verify_fresh"]

_OLD = ".old"

_log = logging.getLogger(__name__)


def verify_fresh(plan: Plan, store: CheckpointStore) -> None:
    """Raise what a run would fail with once the checkpoints of a locked store were set aside; change nothing.

    A broker that is not there is waited for by the run, and so it is no reason here.

    Raises
    ------
    ConnectorError
        Where a source or an output refuses: it is not there, not readable, or not ours to write to.
    CheckpointError
        Where the model cannot be restored from a checkpoint, or the checkpoints are those of a run in the other mode.
    ServerError
        Where the metrics cannot be served.

    """
    newest = _newest(path for path in _found(store) if path.suffix == ".skc")
    if newest is not None:
        check_mode(newest, plan)
    try_model(plan)
    resume(plan, None)
    for key, source in plan.config.sources.items():
        _open_source(plan, key, source)
    for output in _outputs(plan, store):
        output.sink.find_problem_anew(output.mark, output.before, stays=output.stays)
    if plan.config.metrics is not None:
        Server(plan.config.metrics, CollectorRegistry(), Health()).close()


def set_aside(plan: Plan, store: CheckpointStore) -> None:
    """Set aside the outputs that the checkpoints of a locked store know, then the checkpoints themselves.

    After a kill in between, the checkpoints are there to do the rest by. What was set aside before goes only when
    there is something to take its place, so that the outputs with ``.old`` to their names are always known.

    Raises
    ------
    SinkError
        Where an output cannot be set aside.

    """
    if not _found(store):
        _log.info("--fresh: %s has no checkpoint: nothing is renamed or removed", store.directory)
        return
    done = [output.sink.set_aside(output.mark, output.before) for output in _outputs(plan, store) if not output.stays]
    n_removed = store.clear()
    older = f" (removed: {n_removed} that had them)" if n_removed else ""
    done.append(f"renamed the checkpoints in {store.directory} to names that end in {_OLD}{older}")
    _log.info("--fresh: %s", ", ".join(filter(None, done)))


@dataclass(frozen=True)
class _KnownOutput:
    """An output, and what the checkpoints to be set aside and those set aside before have of it."""

    sink: Sink
    mark: Mark | None
    before: Mark | None
    stays: bool


def _outputs(plan: Plan, store: CheckpointStore) -> list[_KnownOutput]:
    """List the outputs; none where there is no checkpoint to set aside."""
    found = _found(store)
    if not found:
        return []
    last = _recorded(path for path in found if path.suffix == ".skc")
    before = _recorded(sorted(store.directory.glob(f"checkpoint-*.skc{_OLD}"))) or {}
    outputs = []
    for key, output in plan.config.outputs.items():
        written = plan.raw.get(key) or {}
        mark = None if last is None else mark_of(last, key, written)
        sink = make_sink(output, key, plan)
        outputs.append(_KnownOutput(sink, mark, mark_of(before, key, written), last is not None and mark is None))
    return outputs


def _open_source(plan: Plan, key: str, written: SourceConfig) -> None:
    if any(path == "-" or is_special(Path(path)) for path in paths_of(written)):
        return  # what is taken from there does not come again
    # One that keeps nothing next to the checkpoint: the old one still goes with what is there.
    with make_source(written, plan.config, key) as source:
        if key == "source":
            let_pass(source, plan.config)
        source.open()


def _found(store: CheckpointStore) -> list[Path]:
    return sorted(path for path in store.directory.glob("checkpoint-*.skc*") if not path.name.endswith(_OLD))


def _recorded(paths: Iterable[Path]) -> Mapping[str, Any] | None:
    """Read what the newest sound one of some checkpoints says about the outputs; None where none is sound."""
    newest = _newest(paths)
    return None if newest is None else newest["outputs"]


def _newest(paths: Iterable[Path]) -> Mapping[str, Any] | None:
    """Read the header of the newest sound one of some checkpoints; None where none is sound."""
    for path in reversed(list(paths)):
        try:
            header = read(path).header
            with contextlib.suppress(UnfitError):  # what another release counts changes nothing of its outputs
                check_header(header)
        except CheckpointError:
            continue
        return header
    return None
