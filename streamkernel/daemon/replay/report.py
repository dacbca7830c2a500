"""The outcome of a replay: how many letters were replayed, and which are still dead, and why."""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["ReplayReport"]

_log = logging.getLogger(__name__)

_MOST_LOGGED = 20


@dataclass
class ReplayReport:
    """Counts what became of the dead letters of a file.

    Attributes
    ----------
    path
        The file.
    n_replayed, n_before
        Letters that were replayed now, and in a replay before.
    n_ahead
        Letters of records that the daemon has yet to read, or to read again.
    still_dead
        Letters that cannot be used as they are, by reason.
    stopped
        Whether a signal ended the replay before the last letter.

    """

    path: Path
    n_replayed: int = 0
    n_before: int = 0
    n_ahead: int = 0
    still_dead: Counter[str] = field(default_factory=Counter)
    stopped: bool = False

    @property
    def n_still_dead(self) -> int:
        """How many letters cannot be used as they are."""
        return self.still_dead.total()

    def add_still_dead(self, where: str, reason: str, detail: str) -> None:
        """Count a letter that cannot be used as it is, and log where it is if it is one of the first."""
        self.still_dead[reason] += 1
        if self.n_still_dead <= _MOST_LOGGED:
            _log.warning("%s, %s: still dead: %s, %s", self.path, where, reason, detail)
        elif self.n_still_dead == _MOST_LOGGED + 1:
            _log.warning("%s: more letters are still dead. Only their number is logged", self.path)

    def sentence(self) -> str:
        """Return the outcome in one sentence."""
        parts = [f"{self.n_replayed:,} replayed"]
        if self.n_before:
            parts.append(f"{self.n_before:,} replayed before")
        if self.still_dead:
            reasons = ", ".join(f"{count:,} {reason}" for reason, count in self.still_dead.most_common())
            parts.append(f"{self.n_still_dead:,} still dead ({reasons}): fix them and replay again")
        if self.n_ahead:
            parts.append(f"{self.n_ahead:,} left to the daemon, which still has to read their records")
        if self.stopped:
            parts.append("stopped before the end: replay again")
        return f"{self.path}: {'; '.join(parts)}"
