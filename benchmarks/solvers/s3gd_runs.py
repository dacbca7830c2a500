"""The runs of the page of S3GD: the papers' step-size rule, curves at that step, and the switch to SVRG."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from benchmarks.solvers.control_variate import SCV
from benchmarks.solvers.corrected import AnchoredSteps, VarianceReducedSteps
from benchmarks.solvers.curve import LossCurve, Peer, follow, look_times
from benchmarks.solvers.gradient import SGD, StratifiedSGD
from benchmarks.solvers.optimum import Optimum
from benchmarks.solvers.primal_dual import of_history
from benchmarks.solvers.task import Array, Task
from streamkernel.window import S3GD, SVRG
from streamkernel.window.linear_model import History

#: The constant steps of the papers, of which the largest stable one is taken.
STEPS = (0.1, 1.0, 5.0, 10.0)
#: A step is stable where the objective's mean over the last iterations is within this share of the optimum.
STABLE = 0.01
#: Iterations of a run, and how many of them are the last; of mini-batches of 10.
ITERATIONS, LAST = 10_000, 2_500

#: Values in the rows from which runs are fewer.
LARGE = 10_000_000

#: Makes a solver with a step and a seed.
Make = Callable[[float, int], Peer]


def contenders(task: Task, strata: Array) -> dict[str, Make]:
    """The stochastic solvers with a constant step."""
    return {
        "SGD": lambda step, seed: SGD(task, step, seed=seed),
        "SSGD": lambda step, seed: StratifiedSGD(task, step, strata, seed=seed),
        "SCV": lambda step, seed: SCV(task, step, seed=seed),
        "SVRG": lambda step, seed: VarianceReducedSteps(task, step, seed=seed),
        "S3GD": lambda step, seed: AnchoredSteps(task, step, seed=seed),
    }


@dataclass
class Plateau:
    """Where a run with one step ends."""

    excess: float  #: the objective's mean over the last iterations, relative to the optimum, less 1
    seconds: float  #: CPU seconds of 50 iterations

    @property
    def stable(self) -> bool:
        return self.excess <= STABLE


def plateau(make: Make, step: float, task: Task, best: Optimum, iterations: int = ITERATIONS) -> Plateau:
    """Run to the end and look twenty times at the last quarter of the iterations."""
    last = iterations * LAST // ITERATIONS
    every = max(last // 20 // 20, 1) * 20
    curve = follow(make(step, 1), task, [*range(iterations - last, iterations + 1, every)])
    ends = curve.objective[2:]
    excess = float(np.mean(ends)) / best.objective - 1 if np.isfinite(ends).all() and len(ends) > 1 else np.inf
    return Plateau(excess, curve.seconds[-1] / iterations * 50)


def chosen(plateaus: dict[float, Plateau]) -> float:
    """The largest step that is stable, or the smallest of all."""
    return max((step for step, found in plateaus.items() if found.stable), default=min(plateaus))


def descend(make: Make, step: float, task: Task, seeds: Sequence[int], iterations: int = ITERATIONS) -> list[LossCurve]:
    """The curve of every seed; looks double from 20 iterations on, and then are 1,000 apart."""
    return [follow(make(step, seed), task, look_times(iterations, 1_000, 20, 1), test=True) for seed in seeds]


def warm(makes: dict[str, Make]) -> None:
    """Call every solver for a moment, that all code is compiled."""
    for make in makes.values():
        make(1e-3, 1).advance(20)


def publicly(task: Task, seeds: Sequence[int], gap: float) -> dict[str, list[LossCurve]]:
    """`S3GD` and `SVRG` of `streamkernel.window` as they are by default, to a duality gap.

    S3GD switches to SVRG; "S3GD, then SVRG" has the seconds of the iterations, and in `preparation` those of the
    anchors.
    """
    found: dict[str, list[LossCurve]] = {"SVRG, its defaults": [], "S3GD, no switch": [], "S3GD, then SVRG": []}
    every = 0.02 if task.A.size < LARGE else 0.2  # each look costs a pass
    for seed in (0, *seeds):
        models = {
            "SVRG, its defaults": SVRG(l2=task.l2, tol=gap, max_passes=400, seed=seed),
            "S3GD, no switch": S3GD(l2=task.l2, tol=gap, max_passes=5, switch=False, record_every=every, seed=seed),
            "S3GD, then SVRG": S3GD(l2=task.l2, tol=gap, max_passes=400, record_every=every, seed=seed),
        }
        for name, model in models.items():
            model.fit(task.A, task.y, sample_weight=task.w)
            assert isinstance(model.history_, History)
            if seed:  # the first is to compile
                curve = of_history(model.history_)
                curve.preparation = getattr(model, "preparation_seconds_", 0.0)
                found[name].append(curve)
    return found


def prepared(curves: Sequence[LossCurve]) -> float:
    """Median seconds of preparation."""
    return median(curve.preparation for curve in curves)


def correlations(
    task: Task, anchors: Sequence[int], rounds: Sequence[int], step: float = 1.0
) -> dict[str, list[float]]:
    """Pearson correlation of each solver's stochastic gradient with the exact one, the mean of 200 mini-batches.

    Both are taken at w after so many rounds of 20 steps of S3GD; the earlier coefficients that SVRG and S3GD correct
    by are those 20 steps before.
    """
    models = {m: AnchoredSteps(task, step, anchors=m) for m in anchors}
    walker = AnchoredSteps(task, step)
    found: dict[str, list[float]] = {"SGD": [], "SVRG": [], **{f"S3GD, {m} anchors": [] for m in anchors}}
    done = 0
    for due in rounds:
        walker.advance(20 * (due - 1 - done))
        earlier = walker.x.copy()
        walker.advance(20)
        done = due
        batches = np.random.default_rng(due).integers(task.n, size=(200, 10))
        slopes, before = (task.w * task.slopes(x) for x in (walker.x, earlier))
        exact = task.A.T @ slopes / task.n

        def mean(known: Array, gradient: Array, s: Array = slopes, b: Array = batches, e: Array = exact) -> float:
            taken = np.einsum("ij,ijk->ik", (s - known)[b], task.A[b]) / b.shape[1] + gradient
            return float(np.mean([np.corrcoef(one, e)[0, 1] for one in taken]))

        found["SGD"].append(mean(np.zeros(task.n), np.zeros(task.p)))
        found["SVRG"].append(mean(before, task.A.T @ before / task.n))
        for m, model in models.items():
            known, gradient = model.estimates(earlier)
            found[f"S3GD, {m} anchors"].append(mean(task.w * known, gradient))
    return found
