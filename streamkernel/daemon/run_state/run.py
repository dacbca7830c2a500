"""The run that writes a checkpoint as a component of the state: when, in which mode, by which versions."""

from __future__ import annotations

import logging
import platform
import time
from collections.abc import Mapping
from functools import cache
from importlib import metadata
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from streamkernel.daemon.base.errors import UnfitError
from streamkernel.daemon.config.plan import Plan
from streamkernel.daemon.run_state.component import Saved, Snapshot, StateComponent, StateSection
from streamkernel.daemon.stream.processor import Processor

if TYPE_CHECKING:
    from streamkernel.daemon.run_state.start import Start

__all__ = ["RunState", "check_mode", "check_versions", "run_section"]

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
