"""The step history: their number, what became of them, and every block's beta."""

import math
from typing import Any, ClassVar

import numpy as np

from streamkernel.fields import Rules, all_finite, array, checked, number, whole, within
from streamkernel.finite import LARGEST
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
            if is_new and block == len(self._beta):
                self._beta = np.concatenate([self._beta, np.zeros((max(block, 4), self._beta.shape[1]))])
            self._beta[block] -= size * gbar
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


_SCALARS = ("t", "last_batch_size", "gamma_0", "largest_gradient", "n_grown", "n_reused", "last_margin")
