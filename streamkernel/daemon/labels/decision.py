"""The decisions of the join: what a record or a label turns out to be, and what waits from then on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, NamedTuple

from streamkernel.connectors.ports import Fault, Label, Position, Record
from streamkernel.daemon.base.events import Prediction

__all__ = ["Decision", "EarlyLabel", "LabelStatus", "PendingEntry"]


class LabelStatus(Enum):
    """The status of a record or a label in the join."""

    SKIPPED = auto()  # blank
    DEAD = auto()
    LABELED = auto()  # a record that brought its own target
    KEYLESS = auto()
    REPEATED = auto()
    KEPT = auto()
    MET = auto()  # a record whose label waited
    MATCHED = auto()  # a label whose record waited
    DOUBLED = auto()
    UNMATCHED = auto()
    EARLY = auto()


@dataclass(slots=True, eq=False)
class PendingEntry:
    """A record that waits for its label: as it came until its chunk is done, then as bytes.

    Attributes
    ----------
    arrived
        When it came, in seconds of the join's clock.
    size
        Its size in bytes; see `labels.sizes`.
    x, named
        Its inputs, and what each model predicted for it, the published one first; None once it is written.
    data
        The same as a line of JSON; None before.
    lags
        The targets known when it was predicted, the latest first: it is learned with them.

    """

    arrived: float
    size: int
    x: dict[str, Any] | None = None
    named: Mapping[str, Prediction] | None = None
    data: bytes | None = None
    lags: tuple[Label, ...] = ()


class EarlyLabel(NamedTuple):
    """A label that waits for its record: the target, when it came, and its place in its source."""

    y: Label
    arrived: float
    position: Position


@dataclass(slots=True)
class Decision:
    """The decision on one record or label, with all that is needed to count, score or undo it.

    Attributes
    ----------
    record
        The record or label.
    key
        The join key of the record or label.
    mark
        How far the undo log was before.
    row
        The number of its first event in the chunk.
    status
        What it turns out to be.
    rows
        The events it brings, in this order: inputs, target or None, whether the prediction is wanted, and the
        targets known before.
    y
        The target that its prediction is compared with.
    pending
        The record that waits from now on, or waited until now.
    early
        The label that waited until now.
    named
        What each model predicted for a record that waited, the published one first.
    fault
        Why it is a dead letter.
    expired
        The records given up to make room.
    n_dropped
        How many labels were given up to make room.

    """

    record: Record
    key: str | None
    mark: int
    row: int
    status: LabelStatus = LabelStatus.SKIPPED
    rows: list[tuple[dict[str, Any], Label | None, bool, tuple[Label, ...]]] = field(default_factory=list)
    y: Label | None = None
    pending: PendingEntry | None = None
    early: EarlyLabel | None = None
    named: Mapping[str, Prediction] | None = None
    fault: Fault | None = None
    expired: list[PendingEntry] = field(default_factory=list)
    n_dropped: int = 0
