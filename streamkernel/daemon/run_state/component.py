"""A component of a run's state: what it writes to a checkpoint, what it must find there, and how it is restored.

A checkpoint is a section for each component in the header, as JSON, and bytes in the payload. A component reads its
own section and its own bytes only.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, FiniteFloat, Strict

from streamkernel.connectors.ports import Position, Record, Source
from streamkernel.daemon.base.counts import RecordCounts
from streamkernel.daemon.config.document import STANDARD_INPUT
from streamkernel.daemon.config.plan import Plan
from streamkernel.daemon.config.problems import shown
from streamkernel.daemon.config.schema import SourceConfig
from streamkernel.daemon.run_state.schedule import CheckpointObserver
from streamkernel.daemon.stream.challengers import Challengers
from streamkernel.daemon.stream.learner import Learner
from streamkernel.daemon.stream.loop import Feed, Observer
from streamkernel.daemon.stream.processor import Processor, Stage

if TYPE_CHECKING:
    from streamkernel.daemon.run_state.start import Start

__all__ = [
    "SOURCE_KEYS",
    "Count",
    "Counts",
    "InputNames",
    "OpenSource",
    "Places",
    "Saved",
    "Snapshot",
    "StateComponent",
    "StateSection",
    "TargetMoments",
    "differences",
    "plain",
    "positions_of",
    "source_differences",
    "source_settings",
]

MOST = 2**63 - 1
"""The largest number of a header."""

COUNTS = frozenset(field.name for field in fields(RecordCounts))
"""The names of the counts that this version knows."""


def _complete(counts: dict[str, int]) -> dict[str, int]:
    if missing := COUNTS - counts.keys():
        raise ValueError(f"the count {min(missing)!r} is missing")
    return counts


def _one_place_each(positions: list[Any]) -> list[Any]:
    partitions = [position[1] for position in positions]
    if len(set(partitions)) < len(partitions):
        raise ValueError("a partition is listed twice")
    return positions


# JSON has no tuples: its lists are.
Count: TypeAlias = Annotated[int, Field(ge=0, le=MOST)]
Counts: TypeAlias = Annotated[dict[str, Count], AfterValidator(_complete)]
_Place: TypeAlias = (
    Annotated[tuple[str, Count, Count], Strict(False)]
    | Annotated[tuple[str, Count, Count, dict[str, Any]], Strict(False)]
)
Places: TypeAlias = Annotated[list[_Place], AfterValidator(_one_place_each)]
InputNames: TypeAlias = Annotated[str, Field(pattern="^([0-9a-f]{16})*( ([0-9a-f]{2})+)*$")]
#: The number of targets, their mean and the sum of their squared deviations.
TargetMoments: TypeAlias = Annotated[
    tuple[Annotated[int, Field(ge=0)], FiniteFloat, Annotated[float, Field(ge=0, allow_inf_nan=False)]],
    Strict(False),
]


class StateSection(BaseModel):
    """The section of a component; other entries than those used do no harm, and later versions may write more."""

    model_config = ConfigDict(strict=True, extra="ignore", hide_input_in_errors=True)


@dataclass(frozen=True)
class Snapshot:
    """The section of a component in the header, and its bytes in the payload."""

    section: Any
    data: bytes = b""


@dataclass(frozen=True)
class Saved:
    """A checkpoint with a checked header: the sections of all components, and the bytes of those that have some."""

    header: Mapping[str, Any]
    data: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True)
class OpenSource:
    """A source of a run, and how far it is taken.

    Attributes
    ----------
    section
        The section of the configuration.
    source
        The source.
    positions
        Where its partitions continue; kept up to date.
    taken
        Tells how many of its records were taken.
    what
        The name of one of its records.
    kind
        The class of its records.
    marker
        The name of the file that marks which of them are in flight.
    first
        Of a source that is read to its end before the others: makes its processor from that of the main source.
    then
        What follows its last record, as a phrase.

    """

    section: str
    source: Source
    positions: dict[int, Position]
    taken: Callable[[], int]
    what: str = "record"
    kind: type[Record] = Record
    marker: str = "learning"
    first: Callable[[Processor], Processor] | None = None
    then: str = ""


class StateComponent:
    """A component of a run: its part of the state, and what it adds to the run; this one has nothing of either.

    Attributes
    ----------
    name
        Its section in the header.
    section
        What the section must hold.

    """

    name: str
    section: Any = StateSection

    def snapshot(self, start: Start, plan: Plan, processor: Processor) -> Snapshot | None:
        """Return what a checkpoint saves; None where there is nothing.

        Parameters
        ----------
        start
            The state of the run.
        plan
            The configuration.
        processor
            The models, and the counts of the main source.

        """
        raise NotImplementedError

    def sources(self, start: Start, plan: Plan) -> Iterator[OpenSource]:  # noqa: ARG002
        """Yield the sources that are still to be read, or followed."""
        yield from ()

    def describe(self, start: Start) -> str:  # noqa: ARG002
        """Return a phrase for the log at the end of a run; empty where there is nothing to tell."""
        return ""

    def differences(self, saved: Saved, plan: Plan) -> list[str]:  # noqa: ARG002
        """Return a phrase for each reason why this configuration cannot continue from what was saved."""
        return []

    def restore(self, saved: Saved, start: Start, plan: Plan) -> None:
        """Restore the state of a run from what was saved, which fits."""

    def begin(self, start: Start, plan: Plan) -> None:
        """Prepare the state of a run that starts over."""

    def load(self, start: Start, plan: Plan, outputs: Mapping[str, Any]) -> None:
        """Load what is not in the checkpoint of the run, before anything is opened; check it against the outputs.

        Raises
        ------
        CheckpointError, DaemonError
            Where the run cannot start with it.

        """

    def stage(self, start: Start, plan: Plan, learner: Learner, challengers: Challengers) -> Stage | None:  # noqa: ARG002
        """Return the stage between the source and the models; None where a record and its label come together."""
        return None

    def feed(self, start: Start, plan: Plan) -> Feed | None:  # noqa: ARG002
        """Return what the loop reads from the open sources; None where that is the source of the records."""
        return None

    def excluded(self, start: Start) -> Iterator[str]:  # noqa: ARG002
        """Yield the fields of a record that are no inputs of the model."""
        yield from ()

    def observe(
        self,
        observer: Observer,
        start: Start,  # noqa: ARG002
        plan: Plan,  # noqa: ARG002
        processor: Processor,  # noqa: ARG002
        notes: CheckpointObserver,  # noqa: ARG002
    ) -> Observer:
        """Return the observer of the loop, around the one that is given."""
        return observer

    def exported(self, start: Start, plan: Plan) -> Mapping[str, Any]:  # noqa: ARG002
        """Return what the exporter takes its metrics from, by the names of its arguments."""
        return {}

    def check(self, plan: Plan, starts: Sequence[Start]) -> str | None:  # noqa: ARG002
        """Return a line for `check`, given where the run would begin, in a group where each partition would."""
        return None


# What of a source decides which records the model sees. Not its path: a file is known by its first bytes, and may move.
SOURCE_KEYS = (
    *("kind", "target", "target_type", "delimiter", "encoding", "multiline", "dataset", "args"),
    # Neither the brokers, which may move, nor the partitions: each of them has a position of its own.
    *("topic", "include"),
)
# What else of a source a checkpoint tells those who read it, where it is set: how its columns and messages are read.
_READ_KEYS = ("inputs", "value_format")


def source_settings(written: Mapping[str, Any], source: SourceConfig) -> dict[str, Any]:
    """Return what a checkpoint keeps of the section of a source, as the file has it: variables unreplaced."""
    settings = {key: written.get(key, getattr(source, key)) for key in SOURCE_KEYS if hasattr(source, key)}
    if "include" in settings:
        settings["include"] = sorted(settings["include"])
    settings |= {key: written[key] for key in _READ_KEYS if written.get(key) is not None}
    return dict(plain(settings))


def source_differences(
    name: str,
    before: Mapping[str, Any],
    now: Mapping[str, Any],
    positions: Iterable[Sequence[Any]],
    source: SourceConfig,
) -> Iterator[str]:
    """Yield a phrase for each reason why a source is not the one of a checkpoint, by its settings and its positions."""
    yield from differences(name, before, now, SOURCE_KEYS)
    # A file is known by its first bytes when it is opened; standard input would be taken for the rest of any file.
    if getattr(source, "path", "") == STANDARD_INPUT and any(stream != STANDARD_INPUT for stream, *_ in positions):
        yield f"{name}.path is a file in the checkpoint and standard input in the configuration"


def plain(settings: Any) -> Any:
    """Return settings as a checkpoint has them: JSON has words for dates and numbers that are not finite.

    Examples
    --------
    >>> plain({"scale": float("inf"), "path": ("a", "b")})
    {'scale': 'Infinity', 'path': ['a', 'b']}

    """
    return json.loads(json.dumps(settings, default=str), parse_constant=str)


def differences(name: str, before: Mapping[str, Any], now: Mapping[str, Any], keys: Iterable[str]) -> Iterator[str]:
    """Yield a phrase for each key of a section that has another value at the checkpoint than now."""
    for key in keys:
        if before.get(key) != now.get(key):
            was, is_now = shown(before.get(key)), shown(now.get(key))
            yield f"{name}.{key} is {was} in the checkpoint and {is_now} in the configuration"


def positions_of(section: Mapping[str, Any]) -> dict[int, Position]:
    """Return where each partition continues, by a section."""
    return {place[1]: Position(*place) for place in section["positions"]}
