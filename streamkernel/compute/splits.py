"""The search of a split: the cut between an input's intervals that explains most of the targets' sum of squares."""

from typing import Any

import numpy as np

from streamkernel.compute.binning import BINS
from streamkernel.compute.gaussians import random_signs
from streamkernel.compute.jit import jit

Array = np.ndarray[Any, np.dtype[Any]]

#: The fewest records of a leaf.
SMALLEST = 3
#: Outputs that a split looks at; where there are more, that many random sums of them.
WATCHED = 8
#: A split is better than another by this share, and explains that share of what its node's mean explains, or it is
#: rounding: of two that part the records alike the first is taken, on every machine.
_MARGIN = 1e-9


@jit
def watched(targets: Array, weights: Array, word: Any) -> Array:
    """What splits are chosen by: targets times weights, and weights, (n, k + 1).

    Two classes say the same, so that one is enough; of many, that many random sums.
    """
    n, K = targets.shape
    k = 1 if K == 2 else min(K, WATCHED)
    R = np.zeros((n, k + 1))
    for i in range(n):
        R[i, k] = weights[i]
    if K <= WATCHED:
        for i in range(n):
            for c in range(k):
                R[i, c] = targets[i, c] * weights[i]
        return R
    signs = random_signs(word, WATCHED, K)
    for i in range(n):
        for c in range(K):
            t = targets[i, c] * weights[i]
            if t != 0.0:
                for s in range(WATCHED):
                    R[i, s] += t * signs[s, c]
    return R


@jit
def explained(sums: Array) -> Any:
    """What a mean explains of the sum of squares, from sums of targets and of weights, (k + 1,)."""
    k = sums.shape[0] - 1
    total = 0.0
    for c in range(k):
        total += sums[c] ** 2
    return total / sums[k]


@jit
def explains_more(gain: float, other: float, base: float) -> Any:
    """Whether one gain is larger than another by more than rounding, in a node whose mean explains `base`."""
    return gain > other + _MARGIN * (other + base)


@jit
def best_cut(codes: Array, rows: Array, R: Array, sums: Array, base: float, totals: Array, counts: Array) -> Any:
    """Where to split a node's records by one input: the gain in explained sum of squares, and the last interval below.

    Parameters
    ----------
    codes
        The input's interval of every record of the window.
    rows
        The node's records.
    R
        Of every record of the window: its targets times its weight, and its weight, (n, k + 1).
    sums, base
        The node's sums of R, shape (k + 1,), and what its mean explains, as `explained` has it.
    totals, counts
        Zeros, shape (BINS, k + 1) and (BINS,), int64; zeros again afterwards.

    """
    k = R.shape[1] - 1
    lowest, highest = BINS, 0
    for i in rows:
        b = codes[i]
        lowest, highest = min(lowest, b), max(highest, b)
        counts[b] += 1
    if k == 1:
        for i in rows:
            b = codes[i]
            totals[b, 0] += R[i, 0]
            totals[b, 1] += R[i, 1]
    else:
        for i in rows:
            b = codes[i]
            for c in range(k + 1):
                totals[b, c] += R[i, c]
    gain, cut = 0.0, -1
    below, above = 0, rows.shape[0]
    for b in range(lowest, highest):
        if b > lowest:
            for c in range(k + 1):
                totals[b, c] += totals[b - 1, c]
        if counts[b] == 0:
            continue
        below += counts[b]
        above -= counts[b]
        if below < SMALLEST or above < SMALLEST:
            continue
        left, right = 0.0, 0.0
        for c in range(k):
            left += totals[b, c] ** 2
            right += (sums[c] - totals[b, c]) ** 2
        more = left / totals[b, k] + right / (sums[k] - totals[b, k]) - base
        if explains_more(more, gain, base):
            gain, cut = more, b
    for b in range(lowest, highest + 1):
        counts[b] = 0
        for c in range(k + 1):
            totals[b, c] = 0.0
    return gain, cut


@jit
def partition(codes: Array, cut: int, rows: Array) -> Any:
    """Bring records up to an interval to the front, in place; returns their number."""
    first, last = 0, rows.shape[0] - 1
    while first <= last:
        if codes[rows[first]] <= cut:
            first += 1
        else:
            rows[first], rows[last] = rows[last], rows[first]
            last -= 1
    return first
