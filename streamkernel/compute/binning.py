"""Inputs binned for the search of splits: each value becomes the number of an interval, bounded by quantiles."""

from typing import Any

import numpy as np

from streamkernel.compute.jit import jit

Array = np.ndarray[Any, np.dtype[Any]]

#: Intervals of an input between which a split is sought, and the records whose quantiles bound them.
BINS = 32
SAMPLED = 256


@jit
def sort(values: Array) -> None:
    """Sort numbers, (n,), in place: Shell's sort, with Ciura's gaps; numpy's takes 2 s to compile."""
    n = values.shape[0]
    for gap in (301, 132, 57, 23, 10, 4, 1):
        for i in range(gap, n):
            value = values[i]
            j = i
            while j >= gap and values[j - gap] > value:
                values[j] = values[j - gap]
                j -= gap
            values[j] = value


@jit
def bin_column(x: Array, codes: Array, cuts: Array) -> Any:
    """The interval of each value of an input.

    Parameters
    ----------
    x
        Values, float64 of shape (n,); NaN where not observed.
    codes
        Filled: uint8 of shape (n,). NaN is in the last interval.
    cuts
        Filled: the upper bounds of all intervals but the last, ascending, shape (BINS - 1,).

    Returns
    -------
    The number of intervals.

    """
    n = x.shape[0]
    step = max(1, n // SAMPLED)
    sample = np.empty(n // step + 3)
    taken = 0
    lowest, highest, missing = np.inf, -np.inf, False
    for i in range(n):
        if np.isnan(x[i]):
            missing = True
            continue
        lowest, highest = min(lowest, x[i]), max(highest, x[i])
        if i % step == 0:
            sample[taken] = x[i]
            taken += 1
    n_cuts = 0
    if lowest < highest:
        # A value that is rare is not in the sample, and one that is common fills more than an interval.
        sample[taken], sample[taken + 1] = lowest, highest
        taken += 2
        ordered = sample[:taken]
        sort(ordered)
        room = BINS - 2  # one cut is kept for what was not observed
        for b in range(1, room + 1):
            i = b * taken // (room + 1)
            below = ordered[i]
            if below >= highest:
                break
            while ordered[i] <= below:
                i += 1
            cut = below + 0.5 * (ordered[i] - below)
            if not below <= cut < ordered[i]:
                cut = below
            if n_cuts == 0 or cut > cuts[n_cuts - 1]:
                cuts[n_cuts] = cut
                n_cuts += 1
    if missing and lowest < np.inf:
        cuts[n_cuts] = np.inf
        n_cuts += 1
    for i in range(n):
        first, last = 0, n_cuts
        while first < last:
            middle = (first + last) // 2
            if x[i] <= cuts[middle]:
                last = middle
            else:
                first = middle + 1
        codes[i] = first
    return n_cuts + 1
