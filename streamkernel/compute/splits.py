"""The search of a split: inputs in intervals between quantiles, and the cut that explains most of the targets."""

from typing import Any

import numpy as np

from streamkernel.compute.gaussians import random_signs
from streamkernel.compute.jit import Array, jit
from streamkernel.compute.vectors import add_four, dot_four, popcount

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

    - X: Inputs, float64 of shape (n, d); NaN where not observed.
    - first, step: The number of the first record; of those whose number is a multiple of `step`, every value is taken.
    - samples: Of each input: the least and the largest value, infinite before the first, then those taken; updated.
    - sizes: The values taken of each input, and whether one was not observed, int64 of shape (2, d); updated.
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

    - sample: Its least and largest value and some others, shape (n,); sorted in place.
    - missing: Whether a value was not observed.
    - cuts: Filled: the upper bounds of all intervals but the last, ascending, shape (BINS - 1,); after these infinity.

    Returns the number of intervals. The last is for what was not observed, where something was not.
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

    - X: Inputs, float64 of shape (n, d); NaN where not observed.
    - cuts, n_bins: As `find_cuts` has them, of each input: shape (d, BINS - 1) and (d,).
    - codes: Filled: uint8 of shape (n, d). NaN is in the last interval.
    """
    n, d = X.shape
    for i in range(n):
        for j in range(d):
            x, first = X[i, j], 0
            for step in (16, 8, 4, 2, 1):  # as many steps for every value: nothing to guess for the processor
                first += 0 if x <= cuts[j, first + step - 1] else step
            codes[i, j] = min(first, n_bins[j] - 1)


#: The fewest records of a leaf.
SMALLEST = 3
#: Outputs that a split looks at; where there are more, that many random sums of them.
WATCHED = 8
#: Sums that are taken together: as many float64 as go into a register.
LANES = 4
#: A split is better than another by this share, and explains that share of what its node's mean explains, or it is
#: rounding: of two that part the records alike the first is taken, on every machine.
_MARGIN = 1e-9


def watched_sums(n_outputs: int) -> Any:
    """The sums that splits are chosen by; two classes say the same, so that one is enough."""
    return 1 if n_outputs == 2 else min(n_outputs, WATCHED)


def lanes(n_outputs: int) -> int:
    """Those for the watched sums, the weight and the number of records, in whole groups."""
    return (int(watched_sums(n_outputs)) + 1 + LANES) // LANES * LANES


#: The same for compiled code: who makes room for the arrays does not wait for a compiler.
n_watched = jit(watched_sums)


@jit
def watch(targets: Array, weights: Array, word: Any, watched: Array) -> None:
    """What splits are chosen by.

    - targets, weights: Of n records: float64 of shape (n, K) and (n,).
    - word: uint64, of which the random sums of many outputs follow.
    - watched: Filled: of every record its targets times its weight, or random sums of these, its weight, 1, and zeros
      up to a multiple of `LANES`.
    """
    n, K = targets.shape
    k = n_watched(K)
    watched[:n] = 0.0
    for i in range(n):
        watched[i, k] = weights[i]
        watched[i, k + 1] = 1.0
    if K <= WATCHED:
        for i in range(n):
            for c in range(k):
                watched[i, c] = targets[i, c] * weights[i]
        return
    signs = random_signs(word, WATCHED, K)
    for i in range(n):
        for c in range(K):
            t = targets[i, c] * weights[i]
            if t != 0.0:
                for s in range(WATCHED):
                    watched[i, s] += t * signs[s, c]


@jit
def add_to_histograms(codes: Array, watched: Array, rows: Array, inputs: Array, histograms: Array) -> None:
    """Add records to the sums of the intervals they are in.

    - codes, watched: Of every record: the intervals of its inputs, uint8 of shape (n, d), and what is summed, (n, G
      `LANES`).
    - rows: The records to add.
    - inputs: Which inputs have a histogram, int64 of shape (m,).
    - histograms: float64 of shape (G m `BINS`, `LANES`), group by group, input by input; updated.
    """
    m, width = inputs.shape[0], watched.shape[1]
    for g in range(width // LANES):
        for i in rows:
            for t in range(m):
                place = (g * m + t) * BINS + codes[i, inputs[t]]
                add_four(histograms, place * LANES, watched, i * width + g * LANES)


@jit
def occupied(codes: Array, rows: Array, inputs: Array, found: Array) -> None:
    """The intervals of each of some inputs that records are in, as bits of a uint64, (m,); `found` is filled."""
    for t in range(inputs.shape[0]):
        found[t] = 0
    for i in rows:
        for t in range(inputs.shape[0]):
            found[t] |= np.uint64(1) << np.uint64(codes[i, inputs[t]])


@jit
def explained(sums: Array, k: int) -> Any:
    """What a mean explains of the sum of squares, from sums of k targets, then of the weights."""
    total = 0.0
    for c in range(k):
        total += sums[c] ** 2
    return total / sums[k]


@jit
def explains_more(gain: float, other: float, base: float) -> Any:
    """Whether one gain is larger than another by more than rounding, in a node whose mean explains `base`."""
    return gain > other + _MARGIN * (other + base)


@jit
def best_cut(
    histograms: Array, first: int, apart: int, found: Any, sums: Array, kept: Array, k: int, below: Array
) -> Any:
    """Where to split a node's records by one input: the gain in explained sum of squares, and the last interval below.

    - histograms: As `add_to_histograms` has them; those of the input are zeros afterwards.
    - first, apart: The place of the input's first interval, and how far apart those of two groups are.
    - found: The intervals that may have records, bits of a uint64.
    - sums, kept: The node's sums, and 1 for those that are watched, 0 for the others, in whole groups of `LANES`.
    - k: How many are watched.
    - below: Room, as `sums`.
    """
    one, width = np.uint64(1), sums.shape[0]
    gain, cut = 0.0, np.int64(-1)
    squares = 0.0
    for c in range(0, width, LANES):
        squares += dot_four(kept, sums, sums, c)
    base = squares / sums[k]
    below[:] = 0.0
    target, weight, number = 0.0, 0.0, 0.0
    while found != 0:
        b = np.int64(popcount(np.uint32(~found & (found - one))))
        found &= found - one
        left, both = 0.0, 0.0
        if k == 1:
            place = first + b
            target += histograms[place, 0]
            weight += histograms[place, 1]
            number += histograms[place, 2]
            for c in range(LANES):
                histograms[place, c] = 0.0
            left, both = target * target, target * sums[0]
        else:
            for g in range(width // LANES):
                place = first + b + g * apart
                add_four(below, g * LANES, histograms, place * LANES)
                left += dot_four(kept, below, below, g * LANES)
                both += dot_four(kept, below, sums, g * LANES)
                for c in range(LANES):
                    histograms[place, c] = 0.0
            weight, number = below[k], below[k + 1]
        if number >= SMALLEST and sums[k + 1] - number >= SMALLEST:
            right = squares - 2.0 * both + left
            more = left / weight + right / (sums[k] - weight) - base
            if explains_more(more, gain, base):
                gain, cut = more, b
    return gain, cut


@jit
def partition(codes: Array, feature: int, cut: int, rows: Array, room: Array) -> Any:
    """Bring records up to an interval of an input to the front, all in their order; returns their number.

    - codes: Intervals of every record's inputs, uint8 of shape (n, d).
    - feature, cut: The input, and the last interval of the front.
    - rows: The records, int64 of shape (m,); rearranged.
    - room: As long.
    """
    first, second = 0, 0
    for i in rows:  # both places are written, so that there is nothing to guess for the processor
        rows[first] = i
        room[second] = i
        is_first = 1 if codes[i, feature] <= cut else 0
        first += is_first
        second += 1 - is_first
    for i in range(second):
        rows[first + i] = room[i]
    return first
