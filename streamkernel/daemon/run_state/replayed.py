"""The dead letters that were replayed, by where their records are: a checkpoint keeps them, so that none is twice."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, TypeAlias

from pydantic import Strict

from streamkernel.daemon.config.plan import Plan
from streamkernel.daemon.run_state.component import Count, Saved, Snapshot, StateComponent
from streamkernel.daemon.stream.processor import Processor

if TYPE_CHECKING:
    from streamkernel.daemon.run_state.start import Start

__all__ = ["MOST_REPLAYED", "LetterPlace", "ReplayedLetters", "ReplayedState"]

MOST_REPLAYED = 100_000
"""How many a checkpoint keeps: a megabyte, about."""


class LetterPlace(NamedTuple):
    """The place of a dead letter's record, which identifies it however it is mended.

    Attributes
    ----------
    source
        Whether it is of the records or of the late labels.
    partition
        The partition.
    repeat
        How many letters of the same offset came before it, in a source whose offsets start over; else 0.
    offset
        The offset.

    """

    source: Literal["records", "labels"]
    partition: int
    repeat: int
    offset: int


class ReplayedLetters:
    """A set of places of dead letters.

    Examples
    --------
    >>> replayed = ReplayedLetters.from_json([["records", 0, 0, [12, 70]]])
    >>> replayed.add(LetterPlace("records", 0, 0, 40))
    >>> LetterPlace("records", 0, 0, 70) in replayed, LetterPlace("labels", 0, 0, 70) in replayed, len(replayed)
    (True, False, 3)
    >>> replayed.to_json()
    [['records', 0, 0, [12, 40, 70]]]

    """

    def __init__(self) -> None:
        self._places: set[LetterPlace] = set()
        self._written: list[list[Any]] | None = []

    @classmethod
    def from_json(cls, groups: Iterable[Sequence[Any]]) -> ReplayedLetters:
        """Read what `to_json` gave."""
        replayed = cls()
        for source, partition, repeat, offsets in groups:
            for offset in offsets:
                replayed.add(LetterPlace(source, partition, repeat, offset))
        return replayed

    def to_json(self) -> list[list[Any]]:
        """Return a list for each source, partition and repeat, with its offsets in order."""
        if self._written is None:  # every checkpoint asks, and few have new ones
            groups: dict[tuple[Any, ...], list[int]] = {}
            for place in sorted(self._places):
                groups.setdefault(place[:3], []).append(place.offset)
            self._written = [[*key, offsets] for key, offsets in groups.items()]
        return self._written

    def add(self, place: LetterPlace) -> None:
        """Add a place."""
        self._places.add(place)
        self._written = None

    def discard(self, place: LetterPlace) -> None:
        """Remove a place, if it is there."""
        self._places.discard(place)
        self._written = None

    def __contains__(self, place: LetterPlace) -> bool:
        return place in self._places

    def __len__(self) -> int:
        return len(self._places)


_Group: TypeAlias = Annotated[tuple[Literal["records", "labels"], Count, Count, list[Count]], Strict(False)]


class ReplayedState(StateComponent):
    """The dead letters that were replayed."""

    name = "replayed"
    section = list[_Group]

    def snapshot(self, start: Start, plan: Plan, processor: Processor) -> Snapshot | None:  # noqa: ARG002
        return Snapshot(start.replayed.to_json()) if len(start.replayed) else None

    def restore(self, saved: Saved, start: Start, plan: Plan) -> None:  # noqa: ARG002
        start.replayed = ReplayedLetters.from_json(saved.header.get(self.name) or [])
