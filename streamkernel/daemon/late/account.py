"""The account of late labels: every record kept for one and every label that came is accounted for."""

from __future__ import annotations

from dataclasses import dataclass

from streamkernel.daemon.stream.counts import Counts

__all__ = ["LateAccount"]


@dataclass(slots=True)
class LateAccount(Counts):
    """What became of records that were kept for their labels, and of labels, since the first start.

    With the records that wait now and the labels that wait now, ``kept == matched + expired + records waiting`` and
    ``taken == matched + unmatched + doubled + skipped + dead + labels waiting``.

    Attributes
    ----------
    kept
        Records that were predicted and then kept until their label comes.
    matched
        Of these, those whose label came; in mode learn they are learnt.
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
        """Say whether it adds up with so many records and so many labels that wait."""
        settled = self.matched + self.unmatched + self.doubled + self.skipped + self.dead
        return self.kept == self.matched + self.expired + pending and self.taken == settled + waiting
