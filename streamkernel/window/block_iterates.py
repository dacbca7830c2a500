"""The iterations of the doubly stochastic primal-dual method on blocks."""

from typing import Any

import numpy as np

from streamkernel.compute.window_losses import dual_steps
from streamkernel.window.block_data import Indices
from streamkernel.window.matrix_problem import MatrixProblem
from streamkernel.window.step_sizes import StepSizes

__all__ = ["BlockIterates", "draw"]

Array = np.ndarray[Any, np.dtype[Any]]


def draw(rng: np.random.Generator, n: int, m: int) -> Indices:
    """m of the numbers 0 to n - 1, each with probability m / n: neighbors in a circle, or one of n / m parts.

    Examples
    --------
    >>> import numpy as np
    >>> draw(np.random.default_rng(0), 10, 5)
    slice(5, 10, None)

    """
    if n % m == 0:
        first = m * int(rng.integers(n // m))
        return slice(first, first + m)
    first = int(rng.integers(n))
    return slice(first, first + m) if first + m <= n else np.arange(first, first + m) % n


class BlockIterates:
    """X and beta of Algorithm 1 for blocks, and what is kept of their products with the data.

    Where an iteration takes a smaller share of the records than of the blocks, sum_i w_i beta_i D_i is kept (of metric
    learning W, Algorithm 3), else the scores.

    Parameters
    ----------
    problem
        The problem.
    dual, primal
        m and q: the records and blocks of an iteration.
    X, beta
        Where to begin, shapes (p, size) and (n,).

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
