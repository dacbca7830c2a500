"""Running moments (Welford) of inputs and targets, which outliers cannot move far, and rows scaled by them.

A few absurd values must not decide the scale for ever, nor may a stream change its scale unnoticed:

- A value past `far` deviations counts as one `counts_as` deviations from the mean.
- Once at least 1% of all values are far, they are no outliers and are taken as they are.
- Values that come first are far from nothing. So the moments are compared with those of the later half of all values:
  where these are so much narrower, the first were outliers (or are past), and the moments of the half take their place.

Inputs are guarded more closely than targets: what is far among inputs is clipped, so that it hardly matters how far it
is, while a far target may be what is to be learned.
"""

from typing import Any, NamedTuple

import numpy as np

from streamkernel.compute.jit import Array, jit

#: Larger values count as this: their squares, summed, would overflow.
LARGEST = 1e100


class Guard(NamedTuple):
    """What is far, and what becomes of it.

    - far: Deviations from the mean past which a value is far.
    - counts_as: Deviations from the mean that a far value counts as.
    - narrower: A block's moments replace those of all values where its deviation is smaller by this.
    """

    far: float
    counts_as: float
    narrower: float


#: 1% of far values make the deviation 1.04 times what it was.
INPUTS = Guard(far=5.0, counts_as=3.0, narrower=3.0)
#: Ordinary targets go 80 deviations from all before and stay there for a while: these are taken as they are.
TARGETS = Guard(far=100.0, counts_as=6.0, narrower=40.0)
#: The values that come before any is far; in a block, where one outlier would spoil all, they are fewer.
FEWEST = 32
FEWEST_OF_BLOCK = 3
#: Deviations that are less than this, in means, are rounding: no value is then far.
ROUNDING = 1e-12
#: Far values, less `FADES` for each that is not, from which on they are taken as they are: this many, and this share of
#: all. Where a scale has changed, the deviation follows until less than one in five is far.
FADES = 0.25
ENOUGH = 64.0
SHARE = 0.01
#: Blocks end where the count of values, plus `BEFORE`, is `FIRST_END` times a power of two: each is about as long
#: as all before, and what comes at regular intervals is not the first of one block after the other.
FIRST_END = 11
BEFORE = 3
#: From this many values on every `STRIDE`th, a power of two, is enough for a block. Fewer than `LEAST` tell nothing.
ALL_UNTIL = 700
STRIDE = 16
LEAST = 8
#: The numbers of a value's moments: of all values their count, mean and sum of squared deviations, the far ones less
#: a part of the others (never below 0), and how many there have been; then count, mean and squares of the block.
COUNT, MEAN, M2, RUN, SEEN, BLOCK_COUNT, BLOCK_MEAN, BLOCK_M2 = range(8)
SIZE = 8
#: A count that no stream comes to, and the sum of squares of that number of values.
MOST_VALUES = 1e30
MOST_M2 = MOST_VALUES * LARGEST * LARGEST


def are_moments(moments: Array) -> bool:
    """Whether an array, (..., 8), can be moments: none but a mean below 0, and none larger than of values there are.

    Whatever is larger would overflow with one of the next values.
    """
    if moments.shape[-1:] != (SIZE,):
        return False
    largest = 2 * np.array([MOST_VALUES, LARGEST, MOST_M2, MOST_VALUES, MOST_VALUES, MOST_VALUES, LARGEST, MOST_M2])
    least = np.where(np.isin(np.arange(SIZE), [MEAN, BLOCK_MEAN]), -largest, 0.0)
    return bool(((moments >= least) & (moments <= largest)).all())  # NaN is neither


@jit
def is_far(count: float, mean: float, m2: float, delta: float, guard: Guard) -> Any:
    """Whether a value, `delta` from the mean, is far from all others; none is where deviations are rounding."""
    return delta * delta * count > guard.far * guard.far * m2 and m2 > count * (ROUNDING * mean) ** 2


@jit
def drawn_to(count: float, m2: float, delta: float, guard: Guard) -> Any:
    """What a far value's distance from the mean counts as."""
    return np.copysign(guard.counts_as * np.sqrt(m2 / count), delta)


@jit
def are_outliers(run: float, count: float) -> Any:
    """Whether far values are outliers so far: there are not enough of them to be a change."""
    return run < max(ENOUGH, SHARE * count)


@jit
def updated(moments: Array, j: int, value: float, guard: Guard) -> Any:
    """Mean and sum of squared deviations of the j-th of all, (d, 8), with one more value in them; whether it is far."""
    count, mean, m2 = moments[j, COUNT], moments[j, MEAN], moments[j, M2]
    delta = value - mean
    far = count >= FEWEST and is_far(count, mean, m2, delta, guard)
    if far and are_outliers(moments[j, RUN], count):
        delta = drawn_to(count, m2, delta, guard)
        return mean + delta / (count + 1), m2 + delta * delta * (count / (count + 1)), far
    mean += delta / (count + 1)
    return mean, m2 + delta * (value - mean), far


@jit
def keep(moments: Array, j: int, value: float, mean: float, m2: float, far: bool, guard: Guard) -> Any:
    """Keep what `updated` gave, and take the value into run and block; whether the block replaced the moments."""
    count = moments[j, COUNT]
    moments[j, COUNT], moments[j, MEAN], moments[j, M2] = count + 1, mean, m2
    seen = moments[j, SEEN] + 1
    moments[j, SEEN] = seen
    run = moments[j, RUN]
    if far:
        moments[j, RUN] = run + 1
        if not are_outliers(run, count):  # a change: what the block holds is past
            forget_block(moments, j)
            return False
    elif run > 0:
        moments[j, RUN] = max(run - FADES, 0.0)
    place = np.int64(seen) + BEFORE
    if place > ALL_UNTIL and place & (STRIDE - 1):
        return False
    take_into_block(moments, j, value, guard)
    times = place // FIRST_END
    return place % FIRST_END == 0 and not times & (times - 1) and end_block(moments, j, guard)


@jit
def forget_block(moments: Array, j: int) -> None:
    """Reset the block."""
    moments[j, BLOCK_COUNT] = moments[j, BLOCK_MEAN] = moments[j, BLOCK_M2] = 0.0


@jit
def take_into_block(moments: Array, j: int, value: float, guard: Guard) -> None:
    """One more value of the block; nothing makes a far one a change."""
    count, mean, m2 = moments[j, BLOCK_COUNT], moments[j, BLOCK_MEAN], moments[j, BLOCK_M2]
    delta = value - mean
    if count >= FEWEST_OF_BLOCK and is_far(count, mean, m2, delta, guard):
        delta = drawn_to(count, m2, delta, guard)
        moments[j, BLOCK_M2] += delta * delta * (count / (count + 1))
        moments[j, BLOCK_MEAN] += delta / (count + 1)
    else:
        moments[j, BLOCK_MEAN] += delta / (count + 1)
        moments[j, BLOCK_M2] += delta * (value - moments[j, BLOCK_MEAN])
    moments[j, BLOCK_COUNT] += 1


@jit
def end_block(moments: Array, j: int, guard: Guard) -> Any:
    """Start a new block and return whether the old one replaced the moments."""
    size, m2 = moments[j, BLOCK_COUNT], moments[j, BLOCK_M2]
    wide = moments[j, M2] / moments[j, COUNT]
    replaced = size >= LEAST and m2 > 0 and wide > guard.narrower * guard.narrower * (m2 / size)
    if replaced:
        moments[j, COUNT], moments[j, MEAN], moments[j, M2] = size, moments[j, BLOCK_MEAN], m2
    forget_block(moments, j)
    return replaced


@jit
def deviation(moments: Array) -> Any:
    """The deviation that moments, (8,), tell; 0 before two values differ."""
    return np.sqrt(moments[M2] / moments[COUNT]) if moments[COUNT] > 0 else 0.0


@jit
def drawn_in(standardized: float, bounded: bool) -> Any:
    """A standardized target, +-`TARGETS.far` at most; an outlier counts the less the farther it is."""
    far = TARGETS.far
    if bounded and abs(standardized) > far:
        return standardized * (far / standardized) ** 2 * abs(far / standardized)
    return min(max(standardized, -far), far)


@jit
def near(moments: Array, y: float) -> Any:
    """A target as near to the mean as `drawn_in` brings it, once there are enough to tell."""
    spread = deviation(moments)
    if moments[COUNT] < FEWEST or spread <= ROUNDING * abs(moments[MEAN]):
        return y
    standardized = (y - moments[MEAN]) / spread
    if abs(standardized) <= TARGETS.far:
        return y
    return moments[MEAN] + spread * drawn_in(standardized, are_outliers(moments[RUN], moments[COUNT]))


@jit
def scale_rows(raw: Array, learn: Array, is_number: Array, moments: Array, limit: float, out: Array) -> None:
    """Scale rows one after the other by the moments that include each of them.

    - raw: The values, float64 of shape (n, d); NaN where the input was not observed.
    - learn: Bool of shape (n,): whether the row stays in the moments. The others are scaled by the moments they would
      have led to, which are then forgotten.
    - is_number: Bool of shape (d,): false for indicators, which are passed on as they are, and counted in `SEEN`.
    - moments: float64 of shape (d, 8); updated.
    - limit: Scaled values are clipped to +-limit.
    - out: Filled; shape (n, d). Not observed is 0, the mean.
    """
    for r in range(raw.shape[0]):
        for j in range(raw.shape[1]):
            value = min(max(raw[r, j], -LARGEST), LARGEST)
            if np.isnan(raw[r, j]):
                out[r, j] = 0
                continue
            if not is_number[j]:
                out[r, j] = value
                if learn[r]:
                    moments[j, SEEN] += 1
                continue
            # The usual case of `updated` and `keep`, written out: their calls would cost more than they do.
            count, mean, m2 = moments[j, COUNT], moments[j, MEAN], moments[j, M2]
            n = count + 1
            delta = value - mean
            far = count >= FEWEST and delta * delta * count > INPUTS.far * INPUTS.far * m2
            if far:
                mean, m2, far = updated(moments, j, value, INPUTS)
            else:
                mean += delta / n
                m2 += delta * (value - mean)
            variance = m2 / n
            scaled = 0.0
            if variance > 0:
                scaled = (value - mean) / np.sqrt(variance)
            out[r, j] = min(max(scaled, -limit), limit)
            if not learn[r]:
                continue
            place = np.int64(moments[j, SEEN]) + 1 + BEFORE
            if far or moments[j, RUN] > 0 or place <= ALL_UNTIL or not place & (STRIDE - 1):
                keep(moments, j, value, mean, m2, far, INPUTS)
            else:
                moments[j, COUNT], moments[j, MEAN], moments[j, M2] = n, mean, m2
                moments[j, SEEN] += 1


@jit
def clip_rows(raw: Array, learn: Array, moments: Array, limit: float, out: Array) -> None:
    """Rows as they are, clipped to +-limit; not observed (NaN) is 0.

    Those that `learn` are counted, with mean and squares of what they are, in the moments (d, 8).
    """
    for r in range(raw.shape[0]):
        for j in range(raw.shape[1]):
            if np.isnan(raw[r, j]):
                out[r, j] = 0
                continue
            value = min(max(raw[r, j], -limit), limit)
            out[r, j] = value
            if learn[r]:
                delta = value - moments[j, MEAN]
                moments[j, SEEN] += 1
                moments[j, COUNT] += 1
                moments[j, MEAN] += delta / moments[j, COUNT]
                moments[j, M2] += delta * (value - moments[j, MEAN])


@jit
def scale(
    values: Array,
    learned: Array,
    standardize: bool,
    limit: float,
    is_number: Array,
    moments: Array,
    first: int,
    out: Array,
) -> None:
    """Scale rows (n, d) by their moments or, where numbers are not to be standardized, clip them only.

    They go to `out` (at least first + n, at least d), whose further columns are 0 there.
    """
    own = out[first : first + values.shape[0]]
    for r in range(own.shape[0]):  # assigning a slice of columns takes longer to compile
        for j in range(values.shape[1], own.shape[1]):
            own[r, j] = 0
    if standardize:
        scale_rows(values, learned, is_number, moments, limit, own)
    else:
        clip_rows(values, learned, moments, limit, own)


@jit
def take_target(moments: Array, y: float) -> Any:
    """Take a target into the moments, (8,); returns it as these, itself included, standardize it, and if all is new.

    It is drawn in. All is new where the moments of the block have replaced those of all targets.
    """
    bounded = moments[COUNT] >= FEWEST and are_outliers(moments[RUN], moments[COUNT])
    own = moments.reshape(1, SIZE)
    mean, m2, far = updated(own, 0, y, TARGETS)
    spread = np.sqrt(m2 / (moments[COUNT] + 1))
    standardized = (y - mean) / (spread if spread > 0 else 1.0)
    return drawn_in(standardized, bounded), keep(own, 0, y, mean, m2, far, TARGETS)


@jit
def standardize(y: Array, moments: Array, out: Array, before: Array) -> None:
    """Standardize numbers one after the other by the moments that include each of them.

    - y: The numbers, float64 of shape (n,); NaN is passed over.
    - moments: float64 of shape (8,); updated.
    - out: Filled, NaN where y is; float64 of shape (n,).
    - before: Filled: mean and deviation before each, float64 of shape (n, 2).
    """
    for i in range(y.shape[0]):
        before[i, 0] = moments[MEAN]
        before[i, 1] = deviation(moments)
        out[i] = np.nan
        if not np.isnan(y[i]):
            out[i] = take_target(moments, y[i])[0]


@jit
def standardize_columns(y: Array, moments: Array, out: Array, before: Array) -> None:
    """Standardize K targets as `standardize` does: y and out are (n, K), moments (K, 8), before (n, K, 2)."""
    for i in range(y.shape[0]):
        for k in range(y.shape[1]):
            standardize(y[i, k : k + 1], moments[k], out[i, k : k + 1], before[i, k : k + 1])
