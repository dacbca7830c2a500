"""The averaged solution: the mean of an expansion's coefficients after each step."""

import copy
from typing import ClassVar

import numpy as np

from streamkernel.expansion.expansion import Expansion
from streamkernel.fields import Rules, array, checked
from streamkernel.state import State


class AveragedSolution:
    """The mean of the solutions of a growing machine after each of its steps (Polyak-Ruppert averaging).

    A block that did not exist at a step counts as 0 then. It takes as much memory as the coefficients.

    - expansion: The last solution.
    - solution: The mean as an expansion, which shares its frequencies with the last solution and is only to be read.
    """

    rules: ClassVar[Rules] = {"average_alpha": Expansion.rules["alpha"]}

    def __init__(self, expansion: Expansion) -> None:
        self._last = expansion
        self.forget()

    def forget(self) -> None:
        """Start over."""
        self._mean = np.zeros_like(self._last.coefficients)
        self.solution = self._last

    @property
    def nbytes(self) -> int:
        """Bytes of its coefficients."""
        return int(self._mean.nbytes)

    def take(self, t: int) -> None:
        """Take in the last solution as the t-th, from 1."""
        last = self._last.coefficients
        if last.shape != self._mean.shape:
            self._mean = np.pad(self._mean, [(0, n - m) for n, m in zip(last.shape, self._mean.shape, strict=True)])
        share = self._last.dtype.type(1 / t)
        self._mean += share * (self._last.dtype.type(self._last.scale) * last - self._mean)
        self._show()

    def begin_at_last(self) -> None:
        """Have the last solution as the mean."""
        last = self._last
        self._mean = last.dtype.type(last.scale) * last.coefficients
        self._show()

    def state(self) -> State:
        """The fields of the state."""
        return checked({"average_alpha": self.solution.alpha}, self.rules)

    def load_state(self, state: State) -> None:
        """Take the fields that `state` gave, after the last solution's; ValueError where they do not fit."""
        checked(state, self.rules)
        last = self._last
        self._mean = last.in_order(array(state, "average_alpha", last.dtype, *last.alpha.shape))
        self._show()

    def _show(self) -> None:
        self.solution = copy.copy(self._last)
        self.solution.replace(self._mean)
