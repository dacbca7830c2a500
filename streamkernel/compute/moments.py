"""Running moments of the inputs (Welford), and rows scaled by them."""

from typing import Any

import numpy as np

from streamkernel.compute.jit import jit

# Squares of larger values would overflow the moments for ever.
_LARGEST = 1e150

Array = np.ndarray[Any, np.dtype[Any]]


@jit
def scale_rows(
    raw: Array, learn: Array, is_number: Array, count: Array, mean: Array, m2: Array, limit: float, out: Array
) -> None:
    """Scale rows one after the other by the moments that include each of them.

    Parameters
    ----------
    raw
        The values, float64 of shape (n, d); NaN where the input was not observed.
    learn
        Bool of shape (n,): whether the row stays in the moments. The others are scaled by the moments they would have
        led to, which are then forgotten.
    is_number
        Bool of shape (d,): false for indicators, which are passed on as they are.
    count, mean, m2
        The moments, float64 of shape (d,); updated.
    limit
        Scaled values are clipped to +-limit.
    out
        Filled; shape (n, d). Not observed is 0, the mean.
    """
    d = raw.shape[1]
    for r in range(raw.shape[0]):
        keep = learn[r]
        for j in range(d):
            value = min(max(raw[r, j], -_LARGEST), _LARGEST)
            if np.isnan(raw[r, j]):
                out[r, j] = 0
            elif not is_number[j]:
                out[r, j] = value
            else:
                n = count[j] + 1
                delta = value - mean[j]
                new_mean = mean[j] + delta / n
                new_m2 = m2[j] + delta * (value - new_mean)
                if keep:
                    count[j] = n
                    mean[j] = new_mean
                    m2[j] = new_m2
                scaled = 0.0
                if new_m2 > 0:
                    scaled = (value - new_mean) / np.sqrt(new_m2 / n)
                out[r, j] = min(max(scaled, -limit), limit)


@jit
def clip_rows(raw: Array, limit: float, out: Array) -> None:
    """Rows as they are, clipped to +-limit; not observed (NaN) is 0."""
    for r in range(raw.shape[0]):
        for j in range(raw.shape[1]):
            value = raw[r, j]
            out[r, j] = 0 if np.isnan(value) else min(max(value, -limit), limit)
