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


@jit
def scale(
    values: Array,
    learnt: Array,
    standardize: bool,
    limit: float,
    is_number: Array,
    counts: Array,
    mean: Array,
    m2: Array,
    first: int,
    out: Array,
) -> None:
    """Scale rows (n, d) by their moments or, where numbers are not to be standardised, clip them only.

    They go to `out` (at least first + n, at least d), whose further columns are 0 there.
    """
    own = out[first : first + values.shape[0]]
    own[:, values.shape[1] :] = 0
    if standardize:
        scale_rows(values, learnt, is_number, counts, mean, m2, limit, own)
    else:
        clip_rows(values, limit, own)


@jit
def standardise(y: Array, moments: Array, out: Array, before: Array) -> None:
    """Standardise numbers one after the other by the moments that include each of them.

    Parameters
    ----------
    y
        The numbers, float64 of shape (n,); NaN is passed over.
    moments
        Count, mean and sum of squared deviations, float64 of shape (3,); updated.
    out
        Filled, NaN where y is; float64 of shape (n,).
    before
        Filled: mean and deviation before each, float64 of shape (n, 2).
    """
    for i in range(y.shape[0]):
        before[i, 0] = moments[1]
        before[i, 1] = np.sqrt(moments[2] / moments[0]) if moments[0] else 0.0
        out[i] = np.nan
        if not np.isnan(y[i]):
            moments[0] += 1
            delta = y[i] - moments[1]
            moments[1] += delta / moments[0]
            moments[2] += delta * (y[i] - moments[1])
            deviation = np.sqrt(moments[2] / moments[0])
            out[i] = (y[i] - moments[1]) / (deviation if deviation else 1.0)
