"""The figures of a growing kernel machine to plot."""

from typing import Any

from streamkernel.estimators.explanation import shares_of
from streamkernel.growth.importances import importances
from streamkernel.growth.record_machine import Figures, RecordMachine
from streamkernel.mixture.machine import MixtureMachine


class GrowthFigures:
    """The public figures of a growing machine."""

    _machine: RecordMachine
    _lock: Any

    @property
    def _figures(self) -> Figures:
        """Those of the machine; a mixture learns the records that wait first, and no other thread may meanwhile."""
        with self._lock:
            return self._machine.figures

    @property
    def n_features(self) -> int:
        """The features in use. A feature is one draw: for a Fourier kernel, one frequency with its cosine and sine."""
        figures = self._figures
        return figures.n_blocks * figures.block_size

    @property
    def n_blocks(self) -> int:
        """The number of blocks of features in use."""
        return self._figures.n_blocks

    @property
    def n_steps(self) -> int:
        """The number of mini-batches learned."""
        return self._figures.n_steps

    @property
    def last_batch_size(self) -> int:
        """The number of records in the last mini-batch; 0 before the first.

        After a `batch_step`, the number of its records, else `batch_size`.
        """
        return self._figures.last_batch_size

    @property
    def n_grown(self) -> int:
        """The number of updates that made a new block. A step has `blocks_per_step` updates."""
        return self._figures.n_grown

    @property
    def n_reused(self) -> int:
        """The number of updates of an old block; of a mixture, the steps that made no block."""
        return self._figures.n_reused

    @property
    def last_check_margin(self) -> float:
        """The margin of inequality (9) at the last reuse of a block by CDSG: right side minus left side.

        NaN before the first reuse, and with preconditioned steps. Of a mixture, the largest margin at the last step
        that made no block: below 0 if there was no room for one.
        """
        return self._figures.last_margin

    @property
    def gamma_0(self) -> float:
        """The first step size of the default rule, for `batch_size` records if steps are plain; 0 before a step."""
        return self._figures.gamma_0

    @property
    def bandwidth(self) -> float:
        """The length scale in use: 0 before the first mini-batch, 1 for a kernel without one to choose."""
        return self._figures.bandwidth

    @property
    def expert_weights(self) -> dict[str, float]:
        """The weight of each head and of the linear expert in the prediction, by name.

        Empty before the first labeled record. The machine of the papers has no experts: AttributeError.
        """
        with self._lock:
            if not isinstance(self._machine, MixtureMachine):
                raise AttributeError("expert_weights: the machine of the papers has no experts")
            return self._machine.expert_weights

    @property
    def feature_importances_(self) -> dict[str, float]:
        """How far each input moves predictions, by name, as shares of 1, largest first; empty before the first step.

        An input's share is its mean absolute contribution, similar to `explain_one`, at up to 128 generated points.
        Numbers are normal with the mean and variance of the stream, and values of a string have its frequencies. All
        values of a string are one input. It costs at most about 1,000 predictions, or 8 for each input if there are
        more than 128.
        """
        with self._lock:
            return shares_of(importances(self._machine) if self._machine.figures.n_blocks else [])

    @property
    def memory_bytes(self) -> int:
        """Bytes of the coefficients and the cached frequencies."""
        return self._machine.nbytes
