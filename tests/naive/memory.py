"""Twins of the memory: its last records sorted by distance and age, and what the nearest of them say."""

import itertools

import numpy as np

from streamkernel.compute.memory import FEW, MANY, MEDIUM_SPAN, NEAREST, OF_MEDIAN, SHORT_SPAN, UNIFORM
from tests.naive.moments import near


class Memory:
    """All records that came, of which the last `size` count; of these the last `span` are asked."""

    def __init__(self, size, span, scales):
        self.size, self.span, self.scales = size, span, np.asarray(scales)
        self.records = []

    def forget_residuals(self):
        self.records = [(*record[:3], 0.0) for record in self.records]

    def asked(self):
        """The records of the short, the medium and the long memory, the newest first."""
        newest = self.records[::-1][: min(self.span, self.size)]
        return newest[:SHORT_SPAN], newest[:MEDIUM_SPAN], newest


def add_marks(x):
    """The inputs that are not 0."""
    return {j for j, value in enumerate(x) if value != 0}


def remember(memory, x, target, weight, residual):
    memory.records.append((x[: len(memory.scales)], target, weight, residual))


def squared_distances(rows, scales, x):
    """Inputs are summed in order, each sum rounded to the type of the rows; what no record had was 0 then."""
    total = np.zeros(np.shape(rows)[1], np.asarray(rows).dtype)
    for row, scale, value in itertools.zip_longest(rows, scales, x, fillvalue=total.dtype.type(1)):
        total += np.square((value - (row if np.ndim(row) else 0)) * scale)  # a power of one number rounds otherwise
    return total


def add_marked_squares(rows, scales, x):
    """Nobody marks anything."""
    return squared_distances(rows, scales, x[: len(rows)])


def insert_nearest(distances, first, stop, found):
    """The nearest of those found, (distance, place), and of the records [first, stop), the older the lower."""
    found = [*found, *((distances[place], place) for place in range(stop - 1, first - 1, -1))]
    return sorted(found, key=lambda pair: pair[0])[:MANY]  # stable: the newest first of those as near


def search(memory, x):
    """For each of the memories the nearest records and their squared distances, of (distance, age)."""
    found = []
    for records in memory.asked():
        rows = np.array([record[0] for record in records]).reshape(len(records), len(memory.scales)).T
        distances = squared_distances(rows.astype(memory.scales.dtype), memory.scales, x)
        oldest_first = insert_nearest(distances[::-1], 0, len(records), [])
        found.append([(records[len(records) - 1 - place], float(distance)) for distance, place in oldest_first])
    return found


def _weigh(neighbors):
    return np.array([weight / (np.sqrt(distance) + NEAREST) for (_, _, weight, _), distance in neighbors])


def mean_target(neighbors, moments, otherwise):
    targets = [near(moments, target) for (_, target, _, _), _ in neighbors]
    return np.average(targets, weights=_weigh(neighbors)) if neighbors else otherwise


def mean_residual(neighbors):
    weights = _weigh(neighbors)
    return weights @ [residual for (_, _, _, residual), _ in neighbors] / (weights.sum() + 1) if neighbors else 0


def median_residual(neighbors):
    return np.median([residual for (_, _, _, residual), _ in neighbors]) if neighbors else 0


def neighbors_of_number(memory, x, smooth, moments):
    short, medium, long = search(memory, x)
    return [
        mean_target(short[:FEW], moments, smooth),
        mean_target(medium[:FEW], moments, smooth),
        smooth + mean_residual(medium[:FEW]),
        mean_target(long[:FEW], moments, smooth),
        smooth + OF_MEDIAN * median_residual(long[:FEW]),
        mean_target(long[:MANY], moments, smooth),
        smooth + OF_MEDIAN * median_residual(long[:MANY]),
    ]


def vote(neighbors, n_classes):
    p = np.full(n_classes, (UNIFORM if neighbors else 1) / n_classes)
    weights = _weigh(neighbors)
    for weight, ((_, label, _, _), _) in zip(weights, neighbors, strict=True):
        p[int(label)] += (1 - UNIFORM) * weight / weights.sum()
    return p


def neighbors_of_label(memory, x, n_classes):
    short, medium, long = search(memory, x)
    return [vote(asked, n_classes) for asked in (short[:FEW], medium[:FEW], medium, long[:FEW], long)]
