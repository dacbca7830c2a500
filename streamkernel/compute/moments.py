"""Running moments (Welford) of inputs and targets, which outliers cannot move far, and rows scaled by them.

A few absurd values must not decide the scale for ever, nor may a stream change its scale unnoticed:

- A far value counts as one `COUNTS_AS` deviations from the mean. 1% of them make the deviation 1.25 times what it was.
- Once so many values are far that they are no outliers, at least 1% of all, they are taken as they are.
- Values that come first are far from nothing. So the moments are compared with those of the later half of all values:
  where these are so much narrower, the first were outliers (or are past), and the moments of the half take their place.
"""

from typing import Any

import numpy as np

from streamkernel.compute.jit import jit

#: Larger values count as this: their squares, summed, would overflow.
LARGEST = 1e100
#: Deviations from the mean past which a value is far, and as how many it counts then. Ordinary streams bring single
#: values 80 deviations from all before, where a scale begins to change: these are taken as they are.
FAR = 100.0
COUNTS_AS = 6.0
#: The values that come before any is far; in a block, where one outlier would spoil all, they are fewer.
FEWEST = 32
FEWEST_OF_BLOCK = 3
#: Deviations that are less than this, in means, are rounding: beside them nothing is far.
ROUNDING = 1e-12
#: Far values, less those that are not, from which on they are taken as they are: so many, and this share of all.
ENOUGH = 64.0
SHARE = 0.01
#: Values of the shortest block; others are longer than all before by this, so that what comes every so many records is
#: not the first of one after the other.
BLOCK = 8
LONGER = 3
#: A block's moments replace those of all values where its deviation is smaller by this.
NARROWER = 40.0
#: The numbers of a value's moments: of all values their count, mean and sum of squared deviations, the far ones less
#: the others (never below 0), and how many there have been; then count, mean and squares of the block.
COUNT, MEAN, M2, RUN, SEEN, BLOCK_COUNT, BLOCK_MEAN, BLOCK_M2 = range(8)
SIZE = 8

Array = np.ndarray[Any, np.dtype[Any]]


def are_moments(moments: Array) -> bool:
    """Whether an array, (..., 8), can be moments: finite numbers, and none but a mean below 0."""
    rest = moments[..., [COUNT, M2, RUN, SEEN, BLOCK_COUNT, BLOCK_M2]] if moments.shape[-1:] == (SIZE,) else moments
    return bool(np.isfinite(moments).all() and (rest >= 0).all())


@jit
def updated(count: float, mean: float, m2: float, value: float, fewest: float, bounded: bool) -> Any:
    """Count, mean and sum of squared deviations with one more value in them, and whether it is far.

    A far value is taken as it is where it is not to be bounded.
    """
    n = count + 1
    delta = value - mean
    far = count >= fewest and delta * delta * count > FAR * FAR * m2 and m2 > count * (ROUNDING * mean) ** 2
    if far and bounded:
        delta = np.copysign(COUNTS_AS * np.sqrt(m2 / count), delta)
        return n, mean + delta / n, m2 + delta * delta * (count / n), far
    new_mean = mean + delta / n
    return n, new_mean, m2 + delta * (value - new_mean), far


@jit
def is_bounded(moments: Array) -> Any:
    """Whether far values are outliers so far: there are not enough of them to be a change."""
    return moments[RUN] < max(ENOUGH, SHARE * moments[COUNT])


@jit
def note(moments: Array, value: float, far: bool, bounded: bool) -> Any:
    """Take a value into run and block, (8,), and end the block where it is time; whether it replaced the moments."""
    moments[RUN] = moments[RUN] + 1 if far else max(moments[RUN] - 1, 0.0)
    moments[SEEN] += 1
    if far and not bounded:  # a change: what the block holds is past
        moments[BLOCK_COUNT] = moments[BLOCK_MEAN] = moments[BLOCK_M2] = 0.0
        return False
    size, mean, m2, _ = updated(
        moments[BLOCK_COUNT], moments[BLOCK_MEAN], moments[BLOCK_M2], value, FEWEST_OF_BLOCK, True
    )
    moments[BLOCK_COUNT], moments[BLOCK_MEAN], moments[BLOCK_M2] = size, mean, m2
    if size < BLOCK or (moments[SEEN] > BLOCK and 2 * size < moments[SEEN] + LONGER):
        return False
    replaced = m2 > 0 and moments[M2] / moments[COUNT] > NARROWER * NARROWER * (m2 / size)
    if replaced:
        moments[COUNT], moments[MEAN], moments[M2] = size, mean, m2
    moments[BLOCK_COUNT] = moments[BLOCK_MEAN] = moments[BLOCK_M2] = 0.0
    return replaced


@jit
def deviation(moments: Array) -> Any:
    """The deviation that moments, (8,), tell; 0 before two values differ."""
    return np.sqrt(moments[M2] / moments[COUNT]) if moments[COUNT] > 0 else 0.0


@jit
def drawn_in(standardised: float, bounded: bool) -> Any:
    """A standardised target, +-`FAR` at most; an outlier counts the less the farther it is."""
    if bounded and abs(standardised) > FAR:
        return standardised * (FAR / standardised) ** 2 * abs(FAR / standardised)
    return min(max(standardised, -FAR), FAR)


@jit
def near(moments: Array, y: float) -> Any:
    """A target as near to the mean as `drawn_in` brings it, once there are enough to tell."""
    spread = deviation(moments)
    if moments[COUNT] < FEWEST or spread <= ROUNDING * abs(moments[MEAN]):
        return y
    standardised = (y - moments[MEAN]) / spread
    if abs(standardised) <= FAR:
        return y
    return moments[MEAN] + spread * drawn_in(standardised, is_bounded(moments))


@jit
def scale_rows(raw: Array, learn: Array, is_number: Array, moments: Array, limit: float, out: Array) -> None:
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
    moments
        float64 of shape (d, 8); updated.
    limit
        Scaled values are clipped to +-limit.
    out
        Filled; shape (n, d). Not observed is 0, the mean.
    """
    d = raw.shape[1]
    for r in range(raw.shape[0]):
        keep = learn[r]
        for j in range(d):
            value = min(max(raw[r, j], -LARGEST), LARGEST)
            if np.isnan(raw[r, j]):
                out[r, j] = 0
            elif not is_number[j]:
                out[r, j] = value
            else:
                own = moments[j]
                bounded = is_bounded(own)
                n, mean, m2, far = updated(own[COUNT], own[MEAN], own[M2], value, FEWEST, bounded)
                variance = m2 / n
                scaled = 0.0
                if variance > 0:
                    scaled = (value - mean) / np.sqrt(variance)
                out[r, j] = min(max(scaled, -limit), limit)
                if keep:
                    own[COUNT], own[MEAN], own[M2] = n, mean, m2
                    note(own, value, far, bounded)


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
    moments: Array,
    first: int,
    out: Array,
) -> None:
    """Scale rows (n, d) by their moments or, where numbers are not to be standardised, clip them only.

    They go to `out` (at least first + n, at least d), whose further columns are 0 there.
    """
    own = out[first : first + values.shape[0]]
    own[:, values.shape[1] :] = 0
    if standardize:
        scale_rows(values, learnt, is_number, moments, limit, own)
    else:
        clip_rows(values, limit, own)


@jit
def take_target(moments: Array, y: float) -> Any:
    """Take a target into the moments, (8,); returns it as these, itself included, standardise it, and if all is new.

    It is drawn in. All is new where the moments of the block have replaced those of all targets.
    """
    bounded = is_bounded(moments)
    n, mean, m2, far = updated(moments[COUNT], moments[MEAN], moments[M2], y, FEWEST, bounded)
    moments[COUNT], moments[MEAN], moments[M2] = n, mean, m2
    spread = deviation(moments)
    standardised = (y - moments[MEAN]) / (spread if spread > 0 else 1.0)
    return drawn_in(standardised, bounded and n > FEWEST), note(moments, y, far, bounded)


@jit
def standardise(y: Array, moments: Array, out: Array, before: Array) -> None:
    """Standardise numbers one after the other by the moments that include each of them.

    Parameters
    ----------
    y
        The numbers, float64 of shape (n,); NaN is passed over.
    moments
        float64 of shape (8,); updated.
    out
        Filled, NaN where y is; float64 of shape (n,).
    before
        Filled: mean and deviation before each, float64 of shape (n, 2).
    """
    for i in range(y.shape[0]):
        before[i, 0] = moments[MEAN]
        before[i, 1] = deviation(moments)
        out[i] = np.nan
        if not np.isnan(y[i]):
            out[i] = take_target(moments, y[i])[0]
