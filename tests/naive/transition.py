"""Twins of the expert of transitions: which class followed which, from a list of all that did."""

import numpy as np


class Transitions:
    """All records that came, as class before, class and weight; those of the first `size` classes are counted."""

    def __init__(self, size):
        self.size, self.records = size, []

    @property
    def unit(self):
        return 0.995 ** -len(self.records)

    @property
    def counts(self):
        """In units of the first record's, as each counts less by the next."""
        counts = np.zeros((self.size, self.size))
        for i, (before, label, weight) in enumerate(self.records):
            if 0 <= before < self.size and label < self.size:
                counts[before, label] += weight * 0.995 ** -(i + 1)
        return counts


def predict_transition(transitions, before, n_classes):
    p = np.full(n_classes, 0.1 / n_classes)
    if 0 <= before < transitions.size:
        p[: transitions.size] += transitions.counts[before] / transitions.unit
    return p / p.sum()


def learn_transition(transitions, before, label, weight):
    transitions.records.append((before, label, weight))
