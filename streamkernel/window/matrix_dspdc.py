"""Matrix risk minimization by the doubly stochastic primal-dual coordinate method (DSPDC)."""

from typing import Any, Self

import numpy as np

from streamkernel.state import excerpt
from streamkernel.window.arguments import require_block_arguments, require_counts
from streamkernel.window.block_data import DenseBlocks, Triangles
from streamkernel.window.block_solver import BlockSolver
from streamkernel.window.history import History
from streamkernel.window.linear_model import LinearSolver, Problem
from streamkernel.window.matrix_problem import MatrixProblem

__all__ = ["MatrixDSPDC"]

Array = np.ndarray[Any, np.dtype[Any]]

#: Past it the fourth powers that the spectral norm of the data takes are not finite.
_LARGEST = 1e70


class MatrixDSPDC(LinearSolver):
    """A linear model of matrices with positive semi-definite coefficients, solved by block DSPDC.

    min over positive semi-definite X_1, ..., X_p of (1/n) sum_i phi_i(sum_j <D_i^j, X_j>) + l2/2 sum_j |X_j|^2. An
    iteration updates m dual variables and q matrices, each by an eigenvalue decomposition. If the decompositions cost
    most, an iteration costs q / p of the full update. With q = p, it is the stochastic primal-dual coordinate method
    (SPDC).

    Parameters
    ----------
    loss
        "smooth_hinge" (the default), "squared_hinge", "log" or "squared".
    l2
        The strength of the regularization, above 0. Defaults to 0.01.
    dual
        m, the records of an iteration, which are adjacent in X. Shuffle records if they are sorted. Defaults to 1.
    primal
        q, the matrices of an iteration. None is all of them. Defaults to 1.
    scale
        Lambda, which sets the step sizes. "sampled" (the default) is a quarter of the largest squared spectral norm of
        ten draws of m records and q matrices. "thumb" is m q max_i |D_i|^2 / p. A number above 0 sets it directly.
        Lambda doubles if the duality gap rises to twice its first value, or has no new minimum for 20 passes (then for
        40, 80, ...).
    balance
        How to split the product of both step sizes, which Lambda gives. "theorem" follows the paper's Theorem 1. "data"
        has a larger primal step, which is faster if the records' matrices are nearly orthogonal. None (the default) is
        "data" if n is at most a quarter of the numbers in a record's matrices.
    tol
        The duality gap at which to stop. Defaults to 1e-6.
    max_passes
        The largest number of passes. A pass has enough iterations to update every coordinate once on average. Defaults
        to 100.
    seed
        The seed of the draws. None (the default) draws a new one each time.

    Attributes
    ----------
    coef_
        The matrices, shape (p, d, d). For K > 2 classes, one against rest, (K, p, d, d).
    n_projections_
        The total number of eigenvalue decompositions.

    Examples
    --------
    >>> import numpy as np
    >>> from streamkernel.window import MatrixDSPDC
    >>> D = np.random.default_rng(1).normal(size=(40, 3, 4, 4))
    >>> y = np.einsum("ijkk->i", D) > 0
    >>> solver = MatrixDSPDC(dual=4, tol=1e-4, seed=1).fit(D, y)
    >>> solver.coef_.shape, bool(np.linalg.eigvalsh(solver.coef_).min() > -1e-12)
    ((3, 4, 4), True)
    >>> bool(solver.history_.gap.min() < 1e-4)
    True

    References
    ----------
    [^1]: Yu, Lin and Yang, "Doubly stochastic primal-dual coordinate method for bilinear saddle-point problem", 2015,
          section 5.2.

    """

    l1 = 0.0
    takes_rows = False

    def __init__(
        self,
        loss: str = "smooth_hinge",
        l2: float = 1e-2,
        dual: int = 1,
        primal: int | None = 1,
        scale: str | float = "sampled",
        balance: str | None = None,
        tol: float = 1e-6,
        max_passes: int = 100,
        seed: int | None = None,
    ) -> None:
        self.loss = loss
        self.l2 = l2
        self.dual = dual
        self.primal = primal
        self.scale = scale
        self.balance = balance
        self.tol = tol
        self.max_passes = max_passes
        self.seed = seed

    def fit(self, X: Any, y: Any, sample_weight: Any = None, coef_init: Any = None) -> Self:
        """Solve.

        Parameters
        ----------
        X
            The matrices D_i^j of the records, shape (n, p, d, d). Only their symmetric parts matter.
        y
            n numbers, or n labels of at least two classes for a loss of labels.
        sample_weight
            n weights from 0 up. None means all 1.
        coef_init
            The start, of the shape of `coef_`. None means 0.

        Raises
        ------
        ValueError
            An argument or the data are unusable. The solver is unchanged.

        """
        require_block_arguments(self)
        require_counts(self, "dual")
        self._projections = 0
        super().fit(X, y, sample_weight, None if coef_init is None else _packed(coef_init))
        p, d = np.shape(X)[1:3]
        triangles = Triangles(d)
        matrices = triangles.unpack(self.coef_.reshape(-1, triangles.size))
        self.coef_ = matrices.reshape(*self.coef_.shape[:-1], p, d, d)
        self.n_projections_ = self._projections
        return self

    def decision_function(self, X: Any) -> Array:
        """Return the scores of records' matrices (n, p, d, d): shape (n,), or (n, K) for K > 2 classes."""
        self._require_fitted()
        D = _matrices(X)
        if D.shape[1:] != self.coef_.shape[-3:]:
            raise ValueError(f"X must have matrices of shape {self.coef_.shape[-3:]}, as fitted, got {D.shape[1:]}")
        return np.asarray(D.reshape(len(D), -1) @ self.coef_.reshape(*self.coef_.shape[:-3], -1).T)

    def _rows(self, X: Any) -> DenseBlocks:
        data = DenseBlocks(_matrices(X))
        for name, value, most, what in (
            ("dual", self.dual, data.n, "records"),
            ("primal", self.primal, data.p, "blocks"),
        ):
            if value is not None and value > most:
                raise ValueError(f"{name} must be at most {most}, the number of {what}, got {value}")
        return data

    def _solve(self, problem: Problem, start: Array, seed: int, shared: Any) -> tuple[Array, History]:  # noqa: ARG002
        data = problem.X
        own = MatrixProblem(data, problem.y, problem.weights, problem.loss, np.full(data.p, problem.regularizer.l2))
        solver = BlockSolver(
            self.dual, self.primal or data.p, self.scale, self.balance, float(self.tol), self.max_passes
        )
        solution = solver.solve(own, seed, start.reshape(data.p, data.size) if start.any() else None)
        self._projections += solution.n_projections
        return solution.X.reshape(-1), solution.history


def _matrices(X: Any) -> Array:
    try:
        if np.iscomplexobj(X):
            raise ValueError
        D = np.ascontiguousarray(X, np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"X must be numbers of shape (n, p, d, d), got {excerpt(X)}") from None
    if D.ndim != 4 or D.shape[2] != D.shape[3] or not D.size:
        raise ValueError(f"X must be matrices of shape (n, p, d, d), got shape {D.shape}")
    wrong = next((i for i, row in enumerate(D) if not np.isfinite(row).all()), None)
    if wrong is not None:
        raise ValueError(f"X has a number at record {wrong} that is not finite: remove or fill such values")
    if np.abs(D).max() > _LARGEST:
        raise ValueError(f"X has values past {_LARGEST:g}, whose products are too large for floats: scale the matrices")
    return D


def _packed(coef: Any) -> Array:
    matrices = np.asarray(coef, np.float64)
    if matrices.ndim < 3 or matrices.shape[-1] != matrices.shape[-2]:
        raise ValueError(f"coef_init must be of the shape of coef_, got {matrices.shape}")
    d = matrices.shape[-1]
    flat = matrices.reshape(-1, d, d)
    return Triangles(d).pack((flat + flat.transpose(0, 2, 1)) / 2).reshape(*matrices.shape[:-2], -1)
