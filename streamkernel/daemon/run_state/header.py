"""The header of a checkpoint: a section for each component of the state, and the bytes that each has in the payload."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ValidationError, create_model

from streamkernel.daemon.base.errors import CheckpointError, UnfitError
from streamkernel.daemon.checkpoints.file import Checkpoint
from streamkernel.daemon.config.plan import Plan
from streamkernel.daemon.run_state.component import (
    COUNTS,
    Count,
    OpenSource,
    Saved,
    Snapshot,
    StateComponent,
    StateSection,
)
from streamkernel.daemon.run_state.late_labels import LateLabelsState
from streamkernel.daemon.run_state.models import ModelsState
from streamkernel.daemon.run_state.outputs import OutputsState
from streamkernel.daemon.run_state.predict_mode import PredictModeState
from streamkernel.daemon.run_state.replayed import ReplayedState
from streamkernel.daemon.run_state.run import RunState, SourceState
from streamkernel.daemon.run_state.warm_start import WarmStartState
from streamkernel.daemon.stream.processor import Processor

if TYPE_CHECKING:
    from streamkernel.daemon.run_state.start import Start

__all__ = ["COMPONENTS", "MODELS", "check_header", "encode", "open_checkpoint", "sources_of", "take_snapshot"]

MODELS = ModelsState()
"""The component that is restored first: whether its models fit is seen only then."""

_ALWAYS: tuple[StateComponent, ...] = (RunState(), SourceState(), OutputsState(), MODELS)
_OPTIONAL: tuple[StateComponent, ...] = (LateLabelsState(), WarmStartState(), PredictModeState(), ReplayedState())

COMPONENTS = (*_ALWAYS, *_OPTIONAL)
"""All components of a run's state, in the order of their sections."""

_fields: dict[str, Any] = {
    **{one.name: (one.section, ...) for one in _ALWAYS},
    **{one.name: (one.section | None, None) for one in _OPTIONAL},
    "payload": (dict[str, Count], ...),
}
_Header: type[BaseModel] = create_model("_Header", __base__=StateSection, **_fields)


def sources_of(start: Start, plan: Plan) -> list[OpenSource]:
    """Return the sources of a run that are still to be read, or followed."""
    return [source for component in COMPONENTS for source in component.sources(start, plan)]


def take_snapshot(start: Start, plan: Plan, processor: Processor) -> tuple[dict[str, Any], bytes]:
    """Return header and payload of a checkpoint; see `StateComponent.snapshot`.

    Raises
    ------
    CheckpointError
        A model or a record that waits cannot be written.

    """
    taken = {one.name: one.snapshot(start, plan, processor) for one in COMPONENTS}
    return encode({name: snapshot for name, snapshot in taken.items() if snapshot is not None})


def encode(snapshots: Mapping[str, Snapshot]) -> tuple[dict[str, Any], bytes]:
    """Return the header and the payload that hold these snapshots by the names of their components."""
    header = {name: one.section for name, one in snapshots.items()}
    header["payload"] = {name: len(one.data) for name, one in snapshots.items() if one.data}
    return header, b"".join(one.data for one in snapshots.values())


def open_checkpoint(checkpoint: Checkpoint) -> Saved:
    """Return the sections of a checkpoint, checked, and the bytes of each.

    Raises
    ------
    UnfitError
        It counts what this version does not know.
    CheckpointError
        A section is missing or wrong, or there are other bytes than the header says.

    """
    header = checkpoint.header
    check_header(header)
    data: dict[str, bytes] = {}
    start = 0
    for name, length in header["payload"].items():
        data[name] = checkpoint.payload[start : start + length]
        start += length
    if start != len(checkpoint.payload):
        raise CheckpointError(f"its components do not take the {len(checkpoint.payload)} bytes there are")
    return Saved(header, data)


def check_header(header: Mapping[str, Any]) -> None:
    """Refuse a header that lacks what a run needs to continue.

    The SHA-256 finds accidents. A file with the right sum may still lie, so all that is used is checked here first,
    and the next older checkpoint is tried.

    Raises
    ------
    UnfitError
        It counts what this version does not know.
    CheckpointError
        Naming the first entry that is missing or wrong.

    Examples
    --------
    >>> check_header({"run": {"written": -1}})
    Traceback (most recent call last):
        ...
    streamkernel.daemon.base.errors.CheckpointError: its header cannot be used: run.written: Input should be ...

    """
    try:
        _Header.model_validate(header)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raised = first.get("ctx", {}).get("error")  # of a check of ours, without pydantic's words before it
        text = str(raised or first["msg"])
        raise CheckpointError(f"its header cannot be used: {f'{where}: ' if where else ''}{text:.200}") from None
    except RecursionError:
        raise CheckpointError("its header cannot be used: it is nested too deeply") from None
    counted = [header["source"], header.get("warm_start") or {"account": {}}]
    if unknown := {name for section in counted for name in section["account"]} - COUNTS:
        raise UnfitError(f"the checkpoint counts {min(unknown)!r:.60}, which this streamkernel does not: update it")
