"""The outputs as a component of the state: where each goes, and the mark after which its lines come again."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator

from streamkernel.connectors.files.mark import FileMark
from streamkernel.connectors.kafka.writing.mark import OutputMark
from streamkernel.connectors.parquet.mark import PartsMark, parts_of
from streamkernel.connectors.ports import Mark, SinkError
from streamkernel.daemon.config.plan import Plan
from streamkernel.daemon.run_state.component import MOST, Saved, Snapshot, StateComponent, StateSection
from streamkernel.daemon.stream.processor import Processor

if TYPE_CHECKING:
    from streamkernel.daemon.run_state.start import Start

__all__ = ["OutputsState", "is_marked", "mark_of"]

_log = logging.getLogger(__name__)

_DEEPEST = 32
# What of an output says where it goes. Which cluster a topic is on, and whether it is the same one, is in the mark.
_OUTPUT_KEYS = ("kind", "path", "topic")


def _plain(value: Any, depth: int = 0) -> Any:
    if depth > _DEEPEST:
        raise ValueError("nested too deeply")
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            _plain(item, depth + 1)
    elif isinstance(value, int | float) and not abs(value) <= MOST:  # nor is NaN
        raise ValueError("holds a number out of range")
    return value


def _mark(mark: Any) -> Any:
    # A number of a sink that counts its lines, an object of a file or a topic.
    if isinstance(mark, bool) or not (mark is None or isinstance(mark, dict) or (isinstance(mark, int) and mark >= 0)):
        raise ValueError("must be a whole number, an object or null")
    _plain(mark)
    if isinstance(mark, dict):
        length = mark.get("length", 0)
        if type(length) is not int or length < 0:
            raise ValueError("its length must be a whole number of at least 0")
        if "stream" in mark:
            try:
                OutputMark.from_json(mark)
            except SinkError as error:
                raise ValueError(str(error)) from None
    return mark


def _path(path: str) -> str:
    try:
        possible = b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:
        possible = False
    if not possible:
        raise ValueError("is not the name of a file")
    return path


class _OutputSection(StateSection):
    path: Annotated[str, AfterValidator(_path)] = "-"
    mark: Annotated[Any, AfterValidator(_mark)] = None


class OutputsState(StateComponent):
    """The outputs with their marks, and a warning of one that the run no longer writes to."""

    name = "outputs"
    section = dict[str, _OutputSection]

    def snapshot(self, start: Start, plan: Plan, processor: Processor) -> Snapshot:  # noqa: ARG002
        return Snapshot(
            {
                key: {**{name: plan.raw[key][name] for name in _OUTPUT_KEYS if name in plan.raw[key]}, "mark": mark}
                for key, mark in start.marks.items()
                if plan.raw.get(key)
            }
        )

    def restore(self, saved: Saved, start: Start, plan: Plan) -> None:
        start.outputs = saved.header["outputs"]
        for key, output in start.outputs.items():
            if mark_of(start.outputs, key, plan.raw.get(key) or {}) is None:
                _warn_if_left(output)


def mark_of(outputs: Mapping[str, Mapping[str, Any]], key: str, written: Mapping[str, Any]) -> Mark | None:
    """Find the mark of an output in a checkpoint.

    Parameters
    ----------
    outputs
        What the checkpoint says about each output, by its key.
    key
        The key of the output.
    written
        The section of the output, as the configuration has it: an output that goes elsewhere has no mark.

    """
    before = outputs.get(key, {})
    same = all(before.get(name) == written.get(name) for name in _OUTPUT_KEYS)
    return before.get("mark") if same else None


def _warn_if_left(output: Mapping[str, Any]) -> None:
    """Warn of the lines after the checkpoint in a file or folder that is left: their records are learned again."""
    path = Path(output.get("path", "-"))
    if parts := _parts_after(path, output):
        rest, remedy = f"{len(parts)} parts", f"remove {', '.join(parts)}"
    elif n_bytes := _bytes_after(path, output):
        rest, remedy = f"{n_bytes:,} bytes", f"cut it to {output['mark']['length']} bytes (truncate -s)"
    else:
        return
    _log.warning(
        "%s: is not an output any more, and has %s after the checkpoint. Their records come again: %s",
        *(path, rest, remedy),
    )


def is_marked(path: str | Path, output: Mapping[str, Any]) -> bool:
    """Return whether a file is the one that the mark of an output speaks of, or a copy of it."""
    try:
        mark = FileMark.from_json(Path(path), output.get("mark"))
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (SinkError, OSError):  # of a topic; or there is no such file, or none that can be read
        return False
    try:
        return mark is not None and mark.is_of(descriptor)
    except OSError:
        return False
    finally:
        os.close(descriptor)


def _bytes_after(path: Path, output: Mapping[str, Any]) -> int:
    return path.stat().st_size - int(output["mark"]["length"]) if is_marked(path, output) else 0


def _parts_after(path: Path, output: Mapping[str, Any]) -> list[str]:
    try:
        mark = PartsMark.from_json(path, output.get("mark"))
        if mark is None or not mark.names(path):
            return []
    except (SinkError, OSError):
        return []
    return [part.name for number, part in parts_of(path).items() if number >= mark.part]
