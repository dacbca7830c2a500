"""Matrix risk minimization: objective, duality gap and the proximal step of a block."""

from typing import Any

import numpy as np

from streamkernel.compute.duality import dual_start, records_gap
from streamkernel.window.block_data import BlockData, Indices
from streamkernel.window.losses import WindowLoss
from streamkernel.window.psd import psd_project

__all__ = ["MatrixProblem"]

Array = np.ndarray[Any, np.dtype[Any]]

_ALL = slice(None)


class MatrixProblem:
    """min over positive semi-definite X_j of (1/n) sum_i w_i phi_i(z_i) + sum_j g_j(X_j), z_i = sum_j <D_i^j, X_j>.

    g_j(X) = l2_j / 2 |X|^2 - <L_j, X>, in the Frobenius norm.

    Parameters
    ----------
    data
        The matrices D_i^j.
    y
        Numbers, or labels of -1 and 1, float64 of shape (n,).
    weights
        w_i from 0 up, of mean 1, float64 of shape (n,).
    loss
        phi.
    l2
        l2_j > 0, shape (p,).
    linear
        L_j as blocks, shape (p, size); None (the default) is 0.
    constant
        Added to the objective. Defaults to 0.

    """

    def __init__(
        self,
        data: BlockData,
        y: Array,
        weights: Array,
        loss: WindowLoss,
        l2: Array,
        linear: Array | None = None,
        constant: float = 0.0,
    ) -> None:
        self.data, self.y, self.weights, self.loss = data, y, weights, loss
        self.l2 = l2[:, None]
        self.linear = np.zeros((data.p, 1)) if linear is None else linear
        self.constant = constant

    def project(self, blocks: Array) -> Array:
        """The nearest blocks whose matrices are positive semi-definite."""
        return self.data.pack(psd_project(self.data.unpack(blocks)))

    def step(self, blocks: Indices, V: Array, step: float) -> Array:
        """The minimizers over X_j of g_j(X_j) + |X_j - V_j|^2 / (2 step), of some blocks j."""
        return self.project((V + step * self.linear[blocks]) / (1.0 + step * self.l2[blocks]))

    def minimizers(self, G: Array) -> Array:
        """The minimizers over X_j of <G_j, X_j> + g_j(X_j), of all blocks."""
        return self.project((self.linear - G) / self.l2)

    def scores(self, X: Array) -> Array:
        """The scores of all records, shape (n,)."""
        return self.data.scores(_ALL, X)

    def combine(self, beta: Array) -> Array:
        """sum_i w_i beta_i D_i, shape (p, size)."""
        return self.data.combine(_ALL, self.weights * beta)

    def dual_of(self, X: Array) -> Array:
        """The dual variables that are optimal where X is."""
        beta = np.empty(self.data.n)
        dual_start(self.loss.kind, self.y, self.scores(X), beta)
        return beta

    def gap(self, X: Array, z: Array, beta: Array, G: Array) -> tuple[float, float]:
        """The objective at X, and by how much it is above the dual objective at beta.

        Both are sums of what is never negative: their digits do not cancel.

        Parameters
        ----------
        X, z
            Blocks, and their `scores`.
        beta, G
            Dual variables, and what they `combine` to.

        """
        loss, loss_gap = records_gap(self.loss.kind, self.y, self.weights, beta, z)
        penalty = 0.5 * np.sum(self.l2 * np.square(X)) - np.sum(self.linear * X)
        # g_j(X) + g_j*(-G) + <G, X> of V = (L - G) / l2, whose projection is at a right angle to what it leaves.
        V = (self.linear - G / self.data.n) / self.l2
        best = self.project(V)
        penalty_gap = np.sum(self.l2 * (0.5 * np.square(X - best) + X * (best - V)))
        return float(loss + penalty + self.constant), max(float(loss_gap + penalty_gap), 0.0)
