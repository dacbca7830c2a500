"""Counts that add up, chunk by chunk."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Self

__all__ = ["Counts"]


@dataclass(slots=True)
class Counts:
    """The base of accounts: its fields are numbers of records."""

    def to_json(self) -> dict[str, int]:
        """Give the counts by name."""
        return asdict(self)

    def add(self, other: Self) -> None:
        """Add the counts of a chunk.

        Examples
        --------
        >>> from streamkernel.daemon.stream.account import Account
        >>> account = Account(consumed=3)
        >>> account.add(Account(consumed=2, predicted=1))
        >>> account.consumed, account.predicted
        (5, 1)

        """
        for field in fields(self):
            setattr(self, field.name, getattr(self, field.name) + getattr(other, field.name))
