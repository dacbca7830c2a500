"""When trees are grown again, and how much of the growth each record does.

A growth begins when enough of the window is new. It has the window as it is then, and takes a number of records that is
known then: the last of them puts the new trees in the place of the oldest. Each of them does about the same part of the
work, so that none waits for a tree. What it comes to, and when, does not depend on that.
"""

from typing import Any

import numpy as np

from streamkernel.compute.gaussians import mix64
from streamkernel.compute.jit import Array, jit
from streamkernel.compute.splits import BINS, LANES, SMALLEST, n_watched
from streamkernel.compute.tree_growth import (
    CUT,
    DEEPEST,
    DONE,
    ENCODE,
    FOLLOWING,
    PHASE,
    SHRINKING,
    SORT,
    SPLITTING,
    SUMMING,
    TRIED,
    WORK,
    catch_up,
    next_slot,
    prepare,
    sampling_step,
    shrink_nodes,
    split_node,
    sum_nodes,
)
from streamkernel.compute.trees import FIRST, GROWING, GROWN, SEEN, SINCE, SOONEST, Forest, follow_in

#: The part of the records between two growths over which one is spread, and at least that many records.
SPREAD = 6
QUICKEST = 3


@jit
def records_between(n: int, n_trees: int) -> Any:
    """Records between the beginnings of two growths, on n records."""
    return max(SOONEST, n // n_trees)


def spread(n: int, n_trees: int) -> Any:
    """Records over which a growth on n records is spread; fewer than lie between two."""
    return max(QUICKEST, n // (SPREAD * n_trees))


#: The same for compiled code.
records_to_grow = jit(spread)


@jit
def most_work(forest: Forest) -> Any:
    """No growth on the records of the one under way takes more work."""
    n, (T, _, K), d = forest.counts[GROWING], forest.targets.shape, forest.rows.shape[1]
    N, tried, k, groups = forest.nodes.shape[0], min(d, TRIED), n_watched(K), forest.watched.shape[1] // LANES
    window = n * d * (1 + ENCODE) + d * SORT * (n // sampling_step(n) + 3)
    asked = min(N, DEEPEST * n // (2 * SMALLEST))
    splits = DEEPEST * n * (tried * groups + 1) + min(asked * BINS, DEEPEST * n) * tried * (CUT + (k + 1) // 2)
    values = n * (1 + 2 * K) + (n + 4 * N) * (1 + K)
    return window + T * (splits + values + records_to_grow(n, forest.features.shape[1] - 1) * (DEEPEST + K))


@jit
def grow_on(forest: Forest) -> None:
    """Do a record's part of the growth under way, the record being taken in; with the last, new trees are in force."""
    counts, progress = forest.counts, forest.progress
    left = records_to_grow(counts[GROWING], forest.features.shape[1] - 1) - counts[SINCE]
    work = progress[WORK]
    enough = work + (most_work(forest) - work) // (left + 1)
    word, slot = mix64(np.uint64(counts[GROWN])), next_slot(forest)
    while progress[WORK] <= enough or left == 0:
        phase = progress[PHASE]
        if phase == SPLITTING:
            split_node(forest, slot, word)
        elif phase == SUMMING:
            sum_nodes(forest, slot)
        elif phase == SHRINKING:
            shrink_nodes(forest, slot)
        elif phase == FOLLOWING:
            if progress[DONE] == counts[SINCE]:
                break
            catch_up(forest, slot)
        else:
            prepare(forest, word)
    if left == 0:
        counts[GROWN] += 1
        counts[GROWING] = 0


@jit
def learn_trees(forest: Forest, x: Array, targets: Array, weight: float) -> None:
    """Let the leaves follow a record, take it into the window, and continue or begin a growth.

    - forest: Updated.
    - x: Inputs, float64 of shape (d,).
    - targets: What each ensemble learns, (T, K).
    - weight: The record's weight, above 0.
    """
    (T, slots), (capacity, d) = forest.features.shape[:2], forest.rows.shape
    counts = forest.counts
    last = counts[GROWN]
    for i in range(last - min(last, slots - 1), last):
        for t in range(T):
            follow_in(forest, t, i % slots, x, targets[t], weight)
    place = counts[SEEN] % capacity
    for j in range(d):
        forest.rows[place, j] = x[j]
    for t in range(T):
        for c in range(targets.shape[1]):
            forest.targets[t, place, c] = targets[t, c]
    forest.weights[place] = weight
    counts[SEEN] += 1
    counts[SINCE] += 1
    if counts[GROWING] > 0:
        grow_on(forest)
        return
    n = min(counts[SEEN], forest.codes.shape[0])
    if n >= FIRST and counts[SINCE] >= records_between(n, slots - 1):
        counts[GROWING], counts[SINCE] = n, 0
        forest.progress[:] = 0
