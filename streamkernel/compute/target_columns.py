"""Several targets at once, each standardized by running moments of its own."""

from typing import Any

import numpy as np

from streamkernel.compute.jit import jit
from streamkernel.compute.moments import MEAN, deviation, take_target

Array = np.ndarray[Any, np.dtype[Any]]


@jit
def standardize_columns(y: Array, moments: Array, out: Array, before: Array) -> None:
    """Standardize numbers of several targets, each by moments of its own, as `standardize` does.

    Parameters
    ----------
    y
        The numbers, float64 of shape (n, K); NaN is passed over.
    moments
        float64 of shape (K, 8); updated.
    out
        Filled, NaN where y is; float64 of shape (n, K).
    before
        Filled: mean and deviation before each, float64 of shape (n, K, 2).
    """
    for i in range(y.shape[0]):
        for k in range(y.shape[1]):
            before[i, k, 0] = moments[k, MEAN]
            before[i, k, 1] = deviation(moments[k])
            out[i, k] = np.nan
            if not np.isnan(y[i, k]):
                out[i, k] = take_target(moments[k], y[i, k])[0]
