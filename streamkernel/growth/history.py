"""The step history: the number of steps, what became of them, every block's beta, and how to undo a step that fails."""

import math
from typing import Any, ClassVar, Self

import numpy as np

from streamkernel.expansion.expansion import Expansion
from streamkernel.fields import Rules, all_finite, array, checked, number, whole, within
from streamkernel.finite import LARGEST
from streamkernel.growth.feature_scale import FeatureScale
from streamkernel.records.learning_targets import LearningTargets
from streamkernel.records.targets import Targets
from streamkernel.state import Array, State

#: The largest norm of a gradient times its weight: its square is finite, and so is all that is made of that.
LARGEST_NORM = 1e120


class StepHistory:
    """The history of the growing machine's steps.

    - keeps_beta: Whether the policy asks for beta.
    - t: Steps taken.
    - gamma_0: The first step size; 0 before the first mini-batch.
    - largest_gradient: A decaying maximum of |g|, the bound M for losses that have none.
    - last_batch_size: Records of the last step; 0 before the first.
    - n_grown, n_reused: Updates that made a block, and that touched an old one.
    - last_margin: By how much (9) held when a block was last reused by the check; NaN before.
    """

    rules: ClassVar[Rules] = {
        "gamma_0": within(0.0, LARGEST),
        "largest_gradient": within(0.0, LARGEST_NORM),
        "last_margin": all_finite,
        "beta": all_finite,
    }

    def __init__(self, keeps_beta: bool) -> None:
        self.keeps_beta = keeps_beta
        self.forget()

    def forget(self) -> None:
        """Start over."""
        self.t = 0
        self.last_batch_size = 0
        self.gamma_0 = 0.0
        self.largest_gradient = 0.0
        self.n_grown = 0
        self.n_reused = 0
        self.last_margin = math.nan
        self._beta = np.zeros((0, 0))

    def mark(self) -> tuple[dict[str, Any], Array]:
        """All there is by now, for `back_to`."""
        return {name: getattr(self, name) for name in _SCALARS}, self.beta.copy()

    def back_to(self, mark: tuple[dict[str, Any], Array], n_outputs: int) -> None:
        """Go back to what `mark` gave, with beta widened to `n_outputs` outputs."""
        scalars, self._beta = mark
        for name, value in scalars.items():
            setattr(self, name, value)
        self._beta = self._beta[:, :n_outputs]
        self.widen(n_outputs)

    @property
    def beta(self) -> Array:
        """Gradient coefficients, float64 of shape (blocks, K)."""
        return self._beta[: self.n_grown if self.keeps_beta else 0]

    def widen(self, n_outputs: int) -> None:
        """Give new outputs a zero column."""
        missing = n_outputs - self._beta.shape[1]
        if missing > 0:
            self._beta = np.pad(self._beta, ((0, 0), (0, missing)))

    def decay(self, factor: float) -> None:
        """Let every beta decay with the coefficients."""
        if self.keeps_beta:
            self._beta[: self.n_grown] *= factor

    def forget_beta(self) -> None:
        """Let the sums of gradients begin at 0: the coefficients are solved, not stepped."""
        self._beta[:] = 0

    def enter(self, block: int, is_new: bool, size: Array, gbar: Array, margin: float) -> None:
        """Enter a step: the block's beta moves by -size gbar."""
        if self.keeps_beta:
            self.make_room(block)
            self._beta[block] -= size * gbar
        self.count(is_new, margin)

    def make_room(self, block: int) -> None:
        """Make room for the beta of a block, an old one or the next."""
        if self.keeps_beta and block == len(self._beta):
            self._beta = np.concatenate([self._beta, np.zeros((max(block, 4), self._beta.shape[1]))])

    @property
    def all_beta(self) -> Array:
        """Beta with the room for blocks to come; none of a policy that keeps none."""
        return self._beta if self.keeps_beta else _NO_BETA

    def count(self, is_new: bool, margin: float) -> None:
        """Count the update of a block, new or not, for which (9) held by a margin, or which was not checked: NaN."""
        if is_new:
            self.n_grown += 1
        else:
            self.n_reused += 1
            if not math.isnan(margin):
                self.last_margin = margin

    def end_step(self, size: int) -> None:
        """Count a step of `size` records."""
        self.t += 1
        self.last_batch_size = size

    def state(self) -> State:
        """The fields of the state."""
        fields: dict[str, Any] = {name: getattr(self, name) for name in _SCALARS}
        # JSON has no NaN.
        fields["last_margin"] = None if math.isnan(self.last_margin) else self.last_margin
        return checked(
            {**fields, "beta": self.beta.copy()},
            self.rules,
        )

    def load_state(self, state: State) -> None:
        """Take the fields that `state` gave; ValueError where they do not fit."""
        checked(state, self.rules)
        self.t, self.n_grown, self.n_reused = (whole(state, name) for name in ("t", "n_grown", "n_reused"))
        self.last_batch_size = whole(state, "last_batch_size")
        self.gamma_0 = number(state, "gamma_0")
        self.largest_gradient = number(state, "largest_gradient")
        unknown = "last_margin" in state and state["last_margin"] is None
        self.last_margin = math.nan if unknown else number(state, "last_margin")
        self._beta = array(state, "beta", np.float64, self.n_grown if self.keeps_beta else 0, None)


_NO_BETA = np.zeros((0, 0))
_SCALARS = ("t", "last_batch_size", "gamma_0", "largest_gradient", "n_grown", "n_reused", "last_margin")


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
            self.undo()

    def undo(self) -> None:
        """Go back."""
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
