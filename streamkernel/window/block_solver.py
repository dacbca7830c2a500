"""The doubly stochastic primal-dual method on blocks, from its step sizes to its stopping rule."""

import contextlib
import math
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from streamkernel.window.block_iterates import BlockIterates, draw
from streamkernel.window.history import History
from streamkernel.window.matrix_problem import MatrixProblem
from streamkernel.window.step_sizes import StepSizes, rule_of_thumb, step_sizes

__all__ = ["BlockSolution", "BlockSolver"]

Array = np.ndarray[Any, np.dtype[Any]]

#: Draws of records and blocks of which the largest scale is taken.
_DRAWS = 10
#: The proofs' factor to spare: tau sigma = n m q / (4 p Lambda) is a quarter of what keeps the iterates stable.
_SPARE = 0.25
#: A gap this many times the first, or this many passes above the least, shows that Lambda is too small.
_RISEN, _PATIENCE = 2.0, 20


class BlockSolution(NamedTuple):
    """What a solve comes to."""

    X: Array  #: blocks, shape (p, size)
    beta: Array  #: dual variables, shape (n,)
    history: History
    n_projections: int  #: eigenvalue decompositions of the iterations


class _Least(NamedTuple):
    """The iterates of the least gap so far."""

    gap: float
    X: Array
    beta: Array


class BlockSolver:
    """Iterates until the duality gap is small.

    The gap is looked at after each pass: as many iterations as update every coordinate once on average. Where it has
    risen to twice what it was at first, the solve resumes from its least with a doubled Lambda; where it has not fallen
    below its least for 20 passes (then for 40, 80, ...), Lambda is doubled.

    Parameters
    ----------
    dual, primal
        m and q: the records and blocks of an iteration.
    scale
        Lambda: "sampled", a quarter of the largest of ten draws of records and blocks, as proofs have a factor of 4 to
        spare; "thumb", the paper's rule; or a number.
    balance
        "theorem", the step sizes of the paper's theorem; "data", a larger primal and smaller dual step of the same
        product, for records whose matrices are nearly at right angles to each other; None, "data" where a record has
        at least four times as many numbers as there are records.
    tol
        The gap at which to stop.
    max_passes
        The most passes.

    """

    def __init__(
        self, dual: int, primal: int, scale: str | float, balance: str | None, tol: float, max_passes: int
    ) -> None:
        self.dual, self.primal, self.scale, self.balance = dual, primal, scale, balance
        self.tol, self.max_passes = tol, max_passes

    def solve(self, problem: MatrixProblem, seed: int, start: Array | None = None) -> BlockSolution:
        """Solve a problem, from the blocks `start`, or from 0."""
        for solution in self.passes(problem, seed, start):
            history = solution.history
            if history.gap[-1] <= self.tol or len(history.gap) > self.max_passes:
                break
        return solution

    def passes(self, problem: MatrixProblem, seed: int, start: Array | None = None) -> Iterator[BlockSolution]:
        """The solution so far, before the first pass and after each, without end."""
        rng = np.random.default_rng(seed)
        n, p = problem.data.n, problem.data.p
        X, beta = np.zeros((p, problem.data.size)), np.zeros(n)
        if start is not None:
            X = problem.project(start)
            beta = problem.dual_of(X)
        began = time.perf_counter()
        scale = self._first_scale(problem, rng)
        iterates = BlockIterates(problem, self.dual, self.primal, X, beta)
        per_pass = -(-max(n * self.primal, p * self.dual) // (self.dual * self.primal))
        seconds = time.perf_counter() - began
        with np.errstate(over="ignore", invalid="ignore"):
            rows = [(0.0, seconds, *iterates.gap())]
        if not np.isfinite(rows[0][-1]):
            raise ValueError("the gap at the start is too large for a float: scale y, or use another coef_init")
        least = _Least(rows[0][-1], X, beta)
        patience, waited = _PATIENCE, 0
        while True:
            yield BlockSolution(least.X, least.beta, History.of(rows), (len(rows) - 1) * per_pass * self.primal)
            began = time.perf_counter()
            objective, gap = math.inf, math.inf
            # Iterates of too large steps may overflow, and have no eigenvalues then.
            with contextlib.suppress(np.linalg.LinAlgError), np.errstate(over="ignore", invalid="ignore"):
                iterates.iterate(self._steps(problem, scale), rng, per_pass)
                seconds += time.perf_counter() - began
                objective, gap = iterates.gap()
            rows.append((float(len(rows)), seconds, objective, gap))
            waited += 1
            if gap < least.gap:
                least, waited = _Least(gap, iterates.X.copy(), iterates.beta.copy()), 0
            elif gap > _RISEN * rows[0][-1]:
                scale, waited = 2.0 * scale, 0
                iterates.restart(least.X, least.beta)
            elif waited == patience:
                scale, patience, waited = 2.0 * scale, 2 * patience, 0

    def _first_scale(self, problem: MatrixProblem, rng: np.random.Generator) -> float:
        data = problem.data
        if not isinstance(self.scale, str):
            return float(self.scale)
        if self.scale == "thumb":
            largest = float(np.max(problem.weights * data.squared_norms()))
            found = rule_of_thumb(data.n, data.n / self.dual, data.p / self.primal, largest)
        else:
            drawn = ((draw(rng, data.n, self.dual), draw(rng, data.p, self.primal)) for _ in range(_DRAWS))
            found = _SPARE * max(
                data.scale(records, blocks, np.sqrt(problem.weights[records])) for records, blocks in drawn
            )
        return found or 1.0  # of data that are 0 any will do

    def _steps(self, problem: MatrixProblem, scale: float) -> StepSizes:
        n, p = problem.data.n, problem.data.p
        dual_ratio, primal_ratio = n / self.dual, p / self.primal
        l2, gamma = float(problem.l2.min()), problem.loss.gamma
        balance = self.balance or ("data" if 4 * n <= p * problem.data.size else "theorem")
        if balance == "data":
            # As of losses so strongly convex in the dual that the two terms of the theorem's rate are alike.
            gamma = max(gamma, scale / (l2 * n) * min(dual_ratio, primal_ratio) ** 2)
        return step_sizes(n, dual_ratio, primal_ratio, scale, l2, gamma)
