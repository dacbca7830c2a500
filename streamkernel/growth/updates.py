"""A step of the algorithm on a full mini-batch: one block after the other gets the gradient that is left."""

import math
from dataclasses import dataclass

import numpy as np

from streamkernel.compute.cholesky import add_products
from streamkernel.compute.features import column_means, largest_eigenvalue, mean_outer
from streamkernel.expansion.expansion import Expansion
from streamkernel.finite import NotFiniteError
from streamkernel.growth.base import BlockUpdate
from streamkernel.growth.choice import BlockChoice
from streamkernel.growth.history import StepHistory, StepUndo
from streamkernel.growth.preconditioner import TOO_LARGE, preconditioned_gradient
from streamkernel.growth.steps import is_own, require_finite_gradient
from streamkernel.growth.waiting import MiniBatch
from streamkernel.losses import curvature
from streamkernel.records.learning_targets import LearningTargets
from streamkernel.records.targets import Targets
from streamkernel.state import Array

TOO_LARGE_PLAIN = (
    "features are so large that a step is not finite: use smaller inputs or a smaller multiple of the kernel"
)


@dataclass(frozen=True)
class MiniBatchRecords:
    """A mini-batch as the choice of a block sees it."""

    expansion: Expansion
    rows: Array  #: The scaled rows, shape (B, d), the keys of the inputs and the records' weights
    keys: Array
    weights: Array
    weighted: Array  #: The gradients times the weights, float64 of shape (B, K), and their mean
    mean_gradient: Array

    @property
    def size(self) -> int:
        """B."""
        return len(self.rows)

    @property
    def largest_gradient(self) -> float:
        """The largest norm of a gradient times its weight."""
        return float(np.sqrt(np.einsum("ik,ik->i", self.weighted, self.weighted).max()))

    @property
    def largest_weight(self) -> float:
        """The largest weight."""
        return float(self.weights.max())

    def largest_eigenvalue(self, block: int) -> float:
        """That of the mean of w phi phi^T of a block's features."""
        phi = self.expansion.features(block, self.rows, self.keys).astype(np.float64)
        phi *= np.sqrt(self.weights)[:, None]
        gram = phi @ phi.T if len(phi) <= 2 * self.expansion.block_size else phi.T @ phi
        return float(largest_eigenvalue(gram / len(phi)))


@dataclass(eq=False)
class BlockUpdates:
    """The updates of blocks by a mini-batch: of one block, or of several, each fitted to what those before left."""

    expansion: Expansion
    history: StepHistory
    targets: Targets
    choice: BlockChoice  #: Which block to update next, and how far
    regularization: float  #: nu
    preconditioned: bool  #: Whether a block is moved by a ridge regression's solution instead of along the gradient
    blocks_per_step: int  #: Blocks that a mini-batch updates

    def __post_init__(self) -> None:
        self._bounded = self.expansion.kernel.feature_bound is not None
        self.has_own_loss = is_own(self.targets.loss)
        self._learning = self.targets if isinstance(self.targets, LearningTargets) else None

    def take_step(self, batch: MiniBatch, X: Array, keys: Array, scores: Array, undo: StepUndo) -> None:
        """Update the blocks chosen, one after the other.

        - batch: The mini-batch, with targets and weights.
        - X, keys: Its rows, shape (B, d), and the keys of the inputs.
        - scores: Its scores, float64 of shape (B, K); those after each block are written over them.
        - undo: Receives each change before it happens.

        NotFiniteError: The loss or the kernel gave what is not finite.
        """
        self.expansion.widen(scores.shape[1])
        self.history.widen(scores.shape[1])
        if self._learning is not None:
            self._learning.observe(batch.y, scores, batch.w)
        for number in range(self.blocks_per_step):
            g = self.targets.gradient(batch.y, scores)
            if self.has_own_loss:
                require_finite_gradient(self.targets.loss, g, batch.y, scores)
            weighted = g * batch.w[:, None]
            gbar = column_means(weighted)
            t = self.history.t * self.blocks_per_step + number
            update = self.choice.choose(t, MiniBatchRecords(self.expansion, X, keys, batch.w, weighted, gbar))
            # Where no record pulls (every margin of a hinge is held) a block of zeros would cost for ever, and say
            # nothing.
            pulls = bool(weighted.any())
            phi = self.expansion.features(update.block, X, keys) if pulls else None
            shrink = self.shrink(update.decay)
            undo.before_decay(shrink)
            self.expansion.decay(shrink)
            self.history.decay(shrink)
            if self._learning is not None:
                self._learning.take_step(update.decay * self.choice.kappa, scores, batch.w)
            if phi is None:
                break
            undo.before_move(update.block)
            delta = self.move(update, self._gradient(phi, g, batch.w), gbar)
            if number < self.blocks_per_step - 1:
                scores *= shrink
                add_products(phi.astype(np.float64), delta, scores)
        self.history.end_step(len(scores))

    def shrink(self, decay: float) -> float:
        """What an update of a decay multiplies all coefficients by."""
        # Beyond -1 coefficients would grow by what is to make them smaller.
        return max(1 - decay * self.regularization, -1.0)

    def _gradient(self, phi: Array, g: Array, weights: Array) -> Array:
        """The gradient of a block's coefficients, float64 of shape (K, 2 F), or what is in its place."""
        if self.preconditioned:
            return self.preconditioned_gradient(phi, g, weights)
        G = np.empty((g.shape[1], phi.shape[1]))
        mean_outer(phi, g * weights[:, None], G)
        return G

    def move(self, update: BlockUpdate, G: Array, gbar: Array) -> Array:
        """Move a block's coefficients against the gradient G, and give by what, both float64 of shape (K, 2 F)."""
        # A preconditioned one was looked at where it was solved.
        if not (self._bounded or self.preconditioned or np.isfinite(G).all()):
            raise NotFiniteError(f"the kernel {type(self.expansion.kernel).__name__}: {TOO_LARGE_PLAIN}")
        size = np.broadcast_to(np.asarray(update.size), gbar.shape)
        delta = -size[:, None] * G
        is_new = update.block == self.expansion.n_blocks
        self.expansion.add(update.block, delta)
        self.history.enter(update.block, is_new, size, gbar, math.nan if self.preconditioned else update.margin)
        return delta

    def preconditioned_gradient(self, phi: Array, g: Array, weights: Array) -> Array:
        """What a preconditioned step has in place of the gradient.

        NotFiniteError: The features are so large that it is not finite.
        """
        try:
            return preconditioned_gradient(phi, g, weights, curvature(self.targets.loss))
        except NotFiniteError as error:
            raise NotFiniteError(self.too_large) from error

    @property
    def too_large(self) -> str:
        """A sentence where features are so large that a preconditioned step is not finite."""
        return (
            f"the kernel {type(self.expansion.kernel).__name__}: {TOO_LARGE}: use smaller inputs, a smaller multiple "
            "of the kernel, or precondition=False"
        )
