"""DSPDC, SPDC, SDCA and SAGA, run on a task until the objective is near the optimum or some seconds are over."""

import time
import warnings
from collections.abc import Callable
from functools import partial

import numpy as np

from benchmarks.solvers.curve import LossCurve, follow, look_times
from benchmarks.solvers.dual_ascent import SDCA
from benchmarks.solvers.optimum import Optimum
from benchmarks.solvers.task import Task
from streamkernel.window import DSPDC
from streamkernel.window.iterates import Factorized
from streamkernel.window.linear_model import History

#: How far above the optimum a run is to end.
TARGET = 1e-6

#: Passes that tell how many fit in a time.
_FEW = 8

#: Runs a solver with a seed.
Solve = Callable[[int], LossCurve]


def solvers(task: Task, primal: int, best: Optimum, seconds: float, longer: float = 0.0) -> dict[str, Solve]:
    """What is compared on a task, by name; without factors all are "on A" and are called by their plain names.

    A run ends after so many CPU seconds; on factors after the longer of the two times, of SDCA after half of that.
    `primal` is q of DSPDC.
    """
    until = best.objective + TARGET
    found: dict[str, Solve] = {}
    for form in ("", " on A") if task.factors else ("",):
        factors = task.factors is not None and not form
        limit = max(seconds, longer) if factors else seconds
        found["DSPDC" + form] = partial(primal_dual, task, primal, factors, seconds=limit)
        found["SPDC" + form] = partial(primal_dual, task, None, factors, seconds=limit)
        found["SDCA" + form] = partial(ascend_task, task, factors, until=until, seconds=max(seconds, limit / 2))
    if task.loss == "log":
        found["SAGA on A" if task.factors else "SAGA"] = partial(saga, task, until=until, seconds=seconds)
    return found


def primal_dual(task: Task, primal: int | None, factors: bool, seed: int, seconds: float) -> LossCurve:
    """DSPDC, or SPDC where `primal` is None, until its own gap is at most the target.

    A few passes tell before how many fit in the seconds given.
    """
    data = Factorized(*task.factors) if factors and task.factors else task.rows

    def solve(passes: int) -> History:
        model = DSPDC(task.loss, task.l2, task.l1, 1, primal, tol=TARGET, max_passes=passes, seed=seed)
        history = model.fit(data, task.y, sample_weight=task.w).history_
        assert isinstance(history, History)
        return history

    few = solve(_FEW)
    return of_history(solve(max(int(seconds / few.seconds[-1] * few.passes[-1]), _FEW)))


def of_history(history: History) -> LossCurve:
    """The looks that a solver itself took."""
    passes, seconds, objective, gap = (part.tolist() for part in history)
    return LossCurve(passes, seconds, objective, [float("nan")] * len(passes), gap)


def ascend_task(task: Task, factors: bool, seed: int, until: float, seconds: float) -> LossCurve:
    """SDCA, looked at four times in a pass and less often later."""
    looks = look_times(10_000 * task.n, 16 * task.n, task.n // 4)
    return follow(SDCA(task, factors, seed), task, looks, until, seconds, gap=True)


def saga(task: Task, seed: int, until: float, seconds: float) -> LossCurve:
    """Runs of 1, 1.4, 2, 2.8, 4, ... passes, rounded, of scikit-learn's SAGA, until one comes to an objective.

    Each begins as the shorter ones do; `seconds` are the length of the longest.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    assert task.loss == "log"
    total = task.l1 + task.l2
    curve = LossCurve([0.0], [0.0], [task.objective(np.zeros(task.p))], [float("nan")], [task.gap(np.zeros(task.p))])
    for passes in sorted({round(2 ** (k / 2)) for k in range(40)}):
        model = LogisticRegression(
            C=1 / (task.n * total),
            l1_ratio=task.l1 / total,
            solver="saga",
            fit_intercept=False,
            tol=1e-30,
            max_iter=passes,
            random_state=seed,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            before = time.process_time()
            model.fit(task.rows, task.y, sample_weight=task.w)
            spent = time.process_time() - before
        x = model.coef_[0]
        curve.passes.append(float(passes))
        curve.seconds.append(spent)
        curve.objective.append(task.objective(x))
        curve.test.append(task.test_objective(x))
        curve.gap.append(task.gap(x))
        if curve.objective[-1] <= until or spent > seconds:
            break
    return curve


def warm(task: Task, primal: int) -> None:
    """Call every solver for a moment, that all code is compiled."""
    for solve in solvers(task, primal, Optimum(np.zeros(task.p), np.inf, 0.0), 0.0).values():
        solve(0)
