"""How the objective fell in a run: looks at a solver, with the CPU seconds of its own work alone."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from benchmarks.solvers.task import Array, Task


class Peer(Protocol):
    """A solver that is advanced bit by bit: its coefficients, and the records whose derivatives it has computed."""

    x: Array
    records: int

    def advance(self, iterations: int) -> None:
        """So many iterations."""
        ...


@dataclass
class LossCurve:
    """The looks at a run, the first of which is before its first iteration.

    A look that is not asked for is NaN.
    """

    passes: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    objective: list[float] = field(default_factory=list)
    test: list[float] = field(default_factory=list)  #: the objective on the test set
    gap: list[float] = field(default_factory=list)  #: with the solver's own dual variables, or the losses' derivatives
    preparation: float = 0.0  #: seconds of clusters, anchors and moments, which `seconds` do not count

    def excess(self, optimum: float) -> Array:
        """Objective minus the optimum, no less than 1e-17."""
        return np.maximum(np.array(self.objective) - optimum, 1e-17)

    def first_below(
        self, optimum: float, target: float, against: Sequence[float] | None = None, stays: bool = True
    ) -> float:
        """Seconds, or what is given `against`, at which the excess is at most `target`; infinite if never.

        Between two looks it is taken to fall geometrically. If it `stays`, it is so small at all later looks, too.
        """
        x = np.array(self.seconds if against is None else against)
        excess = self.excess(optimum)
        above, below = np.flatnonzero(excess > target), np.flatnonzero(excess <= target)
        if not len(above) or (len(below) and below[0] == 0):
            return float(x[0])
        if not len(below) or (stays and above[-1] == len(x) - 1):
            return float("inf")
        at = above[-1] if stays else below[0] - 1
        share = np.log(excess[at] / target) / np.log(excess[at] / excess[at + 1])
        return float(x[at] + share * (x[at + 1] - x[at]))


def look_times(total: int, per_pass: int, first: int, a_pass: int = 2) -> list[int]:
    """Iterations after which to look: doubling from `first`, then `a_pass` times each pass, and at the end.

    >>> look_times(40, per_pass=10, first=1)
    [1, 2, 4, 5, 10, 15, 20, 25, 30, 35, 40]
    """
    every = max(per_pass // a_pass, 1)
    early = {first * 2**k for k in range(60) if first * 2**k < every}
    return sorted({look for look in early | set(range(every, total, every)) | {total} if look <= total})


def follow(
    peer: Peer,
    task: Task,
    looks: Sequence[int],
    until: float | None = None,
    seconds: float = np.inf,
    test: bool = False,
    gap: bool = False,
) -> LossCurve:
    """Advance a peer and look at it after so many iterations each, until an objective or the CPU seconds are reached.

    Compiled code must have been called once, or compiling counts. `test` and `gap` ask for these looks, too.
    """
    curve = LossCurve()
    done, spent = 0, 0.0

    def look() -> None:
        curve.passes.append(peer.records / task.n)
        curve.seconds.append(spent)
        curve.objective.append(task.objective(peer.x))
        curve.test.append(task.test_objective(peer.x) if test else float("nan"))
        curve.gap.append(task.gap(peer.x, getattr(peer, "dual", None)) if gap else float("nan"))

    look()
    for due in looks:
        before = time.process_time()
        peer.advance(due - done)
        spent += time.process_time() - before
        done = due
        look()
        value = curve.objective[-1]
        if (until is not None and value <= until) or spent > seconds or not np.isfinite(value):
            break
    return curve
