"""Alternatives measured side by side: every one of them in every round, and the ratios of each round.

What disturbs the machine for a while then disturbs all of them. Only CPU time of this thread's process is counted.
"""

import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

Calls = Mapping[str, Callable[[], object]]


def interleaved(calls: Calls, rounds: int, at_least: float = 0.02) -> dict[str, list[float]]:
    """CPU seconds of one call of everything in every round.

    Parameters
    ----------
    calls
        By name; each is called twice before the first round.
    rounds
        How often all are called in turn, every other time from the last to the first.
    at_least
        A call that takes fewer seconds is repeated until about so many have passed; 0 for one call a round.

    """
    repeats = {}
    for name, call in calls.items():
        call()
        repeats[name] = max(1, math.ceil(at_least / max(_seconds(call, 1), 1e-7)))
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for number in range(rounds):
        for name in list(calls) if number % 2 == 0 else reversed(list(calls)):
            seconds[name].append(_seconds(calls[name], repeats[name]))
    return seconds


def _seconds(call: Callable[[], object], repeats: int) -> float:
    before = time.process_time()
    for _ in range(repeats):
        call()
    return (time.process_time() - before) / repeats


def over(numerator: Sequence[float], denominator: Sequence[float]) -> list[float]:
    """The ratio of every round."""
    return [a / b for a, b in zip(numerator, denominator, strict=True)]


def spread(values: Sequence[float]) -> str:
    """Median, lowest and highest, to three digits or so."""
    middle = statistics.median(values)
    digits = max(0, 2 - math.floor(math.log10(middle))) if middle > 0 else 0
    return f"{middle:,.{digits}f} ({min(values):,.{digits}f} to {max(values):,.{digits}f})"


class Ratio(NamedTuple):
    """A line of the table of ratios."""

    number: int  #: which of the nine it belongs to
    what: str
    values: Sequence[float]  #: of every round
    target: float | None = None
    at_least: bool = False  #: whether the target is the least, not the most

    def row(self) -> list[str]:
        """Number, what, target, measured, and whether the median reaches the target."""
        middle = statistics.median(self.values)
        if self.target is None:
            target, verdict = "", ""
        else:
            target = f"{'>=' if self.at_least else '<='} {self.target:,g}"
            short = 1 - middle / self.target if self.at_least else middle / self.target - 1
            verdict = "reached" if short <= 0 else f"missed by {short:.1%}"
        return [str(self.number), self.what, target, spread(self.values), verdict]


HEADER = ["#", "what", "target", "measured, median (lowest to highest)", "target reached"]
