"""The figures of a growing kernel machine that a user would plot."""

from streamkernel.growth.machine import Machine
from streamkernel.growth.sensitivity import sensitivities


class GrowthFigures:
    """The figures of a growing machine."""

    _machine: Machine

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
        """How much each input matters to the scores, by name; shares of 1, empty before the first step.

        The mean squared slope of f along the input, times the input's variance: a derivative-based global sensitivity
        measure, taken at 256 points at which numbers are standard normal in scaled units, and strings any of their
        values. What it costs is as much as 500 predictions; where features are no cosines of the inputs, slopes are
        differences, which cost 512 predictions for each input.
        """
        machine = self._machine
        if not machine.expansion.n_blocks:
            return {}
        measured = sensitivities(machine.solution, machine.inputs)
        total = float(measured.sum())
        return {
            name: float(value) / total
            for name, value in zip(machine.inputs.columns.names, measured, strict=True)
            if total > 0
        }

    @property
    def memory_bytes(self) -> int:
        """Bytes of coefficients and of cached frequencies."""
        return self._machine.nbytes
