"""What a step overwrites, kept until it is done: one that fails in between leaves the model as it was before."""

from typing import Self

import numpy as np

from streamkernel.expansion.expansion import Expansion
from streamkernel.growth.feature_scale import FeatureScale
from streamkernel.growth.history import StepHistory
from streamkernel.records.learning_targets import LearningTargets
from streamkernel.records.targets import Targets
from streamkernel.state import Array


class StepUndo:
    """The way back to before a step: a copy of what is small, and of the coefficients as they are about to change."""

    def __init__(
        self, expansion: Expansion, history: StepHistory, feature_scale: FeatureScale, targets: Targets
    ) -> None:
        self._expansion = expansion
        self._history = history
        self._feature_scale = feature_scale
        self._targets = targets if isinstance(targets, LearningTargets) else None
        self._of_targets = targets.state() if isinstance(targets, LearningTargets) else {}
        self._n_blocks, self._scale, self._bandwidth = expansion.n_blocks, expansion.scale, expansion.bandwidth
        self._mark = history.mark()
        self._bounds = feature_scale.kappa, feature_scale.feature_bound
        #: Coefficients before they were changed, in that order: of a block, or under None of all.
        self._changed: list[tuple[int | None, Array | list[Array]]] = []

    def before_decay(self, factor: float) -> None:
        """Keep what a decay is about to change."""
        if self._expansion.folds(factor):
            self._changed.append((None, self._expansion.coefficients.copy()))

    def before_move(self, block: int) -> None:
        """Keep what a move of a block is about to change."""
        self._changed.append((block, [term.block(block).copy() for term in self._expansion.terms]))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self._undo()

    def _undo(self) -> None:
        expansion = self._expansion
        if self._n_blocks:
            for block, kept in reversed(self._changed):
                if block is None:
                    expansion.replace(np.asarray(kept))
                    continue
                for term, coefficients in zip(expansion.terms, kept, strict=True):
                    term.block(block)[:] = coefficients
            expansion.n_blocks, expansion.scale = self._n_blocks, self._scale
        else:  # nor were groups of frequencies begun
            expansion.forget()
            expansion.bandwidth = self._bandwidth
        self._history.back_to(self._mark, expansion.n_outputs)
        self._feature_scale.kappa, self._feature_scale.feature_bound = self._bounds
        if self._targets is not None:
            self._targets.load_state(self._of_targets)
