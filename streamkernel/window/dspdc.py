"""DSPDC: the doubly stochastic primal-dual coordinate method of Yu, Lin and Yang."""

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from streamkernel.arguments import keep_arguments, require_flag, require_number, require_whole
from streamkernel.compute.gaussians import feature_words
from streamkernel.finite import is_finite
from streamkernel.state import Array, excerpt
from streamkernel.window.coordinates import Blocks, Coordinates, StepSizes, Subsets, rule_of_thumb, step_sizes
from streamkernel.window.iterates import (
    ColumnIterates,
    Factorized,
    FactorizedIterates,
    Iterates,
    RowIterates,
    SparseIterates,
    padded_factors,
)
from streamkernel.window.linear_model import History, LinearProblem, LinearSolver, dense_rows
from streamkernel.window.losses import ElasticNet, WindowLoss

__all__ = ["DSPDC"]

SAMPLING: dict[str, Callable[[int, int, int], Coordinates]] = {"blocks": Blocks, "subsets": Subsets}

# Coordinates drawn at a time.
_DRAWN = 2**20
# A gap this many times the smallest since the step sizes were set shows that Lambda is too small; less may be chance.
_RISE = 4.0
# Gaps of so small a share of the objective are rounding errors.
_ROUNDING = 1e-13


class DSPDC(LinearSolver):
    """A linear model solved by a doubly stochastic primal-dual coordinate method (DSPDC).

    It minimizes (1/n) sum_i phi(a_i . x, y_i) + l2/2 |x|^2 + l1 |x|_1. Each iteration updates m dual coordinates (of n
    records) and q primal ones (of p coefficients). A pass has n / m or p / q iterations, whichever is more. The solver
    stops at a small duality gap.

    Parameters
    ----------
    loss
        "squared", "log", "smooth_hinge" or "squared_hinge". Defaults to "squared".
    l2, l1
        The weights of the regularizer, with l2 > 0. Default to 1e-2 and 0.
    dual
        m, the number of records that an iteration updates. None is all of them. Defaults to 1.
    primal
        q, the number of coefficients that an iteration updates. None is all of them, which is SPDC. Defaults to 1. A
        smaller number makes an iteration cheaper if X is `Factorized`. Plain rows are read whole, and None is mostly
        the fastest.
    tol
        The duality gap at which to stop. Defaults to 1e-6.
    max_passes
        The largest number of passes. The solver then returns its best iterate. Defaults to 100.
    safe
        Whether Lambda, which sets the step sizes, bounds the squared spectral norm of every part of the data that an
        iteration may use, with the theta of Theorem 2. The bound of the gap then falls by a constant factor each
        iteration. False uses the smaller rule of thumb, and doubles it when the gap rises. Defaults to False.
    sampling
        "blocks" draws one block of a random partition of the coordinates, "subsets" a new subset each time. Defaults to
        "blocks".
    seed
        A whole number. The same seed and data give the same coefficients, to the byte. None draws one.

    References
    ----------
    Yu, Lin and Yang: Doubly stochastic primal-dual coordinate method for bilinear saddle-point problem. 2015.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(1).normal(size=(200, 5))
    >>> y = X @ [1.0, 2.0, 0.0, 0.0, -1.0]
    >>> model = DSPDC(l2=1e-3, primal=2, tol=1e-9, max_passes=300, seed=1).fit(X, y)
    >>> model.coef_.round(2)
    array([ 1.,  2.,  0.,  0., -1.])
    >>> bool(model.history_.gap[-1] <= 1e-9)
    True

    """

    dual: int | None
    primal: int | None
    tol: float
    max_passes: int
    safe: bool
    sampling: str

    def __init__(
        self,
        loss: str = "squared",
        l2: float = 1e-2,
        l1: float = 0.0,
        dual: int | None = 1,
        primal: int | None = 1,
        tol: float = 1e-6,
        max_passes: int = 100,
        safe: bool = False,
        sampling: str = "blocks",
        seed: int | None = None,
    ) -> None:
        keep_arguments(self, locals())

    def cut_to(self, n: int, p: int) -> dict[str, Any]:
        """At most n records and p coefficients an iteration."""
        sizes = (("dual", self.dual, n), ("primal", self.primal, p))
        return {name: min(size, most) for name, size, most in sizes if size is not None}

    def _checked(self) -> tuple[WindowLoss, ElasticNet]:
        checked = super()._checked()
        for name in ("dual", "primal"):
            if getattr(self, name) is not None:
                require_whole(name, getattr(self, name))
        require_whole("max_passes", self.max_passes, 0)
        require_number("tol", self.tol, "a number of at least 0", lambda tol: tol >= 0)
        require_flag("safe", self.safe)
        if self.sampling not in SAMPLING:
            raise ValueError(f"sampling must be one of {', '.join(SAMPLING)}, got {excerpt(self.sampling)}")
        return checked

    def _rows(self, X: Any) -> Any:
        if isinstance(X, Factorized):
            return X
        return sparse_rows(X) if sparse.issparse(X) else dense_rows(X)

    def _coordinates(self, X: Any, seed: int) -> tuple[Coordinates, Coordinates]:
        words = np.empty(2, np.uint64)
        feature_words(np.uint64(seed), 0, words)
        kind = SAMPLING[self.sampling]
        n, p = X.shape
        m = n if self.dual is None else self.dual
        q = p if self.primal is None else self.primal
        return kind(n, int(m), int(words[0])), kind(p, int(q), int(words[1]))

    def _prepare(self, X: Any, seed: int) -> Any:
        for name, most, what in (("dual", X.shape[0], "rows"), ("primal", X.shape[1], "columns")):
            size = getattr(self, name)
            if size is not None and size > most:
                raise ValueError(
                    f"{name} is {size}, and X has {most} {what}: update {most} or fewer at a time, or None for all"
                )
        return prepare(X, *self._coordinates(X, seed))

    def _solve(self, problem: LinearProblem, start: Array, seed: int, shared: Any) -> tuple[Array, History]:
        rows, columns = self._coordinates(problem.X, seed)
        iterates = iterates_of(problem, rows, columns, shared)
        with np.errstate(over="ignore", invalid="ignore"):
            if self.safe:
                scale = iterates.largest_part()
            else:
                scale = rule_of_thumb(rows.n, rows.ratio, columns.ratio, iterates.largest_row())
        if not is_finite(scale):
            raise ValueError("the squares of the rows of X are too large for a float: scale the columns of X")
        return self.iterate(iterates, scale, start)

    def iterate(self, iterates: Iterates, scale: float, start: Array) -> tuple[Array, History]:
        """Iterate until the gap is small, with a larger Lambda where it rises; the best iterates count."""
        problem, rows, columns = iterates.problem, iterates.rows, iterates.columns
        whole_pass = math.ceil(max(rows.ratio, columns.ratio))
        objective, gap = iterates.start(start)
        if not is_finite(gap):
            raise ValueError("the objective at the start is too large for a float: scale y, or use another coef_init")
        best, best_beta, best_gap = iterates.x, iterates.beta.copy(), gap
        history = [(0.0, 0.0, objective, gap)]
        seconds, passes, lowest = 0.0, 0, math.inf
        while best_gap > self.tol and passes < self.max_passes:
            # Of data that are all 0 any Lambda is one.
            steps = step_sizes(
                rows.n, rows.ratio, columns.ratio, scale or 1.0, problem.regularizer.l2, problem.loss.gamma, self.safe
            )
            if not passes:
                iterates.advance(steps, 0)  # compiled before the clock runs
            seconds += _timed(iterates, steps, whole_pass)
            passes += 1
            objective, gap = iterates.evaluate()
            history.append((float(passes), seconds, objective, gap))
            if gap <= best_gap:
                best, best_beta, best_gap = iterates.x, iterates.beta.copy(), gap
            if not self.safe and not gap <= max(_RISE * lowest, _ROUNDING * (1.0 + abs(objective))):
                scale, lowest = 2.0 * scale, math.inf
                iterates.load(best, best_beta)
            else:
                lowest = min(lowest, gap)
        return best, History.of(history)


def prepare(X: Any, rows: Coordinates, columns: Coordinates) -> Any:
    """What iterations read: padded factors, or A^T where columns cost less than rows; None where it is X itself."""
    if isinstance(X, Factorized):
        return padded_factors(X, columns)
    if sparse.issparse(X) or rows.ratio >= columns.ratio:
        return None
    return np.ascontiguousarray(X.T)


def iterates_of(problem: LinearProblem, rows: Coordinates, columns: Coordinates, prepared: Any) -> Iterates:
    """The iterates of a problem, by the form of its data; `prepared` is what `prepare` returns of them."""
    if isinstance(problem.X, Factorized):
        return FactorizedIterates(problem, rows, columns, prepared)
    if sparse.issparse(problem.X):
        return SparseIterates(problem, rows, columns)
    if prepared is None:
        return RowIterates(problem, rows, columns)
    return ColumnIterates(problem, rows, columns, prepared)


def _timed(iterates: Iterates, steps: StepSizes, count: int) -> float:
    """Run iterations, some at a time; returns the seconds they took."""
    begin = time.perf_counter()
    at_once = max(_DRAWN // (iterates.rows.size + iterates.columns.size), 1)
    for done in range(0, count, at_once):
        iterates.advance(steps, min(at_once, count - done))
    return time.perf_counter() - begin


def sparse_rows(X: Any) -> Any:
    """A sparse matrix as CSR of float64.

    ValueError: It has no rows or no columns, or a number that is not finite.
    """
    rows = sparse.csr_matrix(X, dtype=np.float64)
    if not all(rows.shape):
        raise ValueError(f"X must be a matrix of at least one row and one column, got shape {rows.shape}")
    if not np.isfinite(rows.data).all():
        entry = int(np.flatnonzero(~np.isfinite(rows.data))[0])
        row, column = np.searchsorted(rows.indptr, entry, side="right") - 1, rows.indices[entry]
        raise ValueError(f"X is {rows.data[entry]} at row {row}, column {column}: remove or fill such values")
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    return rows
