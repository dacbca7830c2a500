"""The memory: the last records, the nearest of which are found by the learned metric.

Rows are kept as they were scaled on arrival, an input a row of lanes, so that the compiler takes vectors over records.
The metric is applied when a record is looked up: where it is learned again, distances follow.
"""

from typing import Any, NamedTuple

import numpy as np

from streamkernel.compute.jit import Array, jit
from streamkernel.compute.moments import near
from streamkernel.compute.vectors import last_below, popcount

#: How many of the nearest records an expert asks; as many as MANY are found.
FEW, MANY = 5, 15
#: The memories searched, and how many records the short and the medium one have; the long one has all.
SHORT, MEDIUM, LONG = range(3)
SHORT_SPAN, MEDIUM_SPAN = 50, 500
#: Weight of a neighbor: 1 / (distance + NEAREST).
NEAREST = 0.01
#: Squared distances past what float32 holds count as this.
FARTHEST = float(np.finfo(np.float32).max)
#: What a neighbors' expert for numbers adds of the median of their residuals.
OF_MEDIAN = 0.7
#: The uniform share of a neighbors' distribution.
UNIFORM = 0.1
#: The experts for numbers, and for classes.
NUMBER_EXPERTS = (
    f"targets of {FEW} nearest, short memory",
    f"targets of {FEW} nearest, medium memory",
    f"residuals of {FEW} nearest, medium memory",
    f"targets of {FEW} nearest, long memory",
    f"median residual of {FEW} nearest, long memory",
    f"targets of {MANY} nearest, long memory",
    f"median residual of {MANY} nearest, long memory",
)
LABEL_EXPERTS = (
    f"labels of {FEW} nearest, short memory",
    f"labels of {FEW} nearest, medium memory",
    f"labels of {MANY} nearest, medium memory",
    f"labels of {FEW} nearest, long memory",
    f"labels of {MANY} nearest, long memory",
)
#: Records whose distances stay in the first-level cache, and those that are compared at once.
TILE = 1024
_COMPARED = 16
#: Places that share marks, and from how many inputs on there are marks.
MARKED = 32
MANY_INPUTS = 64
_BIT = np.uint64(1)


class Ring(NamedTuple):
    """A ring of the last W records, and the last search in it.

    - rows: Scaled inputs, float32 of shape (d, W).
    - targets, weights, residuals: float64 of shape (W,); a residual is what the smooth mixture left over when the
      record came.
    - seen: How many records came, int64 of shape (1,).
    - scales: The metric, float32 of shape (d,).
    - span: How many of the last records are the long memory, int64 of shape (1,); 0 for no experts.
    - distances: Room for squared distances, float32 of shape (W,).
    - places, nearest: Of the last search, in the short, the medium and the long memory: the records found, nearest
      first, the newest first of those as near, int64 of shape (3, MANY), and their squared distances, float32.
    - marks: Which inputs records have that are not 0: a bit each, of `MARKED` places together, uint64. First of the
      records that came since the first of these places was taken, then of those before; some may be past.
    - asked, answered: The scaled inputs that the last search was for, float32 of shape (d,), and after how many
      records, int64 of shape (1,); -1 for none.
    """

    rows: Array
    targets: Array
    weights: Array
    residuals: Array
    seen: Array
    scales: Array
    span: Array
    distances: Array
    places: Array
    nearest: Array
    marks: Array
    asked: Array
    answered: Array


@jit
def add_marks(x: Array, marks: Array) -> None:
    """Set the bits of inputs (d,) that are not 0."""
    for j in range(x.shape[0]):
        if x[j] != 0:
            marks[j >> 6] |= _BIT << np.uint64(j & 63)


@jit
def remember(memory: Ring, x: Array, target: float, weight: float, residual: float) -> None:
    """Take a record, scaled inputs (d,), in the place of the oldest."""
    place = memory.seen[0] % memory.rows.shape[1]
    for j in range(memory.rows.shape[0]):
        memory.rows[j, place] = x[j]
    memory.targets[place] = target
    memory.weights[place] = weight
    memory.residuals[place] = residual
    memory.seen[0] += 1
    now, before = memory.marks[0, place // MARKED], memory.marks[1, place // MARKED]
    if now.shape[0]:
        if place % MARKED == 0:
            for w in range(now.shape[0]):
                before[w], now[w] = now[w], 0
        add_marks(x[: memory.rows.shape[0]], now)
        if (place + 1) % MARKED == 0 or place + 1 == memory.rows.shape[1]:
            for w in range(now.shape[0]):
                before[w] = 0


@jit
def add_marked_squares(
    rows: Array, marks: Array, scales: Array, x: Array, first: int, stop: int, of_x: Array, out: Array
) -> None:
    """Add squared differences of x from the records [first, stop) to `out`: what x and others both lack adds 0.

    - of_x: Room for the marks of x, uint64.
    """
    words = of_x.shape[0]
    for w in range(words):
        of_x[w] = 0
    add_marks(x[: rows.shape[0]], of_x)
    for block in range(first // MARKED, (stop - 1) // MARKED + 1):
        start, end = max(first, block * MARKED), min(stop, (block + 1) * MARKED)
        tile = out[start:end]
        for w in range(words):
            word = marks[0, block, w] | marks[1, block, w] | of_x[w]
            while word:
                j = np.int64(64 * w + np.int64(popcount(~word & (word - _BIT))))
                word &= word - _BIT
                row, value, scale = rows[j, start:end], x[j], scales[j]
                for i in range(tile.shape[0]):
                    difference = (value - row[i]) * scale
                    tile[i] += difference * difference


@jit
def squared_distances(rows: Array, marks: Array, scales: Array, x: Array, first: int, stop: int, out: Array) -> None:
    """Squared distances of x from the records [first, stop); inputs are summed in order.

    - rows: Scaled inputs of records, float32 of shape (d, W).
    - marks: Theirs, as `Ring` has them.
    - scales: The metric, float32 of shape (d,).
    - x: d inputs, float32, or more: no record had those past d, and they are scaled by 1.
    - first, stop: Places in the ring.
    - out: Filled at these places, float32 of shape (W,).
    """
    d = rows.shape[0]
    of_x, n_there = np.empty(marks.shape[2], np.uint64), 0
    for j in range(d):
        n_there += x[j] != 0
    few = 4 * n_there < d and of_x.shape[0] > 0
    for start in range(first, stop, TILE):
        end = min(start + TILE, stop)
        tile = out[start:end]
        for i in range(tile.shape[0]):
            tile[i] = np.float32(0)
        if few:
            add_marked_squares(rows, marks, scales, x, start, end, of_x, out)
        else:
            for j in range(d):
                row, value, scale = rows[j, start:end], x[j], scales[j]
                for i in range(tile.shape[0]):
                    difference = (value - row[i]) * scale
                    tile[i] += difference * difference
        for j in range(d, x.shape[0]):
            if x[j] != 0:
                square = x[j] * x[j]
                for i in range(tile.shape[0]):
                    tile[i] += square


@jit
def insert_nearest(distances: Array, first: int, stop: int, places: Array, nearest: Array, found: int) -> Any:
    """Take the nearest of the records [first, stop), the last first, into those found so far; returns their number.

    - distances: Squared, float32 of shape (W,).
    - first, stop: Places in the ring; the records are older than those searched before, and the older the lower their
      place.
    - places, nearest: Of shape (k,); updated. A record goes after those as near, for they are newer.
    - found: How many there are.
    """
    k = places.shape[0]
    while stop > first:
        stop -= 1
        if found < k:
            found += 1
        elif stop - first >= _COMPARED:
            begin = stop - _COMPARED + 1
            lane = last_below(distances, begin, nearest[k - 1])
            stop = begin + max(lane, 0)
            if lane < 0:
                continue
        elif not distances[stop] < nearest[k - 1]:
            continue
        distance, at = distances[stop], found - 1
        while at > 0 and nearest[at - 1] > distance:
            nearest[at], places[at] = nearest[at - 1], places[at - 1]
            at -= 1
        nearest[at], places[at] = distance, stop
    return found


@jit
def search(memory: Ring, x: Array) -> None:
    """Find the nearest records in each of the memories, unless that was the last search.

    - memory: `places`, `nearest` and what was asked are updated.
    - x: Scaled inputs, float32 of shape (d,) or more.
    """
    d, W = memory.rows.shape
    seen = memory.seen[0]
    wider = False
    for j in range(d, x.shape[0]):
        wider = wider or x[j] != 0
    same = memory.answered[0] == seen and not wider
    for j in range(d):
        same = same and memory.asked[j] == x[j]
    if same:
        return
    kept = min(seen, W)
    last = seen % W  # the place after the newest record
    span = min(kept, memory.span[0])
    spans = min(span, SHORT_SPAN), min(span, MEDIUM_SPAN), span
    oldest = last - span  # below 0, the search continues at the end of the ring, as below
    squared_distances(memory.rows, memory.marks, memory.scales, x, max(oldest, 0), last, memory.distances)
    squared_distances(memory.rows, memory.marks, memory.scales, x, W + min(oldest, 0), W, memory.distances)
    found, newer = 0, 0
    for s in range(len(spans)):
        places, nearest = memory.places[s], memory.nearest[s]
        if s > 0:
            for i in range(found):
                places[i], nearest[i] = memory.places[s - 1, i], memory.nearest[s - 1, i]
        first, stop = last - spans[s], last - newer
        found = insert_nearest(memory.distances, max(first, 0), max(stop, 0), places, nearest, found)
        found = insert_nearest(memory.distances, W + min(first, 0), W + min(stop, 0), places, nearest, found)
        newer = spans[s]
    for j in range(d):
        memory.asked[j] = x[j]
    memory.answered[0] = -1 if wider else seen


@jit
def _weigh(memory: Ring, s: int, n: int, weights: Array) -> Any:
    """The weights of the n nearest records, and their sum: 0 where there are none, or of next to no weight."""
    total = 0.0
    for i in range(n):
        distance = np.sqrt(min(FARTHEST, np.float64(memory.nearest[s, i])))
        weights[i] = memory.weights[memory.places[s, i]] / (distance + NEAREST)
        total += weights[i]
    return total


@jit
def mean_target(memory: Ring, s: int, n: int, weights: Array, moments: Array, otherwise: float) -> Any:
    """The mean target of the n nearest records, outliers drawn in by the moments of the targets; or otherwise."""
    total = _weigh(memory, s, n, weights)
    mean = 0.0
    for i in range(n):
        mean += weights[i] * near(moments, memory.targets[memory.places[s, i]])
    return mean / total if total > 0 else otherwise


@jit
def mean_residual(memory: Ring, s: int, n: int, weights: Array) -> Any:
    """The mean residual of the n nearest records, drawn to 0 as by one of weight 1."""
    total = _weigh(memory, s, n, weights)
    mean = 0.0
    for i in range(n):
        mean += weights[i] * memory.residuals[memory.places[s, i]]
    return mean / (total + 1.0)


@jit
def median_residual(memory: Ring, s: int, n: int, ordered: Array) -> Any:
    """The median residual of the n nearest records; 0 of none."""
    for i in range(n):
        residual = memory.residuals[memory.places[s, i]]
        at = i
        while at > 0 and ordered[at - 1] > residual:
            ordered[at] = ordered[at - 1]
            at -= 1
        ordered[at] = residual
    return 0.5 * (ordered[(n - 1) // 2] + ordered[n // 2]) if n > 0 else 0.0


@jit
def neighbors_of_number(memory: Ring, x: Array, smooth: float, moments: Array, room: Array, out: Array) -> None:
    """What the nearest records say of a record with a number for a target.

    - memory: Searched.
    - x: The record's scaled inputs, float32.
    - smooth: The smooth mixture's prediction.
    - moments: Of the targets, shape (8,).
    - room: Of shape (MANY,), float64.
    - out: Filled, as `NUMBER_EXPERTS` are: means of targets, or `smooth` corrected by residuals.
    """
    search(memory, x)
    there = min(memory.seen[0], memory.span[0])
    few, many = min(there, FEW), min(there, MANY)
    out[0] = mean_target(memory, SHORT, few, room, moments, smooth)
    out[1] = mean_target(memory, MEDIUM, few, room, moments, smooth)
    out[2] = smooth + mean_residual(memory, MEDIUM, few, room)
    out[3] = mean_target(memory, LONG, few, room, moments, smooth)
    out[4] = smooth + OF_MEDIAN * median_residual(memory, LONG, few, room)
    out[5] = mean_target(memory, LONG, many, room, moments, smooth)
    out[6] = smooth + OF_MEDIAN * median_residual(memory, LONG, many, room)


@jit
def vote(memory: Ring, s: int, n: int, weights: Array, out: Array) -> None:
    """The labels of the n nearest records as a distribution, (K,), of which a share is uniform."""
    K = out.shape[0]
    total = _weigh(memory, s, n, weights)
    share = UNIFORM if total > 0 else 1.0
    for c in range(K):
        out[c] = share / K
    if total > 0:
        for i in range(n):
            out[np.int64(memory.targets[memory.places[s, i]])] += (1.0 - share) * weights[i] / total


@jit
def neighbors_of_label(memory: Ring, x: Array, room: Array, out: Array) -> None:
    """What the nearest records say of a record with a class.

    - memory: Searched.
    - x: The record's scaled inputs, float32.
    - room: Of shape (MANY,), float64.
    - out: Filled, as `LABEL_EXPERTS` are: distributions, of shape (5 or more, K).
    """
    search(memory, x)
    there = min(memory.seen[0], memory.span[0])
    few, many = min(there, FEW), min(there, MANY)
    vote(memory, SHORT, few, room, out[0])
    for s in range(2):
        vote(memory, MEDIUM + s, few, room, out[1 + 2 * s])
        vote(memory, MEDIUM + s, many, room, out[2 + 2 * s])
