"""The last dead letters, cut to what a reader of the status page may see."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

__all__ = ["LastDeadLetters"]

_KEPT = 20
_MOST_DETAIL = 500
# Secrets are found in a text that is cut after them only.
_LONGEST_SECRET = 4096


class LastDeadLetters:
    """Ring buffer of the last twenty dead letters, of which no more is kept than is shown.

    Parameters
    ----------
    raw_chars
        How many characters of a raw record are kept; 0: none.
    redact
        Takes secrets of the configuration out of a text.
    now
        Gives the time, in seconds since 1970.

    Attributes
    ----------
    letters
        A copy that nobody writes to, the latest first.

    """

    def __init__(
        self, raw_chars: int, redact: Callable[[str], str] = str, now: Callable[[], float] = time.time
    ) -> None:
        self._raw_chars = raw_chars
        self._redact = redact
        self._now = now
        self._ring: deque[dict[str, Any]] = deque(maxlen=_KEPT)
        self.letters: tuple[dict[str, Any], ...] = ()

    def add(self, letters: Sequence[Mapping[str, Any]]) -> None:
        """Take the letters of a chunk, as `lines.dead_letter` makes them; of a flood, only the last."""
        if not letters:
            return
        self._ring.extend(map(self._cut, letters[-_KEPT:]))
        self.letters = tuple(reversed(self._ring))

    def _cut(self, letter: Mapping[str, Any]) -> dict[str, Any]:
        kept: dict[str, Any] = {
            "time": round(self._now(), 3),
            "reason": letter["reason"],
            # Before it is cut, for half a secret is not found.
            "detail": self._redact(letter["detail"])[:_MOST_DETAIL],
            "position": letter["position"],
        }
        if self._raw_chars:
            raw = letter["raw"]
            kept |= {
                "encoding": letter["encoding"],
                "raw": self._redact(raw[: self._raw_chars + _LONGEST_SECRET])[: self._raw_chars],
                "raw_chars": len(raw),
            }
        return kept
