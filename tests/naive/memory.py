"""Twins of the memory: its last records sorted by distance and age, and what the nearest of them say."""

import numpy as np

from streamkernel.compute.memory import NEAREST, NEIGHBOURS, OF_MEDIAN, SHORT, UNIFORM
from tests.naive.moments import near


class Memory:
    """All records that came, of which the last `size` count; of these the last `span` are asked."""

    def __init__(self, size, span, scales):
        self.size, self.span, self.scales = size, span, np.asarray(scales)
        self.records = []

    def forget_residuals(self):
        self.records = [(*record[:3], 0.0) for record in self.records]

    def asked(self):
        """The records of the short and of the long memory, the newest first."""
        newest = self.records[::-1][: min(self.span, self.size)]
        return newest[:SHORT], newest


def remember(memory, x, target, weight, residual):
    memory.records.append((x[: len(memory.scales)], target, weight, residual))


def squared_distances(rows, scales, x):
    """Inputs are summed in order, each sum rounded to the type of the rows."""
    total = np.zeros(np.shape(rows)[1], np.asarray(rows).dtype)
    for row, scale, value in zip(rows, scales, x, strict=False):
        total += ((value - row) * scale) ** 2
    return total


def insert_nearest(distances, first, stop, found):
    """The nearest of those found, (distance, place), and of the records [first, stop), the older the lower."""
    found = [*found, *((distances[place], place) for place in range(stop - 1, first - 1, -1))]
    return sorted(found, key=lambda pair: pair[0])[: NEIGHBOURS[-1]]  # stable: the newest first of those as near


def search(memory, x):
    """For the short and for the long memory the nearest records and their squared distances, of (distance, age)."""
    found = []
    for records in memory.asked():
        rows = np.array([record[0] for record in records]).reshape(len(records), len(memory.scales)).T
        distances = squared_distances(rows.astype(memory.scales.dtype), memory.scales, x)
        oldest_first = insert_nearest(distances[::-1], 0, len(records), [])
        found.append([(records[len(records) - 1 - place], float(distance)) for distance, place in oldest_first])
    return found


def _weigh(neighbours):
    return [weight / (np.sqrt(distance) + NEAREST) for (_, _, weight, _), distance in neighbours]


def neighbours_of_number(memory, x, smooth, moments):
    said = []
    for neighbours in search(memory, x):
        for k in NEIGHBOURS:
            weights = np.array(_weigh(neighbours[:k]))
            targets = np.array([near(moments, target) for (_, target, _, _), _ in neighbours[:k]])
            residuals = np.array([residual for (_, _, _, residual), _ in neighbours[:k]])
            said += [
                np.average(targets, weights=weights) if neighbours else smooth,
                smooth + weights @ residuals / (weights.sum() + 1),
                smooth + OF_MEDIAN * np.median(residuals) if neighbours else smooth,
            ]
    return said


def neighbours_of_label(memory, x, n_classes):
    said = []
    for neighbours in search(memory, x):
        for k in NEIGHBOURS:
            weights = _weigh(neighbours[:k])
            p = np.full(n_classes, (UNIFORM if neighbours else 1) / n_classes)
            for weight, ((_, label, _, _), _) in zip(weights, neighbours, strict=False):
                p[int(label)] += (1 - UNIFORM) * weight / sum(weights)
            said.append(p)
    return said
