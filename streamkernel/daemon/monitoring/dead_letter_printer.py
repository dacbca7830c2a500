"""Dead letters on standard error, for a run that has no file for them: the first ones, and how many there were."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from streamkernel.connectors.ports import Position, Sink, Source
from streamkernel.daemon.monitoring.dead_letter_log import place_of
from streamkernel.daemon.monitoring.visible import visible

__all__ = ["DeadLetterPrinter"]

_MOST_SHOWN = 10
_MOST_RAW = 120


class DeadLetterPrinter(Sink):
    """A sink that prints the first ten dead letters to standard error, a line each, and counts all of them.

    Parameters
    ----------
    name
        What the records are from.
    source
        The source itself, which knows the line of an offset.

    Attributes
    ----------
    reasons
        How many there were, by reason.

    """

    def __init__(self, name: str, source: Source | None = None) -> None:
        self._source = source
        self._name = "standard input" if name == "-" else name
        self.reasons: Counter[str] = Counter()

    def open(self, mark: Mapping[str, Any] | int | None = None) -> None:
        """Do nothing."""

    def write(self, lines: Sequence[Mapping[str, Any]], positions: Sequence[Position]) -> None:  # noqa: ARG002
        """Print dead letters, as long as there were few."""
        for letter in lines[: max(0, _MOST_SHOWN - self.reasons.total())]:
            raw, place = letter["raw"], place_of(letter, self._source)
            cut = "..." if len(raw) > _MOST_RAW else ""
            text = f"{self._name}, {place}: {letter['reason']}: {letter['detail']}: {raw[:_MOST_RAW]}{cut}"
            print(visible(text), file=sys.stderr)
        self.reasons.update(letter["reason"] for letter in lines)

    def summarize(self, records: int) -> None:
        """Print how many of the records were dead letters, by reason, if any was."""
        dead = self.reasons.total()
        if dead:
            counts = ", ".join(f"{count:,} {reason}" for reason, count in self.reasons.most_common())
            shown = f"; the first {_MOST_SHOWN} are shown" if dead > _MOST_SHOWN else ""
            text = f"{self._name}: {dead:,} of {records:,} records have no prediction: {counts}{shown}"
            print(visible(text), file=sys.stderr)

    def flush(self) -> None:
        """Return None: there is nothing to record."""

    @property
    def exactly_once(self) -> bool:
        """False: what is on standard error cannot be taken back."""
        return False

    def close(self) -> None:
        """Do nothing."""
