"""One run of proximal stochastic gradient steps: its position, its cost, and the exact gradient there."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from streamkernel.compute.semi_stochastic import full_gradient, mean_loss, variance_reduced_steps
from streamkernel.compute.window_losses import multiply, records_gap, score_derivatives
from streamkernel.state import Array
from streamkernel.window.linear_model import History, LinearProblem

__all__ = ["Descent"]

# Steps between two full gradients, where the run is to find their number: the first, fewest, and most in passes.
_FIRST_STEPS = 200
_FEWEST_STEPS = 25
_MOST_PASSES = 2.0
# Coefficients of a gap that rose by more, as a logarithm, are given up.
_LARGEST_RISE = 1.0
# What a row drawn at random costs, in rows read one after the other.
_DRAWN_ROW = 2.0


class Descent:
    """Coefficients on their way to the minimum.

    - start: The coefficients it begins with, shape (p,).
    - step: The steps' length.
    - batch: Rows a step.
    - seed: Of the rows that are drawn.
    - w: The coefficients, shape (p,).
    - passes, seconds: What the work so far read, in records over n, and took.
    - gradient: That of the mean loss where `look` was called last, shape (p,).
    - derivatives: Each row's derivative times its weight there, shape (n,).
    - gap: The duality gap there.
    - rows: The history: passes, seconds, objective and gap.
    """

    def __init__(self, problem: LinearProblem, start: Array, step: float, batch: int, seed: int) -> None:
        self.problem, self.batch = problem, batch
        n, p = problem.X.shape
        self.loss = problem.loss.kind, problem.loss.beta
        self.data = problem.X, problem.y, problem.weights
        self.w = start.copy()
        self.step = step
        self.state = np.array([seed], np.uint64)
        self.gradient, self.derivatives, self.gap = np.empty(p), np.empty(n), np.nan
        self.passes = self.seconds = 0.0
        self.rows: list[tuple[float, float, float, float]] = []

    @property
    def penalty(self) -> tuple[float, float, float]:
        """The steps' length, l2 and l1."""
        return self.step, self.problem.regularizer.l2, self.problem.regularizer.l1

    @property
    def history(self) -> History:
        """What was recorded."""
        return History.of(self.rows)

    def within(self, max_passes: float, steps: int) -> int:
        """Limit a number of steps to those that `max_passes` passes have; at least one."""
        return min(steps, max(int(max_passes * len(self.problem.X) / self.batch), 1))

    def compile(self) -> None:
        """Let what is to be called be compiled before time is measured."""
        X, y, weights = (array[:1] for array in self.data)
        gradient, w = np.empty_like(self.w), self.w.copy()
        mean_loss(*self.loss, X, y, weights, w)
        full_gradient(*self.loss, X, y, weights, w, self.derivatives, gradient)
        kind, beta = self.loss
        data, penalty, state = (X, y, weights), self.penalty, self.state
        variance_reduced_steps(kind, beta, data, self.derivatives, None, gradient, w, 0, 1, penalty, state)

    def work(self, passes: float, function: Callable[..., None], *arguments: Any) -> None:
        """Call a function that reads `passes` times n records, and count its time."""
        begin = time.perf_counter()
        function(*arguments)
        self.seconds += time.perf_counter() - begin
        self.passes += passes

    def look(self, counted: bool = True) -> None:
        """Take the full gradient and the duality gap, and record the position; as work that counts, or not."""
        spent = self.passes, self.seconds
        # The gap without l2 reads the rows once more.
        self.work(1.0 if self.problem.regularizer.l2 else 2.0, self._look)
        if not counted:
            self.passes, self.seconds = spent
        self.record(self.gap)

    def _look(self) -> None:
        full_gradient(*self.loss, *self.data, self.w, self.derivatives, self.gradient)
        regularizer = self.problem.regularizer
        # Fenchel's gap at the derivatives as the dual variables: what the losses and their conjugates add to is
        # <w, gradient>.
        with np.errstate(over="ignore", invalid="ignore"):
            # A sum of NumPy, not of a library whose threads may change last bits.
            along = float((self.w * self.gradient).sum())
            if regularizer.l2:
                gap = regularizer.value(self.w) + regularizer.conjugate(-self.gradient) + along
            else:
                gap = self._gap_of_l1(along)
        self.gap = max(gap, 0.0)

    def _gap_of_l1(self, along: float) -> float:
        """The gap at the derivatives times the largest share up to 1 at which l1's conjugate is finite."""
        problem, (kind, beta) = self.problem, self.loss
        largest = float(np.abs(self.gradient).max())
        share = min(problem.regularizer.l1 / largest, 1.0) if largest else 1.0
        z, dual = np.empty(len(problem.X)), np.empty(len(problem.X))
        multiply(problem.X, self.w, z)
        if beta:
            z = beta * (z - problem.y)
        # Divided by the weights, `derivatives` could round to numbers outside the domain of the losses' conjugates.
        score_derivatives(kind, z, problem.y, dual)
        of_losses = records_gap(kind, problem.y, problem.weights, share * dual, z)[1] / (beta or 1.0)
        return float(of_losses + problem.regularizer.value(self.w) + share * along)

    def record(self, gap: float = np.nan) -> None:
        """Add the position to the history. The time for this does not count.

        ValueError: The objective is not finite.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            objective = mean_loss(*self.loss, *self.data, self.w) + self.problem.regularizer.value(self.w)
        if not np.isfinite(objective):
            raise ValueError(f"steps of length {self.step:.3g} diverge: use a smaller step, or scale y and coef_init")
        self.rows.append((self.passes, self.seconds, float(objective), gap))

    def retreat(self, w: Array) -> None:
        """Go back to coefficients from which the steps diverged, and on with steps of a tenth of the length."""
        self.w, self.step = w, 0.1 * self.step

    def take_corrected_steps(self, steps: int) -> None:
        """Take SVRG's steps, corrected by the gradient of the last `look`."""
        self.work(
            steps * self.batch / len(self.problem.X),
            variance_reduced_steps,
            *self.loss,
            self.data,
            self.derivatives,
            None,
            self.gradient,
            self.w,
            steps,
            self.batch,
            self.penalty,
            self.state,
        )

    def finish(self, tol: float, max_passes: float, inner: int | None) -> None:
        """Continue by SVRG, from a `look`, to a duality gap of `tol` or past `max_passes`.

        - tol: The gap to reach.
        - max_passes: Passes after which no full gradient follows.
        - inner: Steps between two full gradients. None looks for their number: what contracts the gap most for its
          cost.
        """
        n = len(self.problem.X)
        most = max(int(_MOST_PASSES * n / self.batch), 1)
        steps, factor, before = self.within(max_passes, inner) if inner else min(_FIRST_STEPS, most), 2.0, -np.inf
        while self.gap > tol and self.passes < max_passes:
            gap, w = self.gap, self.w.copy()
            self.take_corrected_steps(steps)
            if inner:
                self.look()
                continue
            try:
                self.look()
            except ValueError:
                self.retreat(w)
                self.look()
                steps, before = min(_FEWEST_STEPS, most), 0.0
                continue
            contraction = np.log(gap / self.gap) if self.gap > 0.0 else np.inf
            if contraction < 0.0:
                if steps <= _FEWEST_STEPS:
                    self.step *= 0.5
                if contraction < -_LARGEST_RISE:
                    self.w = w
                    self.look()
                factor, before = 0.25, 0.0
            else:
                rate = contraction / (1.0 + _DRAWN_ROW * steps * self.batch / n)
                factor = factor if rate >= before else 1.0 / factor
                before = rate
            steps = min(max(int(steps * factor), min(_FEWEST_STEPS, most)), most)
            factor = min(max(factor, 0.5), 2.0)
