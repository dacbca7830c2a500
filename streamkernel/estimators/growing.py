"""The growing kernel machines: their arguments, and what a user would plot of them."""

import math
import secrets

import numpy as np
from river.optim.base import Scheduler

from streamkernel.estimators.base import StreamEstimator
from streamkernel.expansion.expansion import Expansion
from streamkernel.growth import CDSG, Growth
from streamkernel.growth.machine import Machine
from streamkernel.growth.sensitivity import sensitivities
from streamkernel.kernels import Gaussian, Kernel
from streamkernel.records.inputs import Inputs
from streamkernel.records.targets import Targets

_DTYPES = ("float32", "float64")


class KernelMachine(StreamEstimator):
    """A growing kernel machine behind River's interface."""

    kernel: Kernel | None
    growth: Growth | None
    block_size: int
    batch_size: int
    max_features: int | None
    step: Scheduler | None
    regularization: float
    standardize: bool | None
    max_inputs: int
    cache_bytes: int
    dtype: str
    seed: int | None
    _machine: Machine

    def _build(self, targets: Targets) -> Machine:
        """A fresh machine from the constructor's arguments."""
        self._check("kernel", self.kernel, Kernel)
        self._check("growth", self.growth, Growth)
        self._check("step", self.step, Scheduler)
        self._at_least("block_size", 1)
        self._at_least("batch_size", 1)
        if self.max_features is not None:
            self._at_least("max_features", self.block_size)
        self._at_least("max_inputs", 1)
        self._at_least("cache_bytes", 0)
        nu = self.regularization
        if not (isinstance(nu, int | float | np.number) and 0 <= nu < math.inf):
            raise ValueError(f"regularization must be a number from 0 up, got {nu!r}")
        if not isinstance(self.standardize, bool | None):
            raise ValueError(f"standardize must be True, False or None, got {self.standardize!r}")
        if self.dtype not in _DTYPES:
            raise ValueError(f"dtype must be one of {', '.join(_DTYPES)}, got {self.dtype!r}")
        whole = isinstance(self.seed, int | np.integer) and not isinstance(self.seed, bool)
        if self.seed is not None and not whole:
            raise ValueError(f"seed must be a whole number or None, got {self.seed!r}")
        seed = secrets.randbits(64) if self.seed is None else int(self.seed) % 2**64
        kernel = self.kernel or Gaussian()
        if kernel.structured and self.dtype != "float32":
            raise ValueError(f"structured frequencies are float32, got dtype={self.dtype!r}: leave one of the two out")
        standardize = kernel.standardizes if self.standardize is None else bool(self.standardize)
        if standardize and kernel.domain is not None:
            raise ValueError(
                f"standardize=True moves inputs below {kernel.domain.least:g}, which {kernel!r} does not take: "
                "leave standardize out"
            )
        return Machine(
            Inputs(self.max_inputs, standardize, kernel.domain),
            targets,
            Expansion(kernel, int(self.block_size), np.dtype(self.dtype), self.cache_bytes, seed),
            self.growth or CDSG(),
            self.batch_size,
            self.max_features,
            self.step,
            float(self.regularization),
        )

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
    def n_grown(self) -> int:
        """Steps that made a new block."""
        return self._machine.history.n_grown

    @property
    def n_reused(self) -> int:
        """Steps that touched an old block."""
        return self._machine.history.n_reused

    @property
    def last_check_margin(self) -> float:
        """By how much inequality (9) held when CDSG last reused a block, right side minus left; NaN before."""
        return self._machine.history.last_margin

    @property
    def gamma_0(self) -> float:
        """The first step size of the default rule; 0 before the first mini-batch."""
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
        measured = sensitivities(machine.expansion, machine.inputs)
        total = float(measured.sum())
        return {name: float(value) / total for name, value in zip(self.input_names, measured, strict=True) if total > 0}

    @property
    def memory_bytes(self) -> int:
        """Bytes of coefficients and of cached frequencies."""
        return self._machine.expansion.nbytes
