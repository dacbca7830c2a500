"""Inputs binned for the search of splits: each value becomes the number of an interval, bounded by quantiles."""

from typing import Any

import numpy as np

from streamkernel.compute.jit import Array, jit

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
def take_sample(X: Array, first: int, step: int, samples: Array, sizes: Array) -> None:
    """Take records into the samples of their inputs.

    Parameters
    ----------
    X
        Inputs, float64 of shape (n, d); NaN where not observed.
    first, step
        The number of the first record; of those whose number is a multiple of `step`, every value is taken.
    samples
        Of each input: the least and the largest value, infinite before the first, then those taken; updated.
    sizes
        The values taken of each input, and whether one was not observed, int64 of shape (2, d); updated.

    """
    n, d = X.shape
    for i in range(n):
        taken = (first + i) % step == 0
        for j in range(d):
            x = X[i, j]
            if np.isnan(x):
                sizes[1, j] = 1
                continue
            # A value that is rare is not in the sample, and one that is common fills more than an interval.
            samples[j, 0] = min(samples[j, 0], x)
            samples[j, 1] = max(samples[j, 1], x)
            if taken:
                samples[j, 2 + sizes[0, j]] = x
                sizes[0, j] += 1


@jit
def find_cuts(sample: Array, missing: Any, cuts: Array) -> Any:
    """Bound the intervals of an input.

    Parameters
    ----------
    sample
        Its least and largest value and some others, shape (n,); sorted in place.
    missing
        Whether a value was not observed.
    cuts
        Filled: the upper bounds of all intervals but the last, ascending, shape (BINS - 1,); after these infinity.

    Returns
    -------
    The number of intervals. The last is for what was not observed, where something was not.

    """
    n_cuts, n = 0, sample.shape[0]
    any_observed = sample[0] < np.inf
    if sample[0] < sample[1]:
        sort(sample)
        room = BINS - 2  # one cut is kept for what was not observed
        for b in range(1, room + 1):
            i = b * n // (room + 1)
            below = sample[i]
            if below >= sample[n - 1]:
                break
            while sample[i] <= below:
                i += 1
            cut = below + 0.5 * (sample[i] - below)
            if not below <= cut < sample[i]:
                cut = below
            if n_cuts == 0 or cut > cuts[n_cuts - 1]:
                cuts[n_cuts] = cut
                n_cuts += 1
    for b in range(n_cuts, BINS - 1):
        cuts[b] = np.inf
    return n_cuts + (2 if missing and any_observed else 1)


@jit
def encode(X: Array, cuts: Array, n_bins: Array, codes: Array) -> None:
    """The interval of each value.

    Parameters
    ----------
    X
        Inputs, float64 of shape (n, d); NaN where not observed.
    cuts, n_bins
        As `find_cuts` has them, of each input: shape (d, BINS - 1) and (d,).
    codes
        Filled: uint8 of shape (n, d). NaN is in the last interval.

    """
    n, d = X.shape
    for i in range(n):
        for j in range(d):
            x, first = X[i, j], 0
            for step in (16, 8, 4, 2, 1):  # as many steps for every value: nothing to guess for the processor
                first += 0 if x <= cuts[j, first + step - 1] else step
            codes[i, j] = min(first, n_bins[j] - 1)
