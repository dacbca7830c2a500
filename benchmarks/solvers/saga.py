"""scikit-learn's SAGA, followed by runs of more and more passes, each of which begins as the shorter ones do."""

import time
import warnings

import numpy as np

from benchmarks.solvers.curve import LossCurve
from benchmarks.solvers.task import Task


def saga(task: Task, seed: int, until: float, seconds: float) -> LossCurve:
    """Runs of 1, 1.4, 2, 2.8, 4, ... passes of LogisticRegression(solver="saga"), rounded.

    Parameters
    ----------
    task
        Of the logistic loss.
    seed
        `random_state`.
    until
        The objective at which runs end.
    seconds
        The length of the longest run, after which runs end.

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
