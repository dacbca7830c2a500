"""The optimum of a task by another method: Newton's, on a smoothed absolute value and then within an orthant."""

from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from benchmarks.solvers.task import Array, Task, curvature

#: Widths of the smoothed absolute value, one after the other.
_WIDTHS = 0.4 ** np.arange(2, 24)


class Optimum(NamedTuple):
    """Where the objective is least."""

    x: Array  #: shape (p,)
    objective: float
    gap: float  #: the duality gap there, which bounds how far the objective is from the least


def optimum(task: Task, tol: float = 1e-14) -> Optimum:
    """Solve until the gap, relative to the objective, is at most `tol`, or no longer falls.

    With l1, |x| is first sqrt(x^2 + width^2) of a width that falls to 1e-9; then Newton steps go on among the
    coefficients that are not 0 or whose derivative is beyond l1, and one that would change its sign stays at 0.
    """
    x = np.zeros(task.p)
    for width in _WIDTHS if task.l1 else ():
        x = _smoothed(task, x, float(width))
    if task.l1:
        x = np.where(np.abs(x) > 3e-8, x, 0.0)
    best = Optimum(x, task.objective(x), task.gap(x))
    patience = 0
    while best.gap > tol * best.objective and patience < 6:
        x = _within_orthant(task, x)
        gap = task.gap(x)
        patience = 0 if gap < best.gap else patience + 1
        if gap < best.gap:
            best = Optimum(x, task.objective(x), gap)
    return best


def _smoothed(task: Task, x: Array, width: float, steps: int = 50) -> Array:
    """Newton steps, halved until the objective falls enough, on the smoothed objective."""

    def value(x: Array) -> float:
        mean = task.objective(x) - task.l1 * float(np.abs(x).sum())
        return mean + task.l1 * float(np.sqrt(x**2 + width**2).sum())

    now = value(x)
    for _ in range(steps):
        root = np.sqrt(x**2 + width**2)
        slope = task.gradient(x) + task.l2 * x + task.l1 * x / root
        direction = -_solve(_hessian(task, x), task.l2 + task.l1 * width**2 / root**3, slope)
        decrease = float(slope @ direction)
        share = 1.0
        while share > 1e-10 and not (new := value(x + share * direction)) <= now + 1e-4 * share * decrease:
            share *= 0.5
        if share <= 1e-10:
            return x
        x = x + share * direction
        if -decrease < 1e-15:
            return x
        now = new
    return x


def _within_orthant(task: Task, x: Array) -> Array:
    """A Newton step, halved until the objective does not rise by more than its last digits."""
    slope = task.gradient(x) + task.l2 * x
    signs = np.where(x != 0, np.sign(x), -np.sign(slope))
    free = (x != 0) | (np.abs(slope) > task.l1)
    direction = np.zeros_like(x)
    hessian = _hessian(task, x)[np.ix_(free, free)]
    direction[free] = -_solve(hessian, np.full(int(free.sum()), task.l2), (slope + task.l1 * signs)[free])
    now, share = task.objective(x), 1.0
    while share > 1e-10:
        new = x + share * direction
        if task.l1:
            new = np.where(new * signs > 0, new, 0.0)
        if task.objective(new) <= now * (1 + 1e-15):
            return np.asarray(new)
        share *= 0.5
    return x


def _hessian(task: Task, x: Array) -> Array:
    """Of the mean loss, through the factors where there are."""
    weights = task.w * curvature(task.loss, task.A @ x, task.y) / task.n
    kept = weights > 0
    rows = task.A if task.factors is None else task.factors[0]
    rows = rows[kept]
    inner = (rows.T * weights[kept]) @ rows
    return np.asarray(inner if task.factors is None else task.factors[1].T @ inner @ task.factors[1])


def _solve(matrix: Array, diagonal: Array | float, right: Array) -> Array:
    """(matrix + diagonal)^-1 right."""
    return np.asarray(cho_solve(cho_factor(matrix + np.diag(np.broadcast_to(diagonal, len(right)))), right))
