"""The last errors of a model's predictions, whose quantiles tell how far the next one may be off."""

from typing import Any

import numpy as np

from streamkernel.compute.jit import jit

Array = np.ndarray[Any, np.dtype[Any]]

#: How many are kept.
RESIDUALS = 500


@jit
def keep_residual(residuals: Array, error: float) -> None:
    """Keep one more, the oldest making room: how many there have been, then a ring of `RESIDUALS`."""
    n = np.int64(residuals[0])
    residuals[1 + n % RESIDUALS] = error
    residuals[0] = n + 1.0
