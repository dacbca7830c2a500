"""The state of a warm start: how much of its source was learned, and whether that was all of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from streamkernel.connectors.ports import Position
from streamkernel.daemon.base.counts import RecordCounts

__all__ = ["WarmStart"]


@dataclass
class WarmStart:
    """How far the source is learned that comes before the main one.

    Attributes
    ----------
    counts, recent_dead
        Of its records, apart from those of the main source.
    positions
        Where each of its partitions continues.
    done
        Whether all of it was learned: then the main source is read.

    """

    counts: RecordCounts = field(default_factory=RecordCounts)
    recent_dead: list[int] = field(default_factory=list)
    positions: dict[int, Position] = field(default_factory=dict)
    done: bool = False

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> Self:
        """Read what `to_json` gave."""
        positions = {place[1]: Position(*place) for place in given["positions"]}
        return cls(RecordCounts(**given["account"]), list(given["recent_dead"]), positions, given["done"])

    def to_json(self) -> dict[str, Any]:
        """Return the state as a checkpoint has it."""
        return {
            "account": self.counts.to_json(),
            "recent_dead": self.recent_dead,
            "positions": [position.to_json() for position in self.positions.values()],
            "done": self.done,
        }
