"""Checked arguments of the estimators with least-squares heads on random features."""

import secrets
from collections.abc import Sequence

import numpy as np

from streamkernel.adaptive.features import AdaptiveFeatures
from streamkernel.estimators.base import StreamEstimator
from streamkernel.finite import is_finite
from streamkernel.kernels import Gaussian, Kernel
from streamkernel.kernels.spectral import require_fourier
from streamkernel.records.inputs import Inputs
from streamkernel.state import excerpt

#: Below, float64 does not keep P positive where inputs are copies of each other.
LEAST_RIDGE = 1e-9


class HeadArguments(StreamEstimator):
    """An estimator with heads on random features, by the constructor's arguments."""

    kernel: Kernel | None
    n_features: int
    ridge: float
    drift_rates: tuple[float, ...]
    standardize: bool | None
    max_inputs: int
    seed: int | None

    def _checked_heads(self) -> tuple[Inputs, AdaptiveFeatures]:
        """Fresh inputs and columns, after the arguments of both, and of the heads, were checked."""
        self._check("kernel", self.kernel, Kernel)
        for name in ("n_features", "max_inputs"):
            self._at_least(name, 1)
        if not (_is_number(self.ridge) and is_finite(self.ridge) and self.ridge >= LEAST_RIDGE):
            raise ValueError(f"ridge must be a finite number of at least {LEAST_RIDGE:g}, got {excerpt(self.ridge)}")
        rates = self.drift_rates
        if not (is_some(rates) and all(_is_number(q) and is_finite(q) and q >= 0 for q in rates) and _each_once(rates)):
            raise ValueError(f"drift_rates must be a tuple of different finite numbers from 0 up, got {excerpt(rates)}")
        if not isinstance(self.standardize, bool | None):
            raise ValueError(f"standardize must be True, False or None, got {excerpt(self.standardize)}")
        if self.seed is not None and not is_whole(self.seed):
            raise ValueError(f"seed must be a whole number or None, got {excerpt(self.seed)}")
        seed = secrets.randbits(64) if self.seed is None else int(self.seed) % 2**64
        kernel = require_fourier(self.kernel or Gaussian(), type(self).__name__)
        standardize = kernel.standardizes if self.standardize is None else self.standardize
        return Inputs(self.max_inputs, standardize), AdaptiveFeatures(kernel, int(self.n_features), seed)


def is_some(values: object) -> bool:
    """Whether an argument is a tuple or list that is not empty."""
    return isinstance(values, tuple | list) and len(values) > 0


def is_whole(value: object) -> bool:
    """Whether an argument is a whole number, which a boolean is not."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _each_once(values: Sequence[float]) -> bool:
    # As the experts are named by them.
    return len({f"{float(value):g}" for value in values}) == len(values)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
