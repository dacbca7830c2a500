"""What is decided about a record or a label, and what waits from then on."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, NamedTuple

from connectors.ports import Label, Position, Record
from streamkernel.daemon.base.events import Said

__all__ = ["Early", "Entry", "Fate", "Step"]


class Fate(Enum):
    """What a record or a label turns out to be."""

    SKIPPED = auto()  # blank
    DEAD = auto()
    LABELLED = auto()  # a record that brought its own target
    KEYLESS = auto()
    REPEATED = auto()
    KEPT = auto()
    MET = auto()  # a record whose label waited
    MATCHED = auto()  # a label whose record waited
    DOUBLED = auto()
    UNMATCHED = auto()
    EARLY = auto()


class Entry:
    """A record that waits for its label: as it came until its chunk is done, then as bytes.

    Attributes
    ----------
    arrived
        When it came, in seconds of the ledger's clock.
    size
        Its size in bytes; see `late.sizes`.
    x, said
        Its inputs, and what the model said to them; None once it is packed.
    data
        The same packed; None before.

    """

    __slots__ = ("arrived", "data", "said", "size", "x")

    def __init__(self, arrived: float, size: int, x: dict[str, Any] | None = None, data: bytes | None = None) -> None:
        self.arrived = arrived
        self.size = size
        self.x = x
        self.said: Said | None = None
        self.data = data


class Early(NamedTuple):
    """A label that waits for its record: the target, when it came, and where it stands in its source."""

    y: Label
    arrived: float
    position: Position


@dataclass(slots=True)
class Step:
    """One record or label, and what is decided about it.

    Attributes
    ----------
    record
        It.
    key
        Its key.
    mark
        The journal before it.
    row
        The number of its first row in the chunk.
    fate
        The decision.
    rows
        What the model is to be given, in this order: inputs, target or None, and whether the prediction is wanted.
    y
        The target to judge by.
    entry
        The record that waits from now on, or waited until now.
    early
        The label that waited until now.
    kept
        What was said to a record that waited.
    fault
        Why it is a dead letter.
    expired
        The records given up to make room.
    dropped
        How many labels were.

    """

    record: Record
    key: str | None
    mark: int
    row: int
    fate: Fate = Fate.SKIPPED
    rows: list[tuple[dict[str, Any], Label | None, bool]] = field(default_factory=list)
    y: Label | None = None
    entry: Entry | None = None
    early: Early | None = None
    said: Said | None = None
    fault: tuple[str, str] | None = None
    expired: list[Entry] = field(default_factory=list)
    dropped: int = 0
