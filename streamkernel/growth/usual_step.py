"""The usual step, compiled: of cached frequencies, by a policy of ours, under a loss with bounded gradients."""

import numpy as np

from streamkernel.compute.features import SINE, Scaling
from streamkernel.compute.growing_run import Naming
from streamkernel.compute.growing_step import score_rows
from streamkernel.expansion.expansion import Expansion
from streamkernel.expansion.sources import Drawn
from streamkernel.growth.cdsg import CDSG, MOST_OUTPUTS
from streamkernel.growth.dsg import DSG
from streamkernel.growth.history import StepUndo
from streamkernel.growth.step_run import StepRun
from streamkernel.growth.udsg import UDSG
from streamkernel.growth.updates import BlockUpdates
from streamkernel.growth.waiting import MiniBatch
from streamkernel.losses import gradient_bound
from streamkernel.records.learning_targets import LearningTargets
from streamkernel.state import Array

#: More blocks than there ever are.
_NO_END = 2**62


class UsualStep:
    """What `BlockUpdates.take_step` does and `Expansion.scores` gives, with the same bits, where compiled code can."""

    def __init__(self, updates: BlockUpdates) -> None:
        self._updates = updates
        choice, targets = updates.choice, updates.targets
        policy = choice.growth
        grow, reuse = (policy.grow, policy.reuse) if type(policy) is UDSG else (1, 0)
        most = _NO_END if choice.max_blocks is None else choice.max_blocks
        self._naming = Naming(type(policy) is CDSG, False, grow, grow + reuse, np.uint64(0), most)
        self._is_usual = (
            (type(policy) in (DSG, UDSG) or (type(policy) is CDSG and policy.cap == 1))
            and choice.feature_scale.is_bounded
            and gradient_bound(targets.loss) is not None
            and not (updates.has_own_loss or isinstance(targets, LearningTargets))
            # A schedule of the user's may ask for more than the solution of a ridge regression.
            and not (updates.preconditioned and choice.step is not None)
        )

    def frequencies(self, keys: Array, n_new: int = 1) -> Array | None:
        """The cached frequencies of all blocks and the next ones; None if some are not, or features are others."""
        expansion = self._updates.expansion
        term = expansion.terms[0]
        source = term.source
        if len(expansion.terms) > 1 or term.factor != 1 or type(source) is not Drawn or source.kernel.transforms:
            return None
        return source.cached(keys, term.own_bandwidth or expansion.bandwidth, expansion.n_blocks + n_new)

    def score(self, expansion: Expansion, values: Array, learned: Array, scaling: Scaling, W: Array, X: Array) -> Array:
        """Scale rows into X (n, d) as they arrive, and give their scores, float64 of shape (n, K)."""
        scores = np.zeros((len(X), expansion.n_outputs))
        factor = expansion.scale / np.sqrt(expansion.block_size)
        alpha = expansion.terms[0].alpha
        moments = scaling.standardize, scaling.limit, scaling.is_number, scaling.moments
        score_rows(values, learned, *moments, W, alpha, expansion.n_features, factor, SINE[X.dtype], X, scores)
        return scores

    def begins(self, keys: Array) -> bool:
        """Whether the next step is a usual one. The first is not: it measures."""
        updates = self._updates
        begun = updates.expansion.n_blocks and (updates.history.gamma_0 or updates.choice.step is not None)
        return bool(self._is_usual and begun) and self.frequencies(keys, updates.blocks_per_step) is not None

    def run(self, batch: MiniBatch, keys: Array, undo: StepUndo | None) -> StepRun:
        """Usual steps from a mini-batch on, whose records have scores; `undo` is one that the caller has."""
        updates = self._updates
        n_new, by_class = updates.blocks_per_step, updates.expansion.n_outputs > MOST_OUTPUTS
        naming = self._naming._replace(by_class=by_class, seed=np.uint64(updates.expansion.seed))
        return StepRun(updates, naming, batch, len(keys), lambda: self.frequencies(keys, n_new), undo)
