"""The counts of a stream: every record and every label that was taken is accounted for."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Self

__all__ = ["Counts", "LabelCounts", "RecordCounts"]


@dataclass(slots=True)
class Counts:
    """Numbers of records by what became of them."""

    def to_json(self) -> dict[str, int]:
        """Return the counts by name."""
        return asdict(self)

    def add(self, other: Self) -> None:
        """Add the counts of a chunk.

        Examples
        --------
        >>> counts = RecordCounts(consumed=3)
        >>> counts.add(RecordCounts(consumed=2, predicted=1))
        >>> counts.consumed, counts.predicted
        (5, 1)

        """
        for field in fields(self):
            setattr(self, field.name, getattr(self, field.name) + getattr(other, field.name))


@dataclass(slots=True)
class RecordCounts(Counts):
    """What became of the records since the first start.

    In mode learn, ``learned + unlabeled + skipped + dead == consumed``; in mode predict ``predicted + skipped + dead``
    is, for a label is of no use there. With late labels, add the records that wait for theirs and those that expired.

    Attributes
    ----------
    consumed
        Records taken from the source.
    predicted
        Records the model gave a prediction for.
    learned
        Records the model learned from.
    unlabeled
        Records that are predicted only: without a target, or of a class past the limit of the model.
    skipped
        Empty lines and tombstones.
    dead
        Dead letters.

    """

    consumed: int = 0
    predicted: int = 0
    learned: int = 0
    unlabeled: int = 0
    skipped: int = 0
    dead: int = 0


@dataclass(slots=True)
class LabelCounts(Counts):
    """What became of records that were kept for their labels, and of labels, since the first start.

    With the records that wait now and the labels that wait now, ``kept == matched + expired + records waiting`` and
    ``taken == matched + unmatched + doubled + skipped + dead + labels waiting``.

    Attributes
    ----------
    kept
        Records that were predicted and then kept until their label comes.
    matched
        Of these, those whose label came; in mode learn they are learned.
    expired
        Of these, those that were given up: their time was over, or too many waited.
    keyless, repeated
        Records that could not be kept: without a key, or with that of a record before.
    taken
        Labels taken from their source.
    early
        Labels that came before their record; they wait for it, and end as one of the others.
    unmatched
        Labels whose record did not come in time, or had expired.
    doubled
        Labels of records that had one already.
    skipped, dead
        Empty lines and tombstones, and dead letters, of the labels' source.

    """

    kept: int = 0
    matched: int = 0
    expired: int = 0
    keyless: int = 0
    repeated: int = 0
    taken: int = 0
    early: int = 0
    unmatched: int = 0
    doubled: int = 0
    skipped: int = 0
    dead: int = 0

    def balances(self, pending: int, waiting: int) -> bool:
        """Return whether the counts add up with `pending` records and `waiting` labels."""
        settled = self.matched + self.unmatched + self.doubled + self.skipped + self.dead
        return self.kept == self.matched + self.expired + pending and self.taken == settled + waiting
