"""The run that writes a checkpoint and its main source: when, in which mode, by which versions, and how far."""

from __future__ import annotations

import contextlib
import logging
import platform
import time
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import metadata
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, ValidationError

from streamkernel.daemon.base.counts import RecordCounts
from streamkernel.daemon.base.errors import UnfitError
from streamkernel.daemon.config.inputs import InputsConfig
from streamkernel.daemon.config.plan import Plan
from streamkernel.daemon.run_state.component import (
    Count,
    Counts,
    OpenSource,
    Places,
    Saved,
    Snapshot,
    StateComponent,
    StateSection,
    differences,
    plain,
    positions_of,
    source_differences,
    source_settings,
)
from streamkernel.daemon.stream.processor import Processor

if TYPE_CHECKING:
    from streamkernel.daemon.run_state.start import Start

__all__ = ["RunState", "SourceState", "check_mode", "check_versions", "run_section"]

_log = logging.getLogger(__name__)

_LATEST = 253_402_300_799  # the last second of the year 9999
_LIBRARIES = ("streamkernel", "river", "numpy")

# A version is read from files, which takes as long as all the rest of a header.
_version = cache(metadata.version)


class _Versions(StateSection):
    streamkernel: str
    river: str


class _RunSection(StateSection):
    written: Annotated[float, Field(ge=0, le=_LATEST)]
    mode: Literal["learn", "predict"]
    versions: _Versions


class RunState(StateComponent):
    """When a checkpoint was written, in which mode, and by which versions."""

    name = "run"
    section = _RunSection

    def snapshot(self, start: Start, plan: Plan, processor: Processor) -> Snapshot:  # noqa: ARG002
        return Snapshot(run_section(plan.config.mode))

    def restore(self, saved: Saved, start: Start, plan: Plan) -> None:  # noqa: ARG002
        start.resumed, start.written = True, saved.header[self.name]["written"]


def run_section(mode: str = "learn") -> dict[str, Any]:
    """Return the section of a checkpoint that is written now."""
    versions = {**{name: _version(name) for name in _LIBRARIES}, "python": platform.python_version()}
    return {"written": time.time(), "mode": mode, "versions": versions}


def check_mode(header: Mapping[str, Any], plan: Plan) -> None:
    """Refuse the checkpoint of a run in the other mode, which kept other things.

    Raises
    ------
    UnfitError
        Saying which directory to name where.

    """
    before, mode = header["run"]["mode"], plan.config.mode
    if mode == "predict" and before == "learn":
        raise UnfitError(
            "checkpoint.directory belongs to a run that learns: name it in serve_from, and give this run its own "
            "directory, or none"
        )
    if mode == "learn" and before == "predict":
        raise UnfitError(
            "checkpoint.directory belongs to a run in mode predict, which learned nothing: give this run its own"
        )


def check_versions(header: Mapping[str, Any], otherwise: str = "start over with --fresh") -> None:
    """Refuse a checkpoint of another major version, warn of one of another minor version.

    Parameters
    ----------
    header
        The header of the checkpoint.
    otherwise
        What to do where the other version is not to be installed.

    Raises
    ------
    UnfitError
        Naming both versions.

    """
    for name in ("streamkernel", "river"):
        before, now = str(header["run"]["versions"][name]), _version(name)
        if before.split(".")[0] != now.split(".")[0]:
            raise UnfitError(
                f"the checkpoint was written with {name} {before}, this is {name} {now}: "
                f"install {name} {before}, or {otherwise}"
            )
        if before.split(".")[1:2] != now.split(".")[1:2]:
            _log.warning("the checkpoint was written with %s %s, this is %s %s", name, before, name, now)


class _SourceSection(StateSection):
    config: dict[str, Any]
    account: Counts
    recent_dead: list[Count]
    positions: Places


class SourceState(StateComponent):
    """Where the main source continues, and what became of its records."""

    name = "source"
    section = _SourceSection

    def snapshot(self, start: Start, plan: Plan, processor: Processor) -> Snapshot:
        return Snapshot(
            {
                "config": source_settings(plan.raw["source"], plan.config.source),
                "account": processor.counts.to_json(),
                "recent_dead": processor.rate.recent,
                "positions": [position.to_json() for position in start.positions.values()],
            }
        )

    def sources(self, start: Start, plan: Plan) -> Iterator[OpenSource]:
        yield OpenSource("source", plan.source, start.positions, lambda: start.counts.consumed)

    def differences(self, saved: Saved, plan: Plan) -> list[str]:
        before, now = saved.header["source"]["config"], source_settings(plan.raw["source"], plan.config.source)
        positions = saved.header["source"]["positions"]
        return list(source_differences("source", before, now, positions, plan.config.source))

    def restore(self, saved: Saved, start: Start, plan: Plan) -> None:
        section = saved.header["source"]
        start.counts, start.positions = RecordCounts(**section["account"]), positions_of(section)
        start.recent_dead = list(section["recent_dead"])
        before, now = section["config"].get("inputs"), plan.raw["source"].get("inputs")
        with contextlib.suppress(ValidationError):  # a variable, which is as it is written here
            before, now = (InputsConfig.model_validate(one or {}).model_dump() for one in (before, plain(now)))
        for difference in differences("source.inputs", before or {}, now or {}, InputsConfig.model_fields):
            _log.warning("%s: the model continues with the new inputs", difference)
