"""What is known of one of several models: since when it learns, what it refused, and whether it is disabled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

__all__ = ["ModelStatus"]


@dataclass(slots=True)
class ModelStatus:
    """The status of one of several models on a stream.

    Attributes
    ----------
    began
        How many records had been consumed when it began.
    shown
        How many events it was given since.
    recent_refused
        Of these, the numbers of the latest that it refused, as `DeadLetterRate.recent` gives them.
    disabled
        Why it is disabled; empty where it is not.
    shown_here, refused, not_finite
        Events of this process that it was given, those of them that it refused, and those of which a prediction was no
        finite number.
    seconds
        How long this process was at work on it.

    Examples
    --------
    >>> ModelStatus.from_json(ModelStatus(began=500, shown=20, refused=3).to_json())
    ModelStatus(began=500, shown=20, recent_refused=[], disabled='', shown_here=0, refused=0, not_finite=0, seconds=0.0)

    """

    began: int = 0
    shown: int = 0
    recent_refused: list[int] = field(default_factory=list)
    disabled: str = ""
    shown_here: int = 0
    refused: int = 0
    not_finite: int = 0
    seconds: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """Return what a checkpoint keeps of it."""
        return {
            "began": self.began,
            "shown": self.shown,
            **({"recent_refused": self.recent_refused} if self.recent_refused else {}),
            **({"disabled": self.disabled} if self.disabled else {}),
        }

    @classmethod
    def from_json(cls, kept: Mapping[str, Any]) -> Self:
        """Read what `to_json` gave."""
        began, shown = kept.get("began", 0), kept.get("shown", 0)
        return cls(began, shown, list(kept.get("recent_refused", ())), kept.get("disabled", ""))
