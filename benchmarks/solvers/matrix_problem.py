"""Matrix risk minimization: its data, objective, duality gap and the proximal step of a block."""

import abc
from typing import TypeAlias

import numpy as np

from streamkernel.compute.window_losses import records_gap, score_derivatives
from streamkernel.state import Array
from streamkernel.window.losses import WindowLoss

#: Some records, or some blocks: neighbors as a slice, which costs no copy, or by number.
Indices: TypeAlias = slice | Array
_ALL = slice(None)


class BlockData(abc.ABC):
    """n records' symmetric matrices D_i^j, one a block: the score of record i is sum_j <D_i^j, X_j>.

    Blocks are vectors of `size` numbers with the matrices' inner product: X has shape (p, size), matrices (d, d).
    """

    n: int
    p: int
    d: int
    size: int

    @abc.abstractmethod
    def pack(self, matrices: Array) -> Array:
        """Symmetric matrices (k, d, d) as blocks (k, size)."""

    @abc.abstractmethod
    def unpack(self, blocks: Array) -> Array:
        """Blocks (k, size) as symmetric matrices (k, d, d)."""

    @abc.abstractmethod
    def scores(self, records: Indices, X: Array) -> Array:
        """The scores of some records, shape (m,)."""

    @abc.abstractmethod
    def combine(self, records: Indices, c: Array) -> Array:
        """sum_i c_i D_i of some records, for all blocks: shape (p, size)."""

    @abc.abstractmethod
    def block_scores(self, blocks: Indices, X: Array) -> Array:
        """What some blocks X, shape (q, size), add to the scores of all records, shape (n,)."""

    @abc.abstractmethod
    def block_combine(self, blocks: Indices, c: Array) -> Array:
        """sum_i c_i D_i^j over all records, for some blocks j: shape (q, size)."""

    @abc.abstractmethod
    def squared_norms(self) -> Array:
        """|D_i|^2 of each record, over all blocks: shape (n,)."""

    @abc.abstractmethod
    def scale(self, records: Indices, blocks: Indices, factors: Array) -> float:
        """The squared spectral norm of the part of the data of some records, times their factors, and some blocks."""


class DenseBlocks(BlockData):
    """Any symmetric matrices of shape (n, p, d, d), stored as their upper triangles; others are made symmetric."""

    def __init__(self, D: Array) -> None:
        self.n, self.p, self.d = D.shape[:3]
        self._upper = np.triu_indices(self.d)
        self.size = len(self._upper[0])
        # An off-diagonal number counts for two in an inner product.
        self._factors = np.where(self._upper[0] == self._upper[1], 1.0, np.sqrt(2.0))
        self._rows = np.empty((self.n, self.p, self.size))
        for row, matrices in zip(self._rows, D, strict=True):
            row[:] = self.pack((matrices + matrices.transpose(0, 2, 1)) / 2)

    def pack(self, matrices: Array) -> Array:
        return np.asarray(matrices[:, *self._upper] * self._factors)

    def unpack(self, blocks: Array) -> Array:
        out = np.empty((len(blocks), self.d, self.d))
        i, j = self._upper
        out[:, i, j] = out[:, j, i] = blocks / self._factors
        return out

    def scores(self, records: Indices, X: Array) -> Array:
        return np.asarray(self._rows[records].reshape(-1, self.p * self.size) @ X.reshape(-1))

    def combine(self, records: Indices, c: Array) -> Array:
        return np.asarray((c @ self._rows[records].reshape(len(c), -1)).reshape(self.p, self.size))

    def block_scores(self, blocks: Indices, X: Array) -> Array:
        return np.asarray(self._rows[:, blocks].reshape(self.n, -1) @ X.reshape(-1))

    def block_combine(self, blocks: Indices, c: Array) -> Array:
        return np.asarray((c @ self._rows[:, blocks].reshape(self.n, -1)).reshape(-1, self.size))

    def squared_norms(self) -> Array:
        return np.asarray(np.einsum("ijk,ijk->i", self._rows, self._rows))

    def scale(self, records: Indices, blocks: Indices, factors: Array) -> float:
        part = factors[:, None] * self._rows[records][:, blocks].reshape(len(factors), -1)
        return float(np.linalg.eigvalsh(part @ part.T)[-1])


def psd_project(S: Array) -> Array:
    """The nearest positive semi-definite matrices to symmetric ones, (k, d, d), each symmetric to the last bit."""
    out = np.empty_like(S)
    for one, projected in zip(S, out, strict=True):
        L = psd_factor(one)
        np.matmul(L.T, L, out=projected)
    return out


def psd_factor(S: Array) -> Array:
    """L of shape (r, d) with L^T L = the projection of S, r the number of S's eigenvalues above 0."""
    w, V = np.linalg.eigh(S)
    above = w > 0
    return np.ascontiguousarray((V[:, above] * np.sqrt(w[above])).T)


class MatrixProblem:
    """min over positive semi-definite X_j of (1/n) sum_i w_i phi_i(z_i) + sum_j g_j(X_j), z_i = sum_j <D_i^j, X_j>.

    g_j(X) = l2_j / 2 |X|^2 - <L_j, X>, in the Frobenius norm.

    y are numbers, or labels of -1 and 1; the weights w_i have mean 1; `linear` holds L_j as blocks, and None is 0.
    `constant` is added to the objective.
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
        score_derivatives(self.loss.kind, self.scores(X), self.y, beta)
        return beta

    def gap(self, X: Array, z: Array, beta: Array, G: Array) -> tuple[float, float]:
        """The objective at X, and by how much it is above the dual objective at beta.

        Both are sums of what is never negative: their digits do not cancel.

        z are the scores of X, and G what beta combines to.
        """
        loss, loss_gap = records_gap(self.loss.kind, self.y, self.weights, beta, z)
        penalty = 0.5 * np.sum(self.l2 * np.square(X)) - np.sum(self.linear * X)
        # g_j(X) + g_j*(-G) + <G, X> of V = (L - G) / l2, whose projection is at a right angle to what it leaves.
        V = (self.linear - G / self.data.n) / self.l2
        best = self.project(V)
        penalty_gap = np.sum(self.l2 * (0.5 * np.square(X - best) + X * (best - V)))
        return float(loss + penalty + self.constant), max(float(loss_gap + penalty_gap), 0.0)
