"""The memory: the last records, the nearest of which are found by the learnt metric.

Rows are kept as they were scaled on arrival, an input a row of lanes, so that the compiler takes vectors over records.
The metric is applied when a record is looked up: where it is learnt anew, distances follow.
"""

from typing import Any, NamedTuple

import numpy as np

from streamkernel.compute.jit import jit
from streamkernel.compute.moments import near

Array = np.ndarray[Any, np.dtype[Any]]

#: How many of the nearest records an expert asks; the last number is how many are found.
NEIGHBOURS = (5, 15)
#: Records of the short memory; the long one has all.
SHORT = 500
#: Weight of a neighbour: 1 / (distance + NEAREST).
NEAREST = 0.01
#: Squared distances past what float32 holds count as this.
FARTHEST = float(np.finfo(np.float32).max)
#: What a neighbours' expert for numbers adds of the median of their residuals.
OF_MEDIAN = 0.7
#: The uniform share of a neighbours' distribution.
UNIFORM = 0.1
#: Experts of each span and number of neighbours: by targets, residuals and their median; by labels.
OF_NUMBERS = 3
OF_LABELS = 1
#: Records whose distances stay in the first-level cache, and those that are compared at once.
_TILE = 1024
_COMPARED = 64


class Memory(NamedTuple):
    """A ring of the last W records, and the last search in it.

    Attributes
    ----------
    rows
        Scaled inputs, float32 of shape (d, W).
    targets, weights, residuals
        float64 of shape (W,); a residual is what the smooth mixture left over when the record came.
    seen
        How many records came, int64 of shape (1,).
    scales
        The metric, float32 of shape (d,).
    span
        How many of the last records are the long memory, int64 of shape (1,); 0 for no experts.
    distances
        Room for squared distances, float32 of shape (W,).
    places, nearest
        Of the last search, in the short and in the long memory: the records found, nearest first, the newest first of
        those as near, int64 of shape (2, k), and their squared distances, float32.
    asked, answered
        The scaled inputs that the last search was for, float32 of shape (d,), and after how many records, int64 of
        shape (1,); -1 for none.

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
    asked: Array
    answered: Array


@jit
def remember(memory: Memory, x: Array, target: float, weight: float, residual: float) -> None:
    """Take a record, scaled inputs (d,), in the place of the oldest."""
    place = memory.seen[0] % memory.rows.shape[1]
    for j in range(memory.rows.shape[0]):
        memory.rows[j, place] = x[j]
    memory.targets[place] = target
    memory.weights[place] = weight
    memory.residuals[place] = residual
    memory.seen[0] += 1


@jit
def squared_distances(rows: Array, scales: Array, x: Array, out: Array) -> None:
    """Squared distances of x (d,) from records, float32 of shape (d, n), into (n,); inputs are summed in order."""
    n, d = out.shape[0], rows.shape[0]
    for start in range(0, n, _TILE):
        tile = out[start : start + _TILE]
        for i in range(tile.shape[0]):
            tile[i] = np.float32(0)
        for j in range(d):
            row, value, scale = rows[j, start : start + _TILE], x[j], scales[j]
            for i in range(tile.shape[0]):
                difference = (value - row[i]) * scale
                tile[i] += difference * difference


@jit
def insert_nearest(distances: Array, first: int, stop: int, places: Array, nearest: Array, found: int) -> Any:
    """Take the nearest of the records [first, stop), the last first, into those found so far; returns their number.

    Parameters
    ----------
    distances
        Squared, float32 of shape (W,).
    first, stop
        Places in the ring; the records are older than those searched before, and the older the lower their place.
    places, nearest
        Of shape (k,); updated. A record goes behind those as near, for they are newer.
    found
        How many there are.

    """
    k = places.shape[0]
    while stop > first:
        begin = max(first, stop - _COMPARED)
        if found == k:
            # In bytes, so that the compiler takes vectors over records.
            compared, worst, nearer = distances[begin:stop], nearest[k - 1], np.uint8(0)
            for i in range(compared.shape[0]):
                nearer = np.uint8(nearer | np.uint8(compared[i] < worst))
            if nearer == 0:
                stop = begin
                continue
        for place in range(stop - 1, begin - 1, -1):
            distance = distances[place]
            if found < k:
                found += 1
            elif not distance < nearest[k - 1]:
                continue
            at = found - 1
            while at > 0 and nearest[at - 1] > distance:
                nearest[at], places[at] = nearest[at - 1], places[at - 1]
                at -= 1
            nearest[at], places[at] = distance, place
        stop = begin
    return found


@jit
def search(memory: Memory, x: Array) -> None:
    """Find the nearest records in the short and in the long memory, unless that was the last search.

    Parameters
    ----------
    memory
        `places`, `nearest` and what was asked are updated.
    x
        Scaled inputs, float32 of shape (d,) or more.

    """
    d, W = memory.rows.shape
    seen = memory.seen[0]
    same = memory.answered[0] == seen
    for j in range(d):
        same = same and memory.asked[j] == x[j]
    if same:
        return
    kept = min(seen, W)
    squared_distances(memory.rows, memory.scales, x, memory.distances[:kept])
    last = seen % W  # the place after the newest record
    spans = min(kept, memory.span[0], SHORT), min(kept, memory.span[0])
    found, newer = 0, 0
    for s in range(2):
        places, nearest = memory.places[s], memory.nearest[s]
        if s == 1:
            for i in range(found):
                places[i], nearest[i] = memory.places[0, i], memory.nearest[0, i]
        first, stop = last - spans[s], last - newer  # below 0, and there the end of the ring goes on
        found = insert_nearest(memory.distances, max(first, 0), max(stop, 0), places, nearest, found)
        found = insert_nearest(memory.distances, W + min(first, 0), W + min(stop, 0), places, nearest, found)
        newer = spans[s]
    for j in range(d):
        memory.asked[j] = x[j]
    memory.answered[0] = seen


@jit
def _weigh(memory: Memory, s: int, n: int, weights: Array) -> Any:
    """The weights of the n nearest records, and their sum: 0 where there are none, or of next to no weight."""
    total = 0.0
    for i in range(n):
        distance = np.sqrt(min(FARTHEST, np.float64(memory.nearest[s, i])))
        weights[i] = memory.weights[memory.places[s, i]] / (distance + NEAREST)
        total += weights[i]
    return total


@jit
def neighbours_of_number(memory: Memory, x: Array, smooth: float, moments: Array, room: Array, out: Array) -> None:
    """What the nearest records say of a record with a number for a target.

    Parameters
    ----------
    memory
        Searched.
    x
        The record's scaled inputs, float32.
    smooth
        The smooth mixture's prediction.
    moments
        Of the targets, shape (8,): outliers are drawn in by them.
    room
        Of shape (2, k), float64.
    out
        Filled: for the short and the long memory, and each of `NEIGHBOURS`, the mean of their targets, `smooth` and the
        mean of their residuals, and `smooth` and a part of the median of these.

    """
    search(memory, x)
    weights, residuals = room
    e = 0
    for s in range(2):
        there = min(memory.seen[0], memory.span[0])
        if s == 0:
            there = min(there, SHORT)
        for k in NEIGHBOURS:
            n = min(there, k)
            total = _weigh(memory, s, n, weights)
            target, residual = 0.0, 0.0
            for i in range(n):
                place = memory.places[s, i]
                target += weights[i] * near(moments, memory.targets[place])
                residual += weights[i] * memory.residuals[place]
                at = i  # in ascending order
                while at > 0 and residuals[at - 1] > memory.residuals[place]:
                    residuals[at] = residuals[at - 1]
                    at -= 1
                residuals[at] = memory.residuals[place]
            out[e] = target / total if total > 0 else smooth
            out[e + 1] = smooth + residual / (total + 1.0)
            out[e + 2] = smooth
            if n > 0:
                out[e + 2] += OF_MEDIAN * 0.5 * (residuals[(n - 1) // 2] + residuals[n // 2])
            e += OF_NUMBERS


@jit
def neighbours_of_label(memory: Memory, x: Array, room: Array, out: Array) -> None:
    """What the nearest records say of a record with a class.

    Parameters
    ----------
    memory
        Searched.
    x
        The record's scaled inputs, float32.
    room
        Of shape (2, k), float64.
    out
        Filled: distributions, (4 or more, K): for the short and the long memory, and each of `NEIGHBOURS`.

    """
    search(memory, x)
    weights = room[0]
    K = out.shape[1]
    e = 0
    for s in range(2):
        there = min(memory.seen[0], memory.span[0])
        if s == 0:
            there = min(there, SHORT)
        for k in NEIGHBOURS:
            n = min(there, k)
            total = _weigh(memory, s, n, weights)
            share = UNIFORM if total > 0 else 1.0
            for c in range(K):
                out[e, c] = share / K
            if total > 0:
                for i in range(n):
                    out[e, np.int64(memory.targets[memory.places[s, i]])] += (1.0 - share) * weights[i] / total
            e += OF_LABELS
