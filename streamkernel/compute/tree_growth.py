"""The growth of a tree: split by split, breadth first, on the records of a window, in small parts.

Each function here does a part and counts the work in `progress`, so that a growth can be spread over the records that
follow. What a tree comes to does not depend on where the parts were cut.

A growth begins when enough of the window is new. It has the window as it is then, and takes a number of records that is
known then: the last of them puts the new trees in the place of the oldest. Each of them does about the same part of the
work, so that none waits for a tree.
"""

from typing import Any

import numpy as np

from streamkernel.compute.gaussians import mix64
from streamkernel.compute.jit import Array, jit
from streamkernel.compute.splits import (
    BINS,
    LANES,
    SAMPLED,
    SMALLEST,
    add_to_histograms,
    best_cut,
    encode,
    explained,
    explains_more,
    find_cuts,
    n_watched,
    occupied,
    partition,
    take_sample,
    watch,
)
from streamkernel.compute.trees import FIRST, GROWING, GROWN, SEEN, SHRINKAGE, SINCE, SOONEST, Forest, follow_in
from streamkernel.compute.vectors import add_four

#: How deep a leaf may lie.
DEEPEST = 10
#: Inputs tried at a split; where there are more, a draw of them.
TRIED = 32
#: What `progress` has: the phase, its ensemble, how many of its records, inputs or nodes are done; how many inputs the
#: node being split has histograms of and how many of its records are in them; the nodes there are; the work so far.
PHASE, ENSEMBLE, DONE, ASKED, FILLED, NODES, WORK = range(7)
#: The phases of a growth. Those from `WATCHING` to `SHRINKING` come once for every ensemble.
SAMPLING, CUTTING, ENCODING, WATCHING, SPLITTING, SUMMING, SHRINKING, FOLLOWING = range(8)
#: What `columns` has of each input: how many values are in its sample, whether one was not observed, its intervals; in
#: rows as long: the inputs in the order they were last drawn, and those that have histograms.
TAKEN, MISSING, N_BINS, DRAWN, HELD = range(5)
#: In a node of fewer records only the intervals that these are in are looked at.
FEW = 2 * BINS
#: Work is counted in sums of `LANES` float64. This much, about, is done at once.
AT_ONCE = 4096
#: The work for a value that is sorted, one whose interval is sought, and an interval where a cut is tried.
SORT, ENCODE, CUT = 16, 3, 2


@jit
def first_of_window(counts: Array) -> Any:
    """The number of the first record of the growth under way, of all that came."""
    return counts[SEEN] - counts[SINCE] - counts[GROWING]


@jit
def sampling_step(n: int) -> Any:
    """Each how manieth of n records is in the samples."""
    return max(1, n // SAMPLED)


@jit
def prepare(forest: Forest, word: Any) -> None:
    """Do a part of the phases before splits are sought: samples, cuts, codes, and what an ensemble's splits watch."""
    progress, columns, n = forest.progress, forest.columns, forest.counts[GROWING]
    phase, done, d, capacity = progress[PHASE], progress[DONE], forest.rows.shape[1], forest.rows.shape[0]
    if phase == CUTTING:
        if done < d:
            sample = forest.samples[done, : 2 + columns[TAKEN, done]]
            columns[N_BINS, done] = find_cuts(sample, columns[MISSING, done], forest.cuts[done])
            progress[WORK] += SORT * sample.shape[0]
        progress[DONE] += 1
        if progress[DONE] >= d:
            progress[PHASE], progress[DONE] = ENCODING, 0
        return
    K = forest.targets.shape[2]
    a_record = d if phase == SAMPLING else (ENCODE * d if phase == ENCODING else 1 + 2 * K)
    place = (first_of_window(forest.counts) + done) % capacity
    m = min(max(1, AT_ONCE // max(a_record, 1)), n - done, capacity - place)
    rows = forest.rows[place : place + m]
    if phase == SAMPLING:
        if done == 0:
            for j in range(d):
                forest.samples[j, 0], forest.samples[j, 1] = np.inf, -np.inf
                columns[TAKEN, j], columns[MISSING, j] = 0, 0
        take_sample(rows, done, sampling_step(n), forest.samples, columns[TAKEN : MISSING + 1])
    elif phase == ENCODING:
        encode(rows, forest.cuts, columns[N_BINS], forest.codes[done : done + m])
    else:
        t = progress[ENSEMBLE]
        watch(
            forest.targets[t, place : place + m],
            forest.weights[place : place + m],
            word,
            forest.watched[done : done + m],
        )
        for i in range(done, done + m):
            forest.order[0, i] = i
    progress[WORK] += m * a_record
    progress[DONE] += m
    if progress[DONE] == n:
        progress[PHASE], progress[DONE] = phase + 1, 0
        if phase == WATCHING:
            for j in range(d):
                columns[DRAWN, j] = j
            forest.nodes[0, 0], forest.nodes[0, 1], forest.nodes[0, 2] = 0, n, 0
            progress[NODES], progress[FILLED] = 1, 0
            forest.histograms[:] = 0.0  # a growth that was given up may have left something


@jit
def draw_inputs(columns: Array, word: Any, node: int) -> Any:
    """Draw the inputs that are tried at a node; returns how many of them can be split, which are `HELD`."""
    d, held = columns.shape[1], 0
    tried = min(d, TRIED)
    for t in range(tried):
        if tried < d:
            drawn = t + np.int64(mix64(word + np.uint64((node << 16) + t)) % np.uint64(d - t))
            columns[DRAWN, t], columns[DRAWN, drawn] = columns[DRAWN, drawn], columns[DRAWN, t]
        j = columns[DRAWN, t]
        if columns[N_BINS, j] > 1:
            columns[HELD, held] = j
            held += 1
    return held


@jit
def best_split(codes: Array, rows: Array, histograms: Array, held: Array, n_bins: Array, k: int, width: int) -> Any:
    """The input, and its last interval below, that a node is split by; -1 where nothing is explained.

    - codes, rows: Intervals of every record's inputs, (n, d), and the node's records.
    - histograms: As `add_to_histograms` has them, of the inputs `held`, shape (m,), one or more; zeros afterwards.
    - n_bins: Intervals of every input, (d,).
    - k, width: How many of the sums are watched, and of how many there is room for.
    """
    m = held.shape[0]
    sums, kept, below, found = np.empty(width), np.empty(width), np.empty(width), np.empty(m, np.uint64)
    if rows.shape[0] < FEW:
        occupied(codes, rows, held, found)
    else:
        for t in range(m):
            found[t] = (np.uint64(1) << np.uint64(n_bins[held[t]])) - np.uint64(1)
    for c in range(width):
        sums[c], kept[c] = 0.0, 1.0 if c < k else 0.0
    for b in range(n_bins[held[0]]):
        for g in range(width // LANES):
            add_four(sums, g * LANES, histograms, (g * m * BINS + b) * LANES)
    base = explained(sums, k)
    gain, feature, cut = 0.0, -1, -1
    for t in range(m):
        g, b = best_cut(histograms, t * BINS, m * BINS, found[t], sums, kept, k, below)
        if explains_more(g, gain, base):
            gain, feature, cut = g, held[t], b
    return feature, cut


@jit
def make_leaf(forest: Forest, slot: int, node: int) -> None:
    """Let a node be a leaf, with the sum of its records' targets times their weights for its values as yet."""
    t, nodes, capacity, K = forest.progress[ENSEMBLE], forest.nodes, forest.rows.shape[0], forest.targets.shape[2]
    first = first_of_window(forest.counts)
    values, total = forest.values[t, slot, node], 0.0
    forest.features[t, slot, node], forest.thresholds[t, slot, node], forest.children[t, slot, node] = -1, 0.0, 0
    values[:] = 0.0
    for i in forest.order[0, nodes[node, 0] : nodes[node, 1]]:
        place = (first + i) % capacity
        weight = forest.weights[place]
        total += weight
        for c in range(K):
            values[c] += weight * forest.targets[t, place, c]
    forest.node_weights[t, slot, node] = total
    forest.progress[WORK] += (nodes[node, 1] - nodes[node, 0] + 1) * (1 + K)


@jit
def split_node(forest: Forest, slot: int, word: Any) -> None:
    """Bring some more records of the next node into its histograms; where all are, split it or let it be a leaf."""
    progress, columns, nodes = forest.progress, forest.columns, forest.nodes
    t, node, n_nodes = progress[ENSEMBLE], progress[DONE], progress[NODES]
    groups, k = forest.watched.shape[1] // LANES, n_watched(forest.targets.shape[2])
    rows = forest.order[0, nodes[node, 0] : nodes[node, 1]]
    n = rows.shape[0]
    if progress[FILLED] == 0:
        may = n >= 2 * SMALLEST and nodes[node, 2] < DEEPEST and n_nodes + 2 <= nodes.shape[0]
        progress[ASKED] = draw_inputs(columns, word, node) if may else 0
    held = columns[HELD, : progress[ASKED]]
    m = held.shape[0]
    if m > 0:
        filled = progress[FILLED]
        upto = min(n, filled + max(1, AT_ONCE // (m * groups)))
        add_to_histograms(forest.codes, forest.watched, rows[filled:upto], held, forest.histograms)
        progress[FILLED] = upto
        progress[WORK] += (upto - filled) * m * groups
        if upto < n:
            return
        feature, cut = best_split(forest.codes, rows, forest.histograms, held, columns[N_BINS], k, groups * LANES)
        progress[WORK] += m * min(BINS, n) * (CUT + (k + 1) // 2)
        if feature >= 0:
            middle = partition(forest.codes, feature, cut, rows, forest.order[1])
            progress[WORK] += n
            forest.features[t, slot, node] = feature
            forest.thresholds[t, slot, node] = forest.cuts[feature, cut]
            forest.children[t, slot, node] = n_nodes
            start = nodes[node, 0]
            nodes[n_nodes, 0], nodes[n_nodes, 1] = start, start + middle
            nodes[n_nodes + 1, 0], nodes[n_nodes + 1, 1] = start + middle, start + n
            nodes[n_nodes, 2] = nodes[n_nodes + 1, 2] = nodes[node, 2] + 1
            progress[NODES] += 2
        else:
            make_leaf(forest, slot, node)
    else:
        make_leaf(forest, slot, node)
    progress[FILLED] = 0
    progress[DONE] += 1
    if progress[DONE] == progress[NODES]:
        progress[PHASE], progress[DONE] = SUMMING, 0


@jit
def sum_nodes(forest: Forest, slot: int) -> None:
    """Let some inner nodes, from the last to the first, have the sums of their children."""
    progress, t = forest.progress, forest.progress[ENSEMBLE]
    features, children = forest.features[t, slot], forest.children[t, slot]
    values, node_weights = forest.values[t, slot], forest.node_weights[t, slot]
    K, n = values.shape[1], progress[NODES]
    done = progress[DONE]
    upto = min(n, done + max(1, AT_ONCE // (1 + K)))
    for node in range(n - 1 - done, n - 1 - upto, -1):
        if features[node] >= 0:
            child = children[node]
            node_weights[node] = node_weights[child] + node_weights[child + 1]
            for c in range(K):
                values[node, c] = values[child, c] + values[child + 1, c]
    progress[WORK] += (upto - done) * (1 + K)
    progress[DONE] = upto
    if upto == n:
        progress[PHASE], progress[DONE] = SHRINKING, 0


@jit
def shrink_nodes(forest: Forest, slot: int) -> None:
    """Let some nodes, from the first on, have means drawn to their parent's; nodes there are not become as at first.

    An ensemble's tree is grown with the last node. Then the next one's is, or the trees follow what came meanwhile.
    """
    progress, t = forest.progress, forest.progress[ENSEMBLE]
    features, thresholds, children = forest.features[t, slot], forest.thresholds[t, slot], forest.children[t, slot]
    values, node_weights = forest.values[t, slot], forest.node_weights[t, slot]
    N, K = values.shape
    done = progress[DONE]
    upto = min(N, done + max(1, AT_ONCE // (1 + K)))
    for node in range(done, upto):
        if node == 0:
            for c in range(K):
                values[0, c] /= node_weights[0] + SHRINKAGE
        if node >= progress[NODES]:
            features[node], thresholds[node], children[node], node_weights[node] = -1, 0.0, 0, 0.0
            values[node] = 0.0
        elif features[node] >= 0:
            for child in range(children[node], children[node] + 2):
                for c in range(K):
                    values[child, c] = (values[child, c] + SHRINKAGE * values[node, c]) / (
                        node_weights[child] + SHRINKAGE
                    )
    progress[WORK] += 2 * (upto - done) * (1 + K)
    progress[DONE] = upto
    if upto == N:
        progress[DONE] = 0
        progress[ENSEMBLE] += 1
        progress[PHASE] = WATCHING if progress[ENSEMBLE] < forest.targets.shape[0] else FOLLOWING


@jit
def catch_up(forest: Forest, slot: int) -> None:
    """Let the trees follow some of the records that came since their growth began."""
    progress, counts, (T, capacity, K) = forest.progress, forest.counts, forest.targets.shape
    done, a_record = progress[DONE], T * (DEEPEST + K)
    upto = min(counts[SINCE], done + max(1, AT_ONCE // a_record))
    for i in range(done, upto):
        place = (counts[SEEN] - counts[SINCE] + i) % capacity
        for t in range(T):
            follow_in(forest, t, slot, forest.rows[place], forest.targets[t, place], forest.weights[place])
    progress[WORK] += (upto - done) * a_record
    progress[DONE] = upto


@jit
def next_slot(forest: Forest) -> Any:
    """Where the next tree of each ensemble is grown."""
    return forest.counts[GROWN] % forest.features.shape[1]


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
