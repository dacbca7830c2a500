"""The figures of a growing kernel machine that a user would plot."""

from typing import Any

from streamkernel.estimators.shares import shares_of
from streamkernel.growth.importances import importances
from streamkernel.growth.machine import Machine


class GrowthFigures:
    """The figures of a growing machine."""

    _machine: Machine
    _lock: Any

    @property
    def n_features(self) -> int:
        """Features in use; a feature is one draw, of a Fourier kernel a frequency: its cosine and sine count once."""
        return self._machine.expansion.n_features

    @property
    def n_blocks(self) -> int:
        """Blocks of features in use."""
        return self._machine.expansion.n_blocks

    @property
    def n_steps(self) -> int:
        """Mini-batches learnt."""
        return self._machine.history.t

    @property
    def last_batch_size(self) -> int:
        """Records of the last mini-batch; 0 before the first.

        Those given to the last `batch_step`, else `batch_size`.
        """
        return self._machine.history.last_batch_size

    @property
    def n_grown(self) -> int:
        """Updates that made a new block; a step has `blocks_per_step` of them."""
        return self._machine.history.n_grown

    @property
    def n_reused(self) -> int:
        """Updates that touched an old block."""
        return self._machine.history.n_reused

    @property
    def last_check_margin(self) -> float:
        """By how much inequality (9) held when CDSG last reused a block, right side minus left.

        NaN before, and with preconditioned steps.
        """
        return self._machine.history.last_margin

    @property
    def gamma_0(self) -> float:
        """The default rule's first step size, of plain steps that of `batch_size` records; 0 before the first step."""
        return self._machine.history.gamma_0

    @property
    def bandwidth(self) -> float:
        """The kernel's length scale in use; 0 before the first mini-batch, 1 of a kernel that has none to be chosen."""
        return self._machine.expansion.bandwidth

    @property
    def feature_importances_(self) -> dict[str, float]:
        """How far each input moves predictions, by name; shares of 1, the largest first, empty before the first step.

        An input's share is its mean absolute contribution, much as `explain_one` gives it, at up to 128 points that are
        drawn as the stream is distributed: numbers normal, of the mean and variance that they had, values of a string
        as frequent as they were. All values of a string are one input. It costs about 1,000 predictions at most, of
        more than 128 inputs 8 for each.
        """
        with self._lock:
            return shares_of(importances(self._machine) if self._machine.expansion.n_blocks else [])

    @property
    def memory_bytes(self) -> int:
        """Bytes of coefficients and of cached frequencies."""
        return self._machine.nbytes
