"""The doubly stochastic primal-dual method on blocks, from its step sizes to its stopping rule."""

import contextlib
import math
import time
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from benchmarks.solvers.matrix_problem import Indices, MatrixProblem
from streamkernel.compute.window_losses import dual_steps
from streamkernel.state import Array
from streamkernel.window.coordinates import StepSizes, rule_of_thumb, step_sizes
from streamkernel.window.linear_model import History

#: Draws of records and blocks of which the largest scale is taken.
_DRAWS = 10
#: The proofs' factor to spare: tau sigma = n m q / (4 p Lambda) is a quarter of what keeps the iterates stable.
_SPARE = 0.25
#: A gap this many times the first, or this many passes above the least, shows that Lambda is too small.
_RISEN, _PATIENCE = 2.0, 20


def draw(rng: np.random.Generator, n: int, m: int) -> Indices:
    """m of the numbers 0 to n - 1, each with probability m / n: neighbors in a circle, or one of n / m parts."""
    if n % m == 0:
        first = m * int(rng.integers(n // m))
        return slice(first, first + m)
    first = int(rng.integers(n))
    return slice(first, first + m) if first + m <= n else np.arange(first, first + m) % n


class BlockIterates:
    """X and beta of Algorithm 1 for blocks, and what is kept of their products with the data.

    Where an iteration takes a smaller share of the records than of the blocks, sum_i w_i beta_i D_i is kept (of metric
    learning W, Algorithm 3), else the scores.

    An iteration takes `dual` records and `primal` blocks, m and q.

    References
    ----------
    [^1]: Yu, Lin and Yang, "Doubly stochastic primal-dual coordinate method for bilinear saddle-point problem", 2015,
          section 5 and algorithm 3.

    """

    def __init__(self, problem: MatrixProblem, dual: int, primal: int, X: Array, beta: Array) -> None:
        self.problem, self.dual, self.primal = problem, dual, primal
        self.by_records = dual * problem.data.p <= primal * problem.data.n
        self.restart(X, beta)

    def restart(self, X: Array, beta: Array) -> None:
        """Continue from X and beta."""
        self.X, self.beta = X.copy(), beta.copy()
        self._ahead = X.copy()  # xbar
        self._changed: Indices = slice(0, 0)
        self.z = self.problem.scores(self.X)
        self.G = self.problem.combine(self.beta)
        self._z_ahead = self.z.copy()

    def refresh(self) -> None:
        """Compute both products with the data again, which loses their rounding errors."""
        z = self.problem.scores(self.X)
        self._z_ahead += z - self.z
        self.z = z
        self.G = self.problem.combine(self.beta)

    def gap(self) -> tuple[float, float]:
        """The objective and the duality gap."""
        self.refresh()
        return self.problem.gap(self.X, self.z, self.beta, self.G)

    def iterate(self, steps: StepSizes, rng: np.random.Generator, count: int = 1) -> None:
        """Update m dual coordinates and q blocks, `count` times."""
        for _ in range(count):
            self._iterate(steps, rng)

    def _iterate(self, steps: StepSizes, rng: np.random.Generator) -> None:
        records = draw(rng, self.problem.data.n, self.dual)
        blocks = draw(rng, self.problem.data.p, self.primal)
        G = self._of_records(records, blocks, steps.sigma)
        old = self.X[blocks]
        new = self.problem.step(blocks, old - steps.tau / self.problem.data.n * G, steps.tau)
        self._move(blocks, old, new, steps.theta)

    def _of_records(self, records: Indices, blocks: Indices, sigma: float) -> Array:
        """Update beta, and give sum_i w_i betabar_i D_i^j of the blocks."""
        data = self.problem.data
        old = self.beta[records]
        z = data.scores(records, self._ahead) if self.by_records else self._z_ahead[records]
        new = np.empty(len(old))
        dual_steps(self.problem.loss.kind, old, z, self.problem.y[records], sigma / data.n, new)
        ahead = data.n / self.dual
        if self.by_records:
            change = data.combine(records, self.problem.weights[records] * (new - old))
            self.G += change
            G = self.G[blocks] + (ahead - 1.0) * change[blocks]
        else:
            betabar = self.beta.copy()
            betabar[records] += ahead * (new - old)
            G = data.block_combine(blocks, self.problem.weights * betabar)
        self.beta[records] = new
        return np.asarray(G)

    def _move(self, blocks: Indices, old: Array, new: Array, theta: float) -> None:
        """Take the blocks' new matrices, and xbar = x_old + (theta + 1) (x - x_old)."""
        change = new - old
        if self.by_records:
            self._ahead[self._changed] = self.X[self._changed]
            self._ahead[blocks] = old + (theta + 1.0) * change
            self._changed = blocks
        else:
            moved = self.problem.data.block_scores(blocks, change)
            self._z_ahead = self.z + (theta + 1.0) * moved
            self.z += moved
        self.X[blocks] = new


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
