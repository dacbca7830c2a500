"""Functions of a reproducing kernel Hilbert space, learned by doubly stochastic gradients of noiseless targets."""

import abc
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from streamkernel.compute.cholesky import add_products
from streamkernel.compute.features import mean_outer
from streamkernel.compute.gaussians import mix64
from streamkernel.expansion.expansion import LARGEST_COEFFICIENT, Expansion
from streamkernel.fields import Rules, all_finite, array, checked, state_mismatch, whole
from streamkernel.growth.steps import first_step
from streamkernel.growth.waiting import MiniBatch
from streamkernel.kernels import Kernel
from streamkernel.kernels.drawing import kernel_matrix
from streamkernel.records.inputs import Inputs
from streamkernel.records.rows import Rows
from streamkernel.state import Array, State

DTYPE = np.dtype("float64")
#: The step in units of the one at which the steepest direction is solved: targets are noiseless, so that it need not
#: fall, and half as much again is stable.
STEP = 1.5
_CACHE_BYTES = 2**26


@dataclass(eq=False)
class VarianceFunctions(abc.ABC):
    """Functions whose values give the variance of a Gaussian process, learned by mini-batches.

    A step makes a new block of features, while there is room, and then touches an old one.
    """

    kernel: Kernel  #: The kernel, with features of a bounded norm
    rho: float  #: The noise's variance over the process's
    batch_size: int  #: B, records of a step
    block_size: int  #: F, features of a block
    max_blocks: int | None  #: The most blocks; None is no limit
    sample_size: int | None  #: n, the records of the posterior: None is those learned so far

    rules: ClassVar[Rules] = {"variance_theta": all_finite}

    def __post_init__(self) -> None:
        self.kappa = float(self.kernel.kappa or 1.0)
        self.set_seed(0)
        self._batch = MiniBatch(self.batch_size, DTYPE)
        self.forget()

    def set_seed(self, seed: int) -> None:
        """Draw the features by another seed."""
        self.seed = seed
        self._expansion = self._drawn_by(int(mix64(np.uint64(seed ^ 0x5EED))))

    def forget(self) -> None:
        """Start over."""
        self.n_steps = 0
        self.n_learned = 0
        self.n_blocks = 0
        self.theta = np.zeros((0, 0))
        self._batch.clear()

    @property
    def room(self) -> int:
        """Labeled records until the next step."""
        return self._batch.room

    @property
    def nbytes(self) -> int:
        """Bytes of the coefficients."""
        return int(self.theta.nbytes)

    def take(self, X: Array, weights: Array, inputs: Inputs, bandwidth: float) -> None:
        """Let scaled rows of the first d inputs, (n, d), wait for their step, and take it when they are enough."""
        self._batch.append(X, np.zeros(len(X)), weights, None)
        self.n_learned += len(X)
        if not self._batch.room:
            rows = self._batch.rows(X.shape[1])
            self._take_step(rows, self._batch.w, inputs, bandwidth)
            self._batch.clear()

    def variances(self, rows: Rows, X: Array, inputs: Inputs, bandwidth: float) -> Array:
        """The posterior's variances at rows, encoded and scaled, at most that of the prior; shape (n,).

        At least what n copies of the record itself would leave: no other records leave less.
        """
        explained = self._explained(rows, X, inputs, bandwidth) if self.n_blocks else np.zeros(len(X))
        n = self.sample_size or self.n_steps * self.batch_size
        least = self.rho / (self.rho + n)
        return np.asarray(self.kappa * np.clip(1.0 - np.nan_to_num(explained), least, 1.0))

    def state(self, n_inputs: int) -> State:
        """The fields of the state."""
        fields = {
            "variance_steps": self.n_steps,
            "variance_records": self.n_learned,
            "variance_theta": self.theta.copy(),
            **self._batch.state(n_inputs),
        }
        return checked(fields, self.rules)

    def load_state(self, state: State, n_inputs: int) -> None:
        """Take the fields that `state` gave; ValueError where they do not fit."""
        checked(state, self.rules)
        self.forget()
        self.n_steps = whole(state, "variance_steps")
        self.n_learned = whole(state, "variance_records")
        self.theta = array(state, "variance_theta", np.float64, None, None)
        self.n_blocks = self.theta.shape[1] // self._expansion.width
        expected = min(self.n_steps, self.max_blocks or self.n_steps)
        if self.n_blocks != expected or self.theta.shape != (self._n_outputs, expected * self._expansion.width):
            raise state_mismatch("variance_theta")
        self._batch.load_state(state, n_inputs)

    def _drawn_by(self, seed: int) -> Expansion:
        return Expansion(self.kernel, self.block_size, DTYPE, _CACHE_BYTES, seed)

    def _take_step(self, X: Array, weights: Array, inputs: Inputs, bandwidth: float) -> None:
        keys = inputs.columns.keys[: X.shape[1]]
        grows = self.max_blocks is None or self.n_blocks < self.max_blocks
        block = self.n_blocks if grows else self._chosen()
        scores = self._scores(X, keys, bandwidth)
        targets = self._targets(block, X, inputs, bandwidth)
        g = np.pad(scores, ((0, 0), (0, targets.shape[1] - scores.shape[1]))) - targets
        g *= (weights / max(1.0, float(weights.max())))[:, None]
        phi = self._features(self._expansion, block, X, keys, bandwidth)
        gradient = np.empty((g.shape[1], phi.shape[1]))
        mean_outer(phi, g, gradient)
        gamma = self._step_size(X, bandwidth)
        self._widen(g.shape[1], max(block + 1, self.n_blocks) * phi.shape[1])
        self.theta *= 1.0 - min(gamma * self.rho / (self.sample_size or self.n_learned), 1.0)
        own = self.theta[:, block * phi.shape[1] : (block + 1) * phi.shape[1]]
        own -= gamma * gradient
        np.clip(self.theta, -LARGEST_COEFFICIENT, LARGEST_COEFFICIENT, out=self.theta)
        self.n_blocks = max(self.n_blocks, block + 1)
        self.n_steps += 1

    def _step_size(self, X: Array, bandwidth: float) -> float:
        """1.5 / (lambda_1 + phi / F + 1 / B) of the mini-batch at hand: stable whatever the stream becomes."""
        K = kernel_matrix(self.kernel, X, X, bandwidth) / self.kappa
        bound = float(self.kernel.feature_bound or 1.0) / self.kappa
        return STEP * first_step(K, 1.0, self.block_size, feature_bound=bound)

    def _chosen(self) -> int:
        """An old block, uniformly: of the seed and the number of the step."""
        return int(mix64(np.uint64(self.seed ^ int(mix64(np.uint64(self.n_steps)))))) % self.n_blocks

    def _widen(self, n_outputs: int, width: int) -> None:
        missing = n_outputs - self.theta.shape[0], width - self.theta.shape[1]
        if max(missing) > 0:
            self.theta = np.pad(self.theta, ((0, missing[0]), (0, missing[1])))

    def _features(self, expansion: Expansion, block: int, X: Array, keys: Array, bandwidth: float) -> Array:
        """The features of a block, shape (n, width); the mean of their products is k / kappa."""
        if expansion.bandwidth != bandwidth:
            expansion.forget()  # with the frequencies of another one
            expansion.bandwidth = bandwidth
        return np.asarray(expansion.features(block, X, keys) / np.sqrt(self.kappa))

    def _scores(self, X: Array, keys: Array, bandwidth: float) -> Array:
        """The functions' values at rows, shape (n, K)."""
        scores = np.zeros((len(X), self.theta.shape[0]))
        for block in range(self.n_blocks):
            phi = self._features(self._expansion, block, X, keys, bandwidth)
            width = phi.shape[1]
            add_products(phi, np.ascontiguousarray(self.theta[:, block * width : (block + 1) * width]), scores)
        return scores

    @property
    @abc.abstractmethod
    def _n_outputs(self) -> int:
        """K."""

    @abc.abstractmethod
    def _targets(self, block: int, X: Array, inputs: Inputs, bandwidth: float) -> Array:
        """What the functions' values at the rows of a step that touches a block should be, shape (B, K)."""

    @abc.abstractmethod
    def _explained(self, rows: Rows, X: Array, inputs: Inputs, bandwidth: float) -> Array:
        """A(x, x) of rows, over kappa: the part of the prior's variance that the records explain."""


def keys_of(rows: Rows, inputs: Inputs) -> Array:
    """The keys of the columns of scaled rows, those met in these rows only last."""
    return np.concatenate([inputs.columns.keys[: rows.values.shape[1]], rows.extra_keys])


def row_products(A: Array, B: Array) -> Array:
    """The product of each row of A with that of B, shape (n,), with the bits that each has alone."""
    return np.array([float(np.sum(a * b)) for a, b in zip(A, B, strict=True)])
