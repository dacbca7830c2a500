"""The transition expert: how often one class followed another, discounted record by record."""

from typing import NamedTuple

from streamkernel.compute.jit import Array, jit

#: What is left of a count after one more record.
DECAY = 0.995
#: Records of weight 1 that a row counts as before its first, alike of all classes.
SMOOTHING = 0.1
#: Where the unit is made 1 again.
LARGEST_UNIT = 1e100


class Transitions(NamedTuple):
    """A discounted transition matrix of the first B classes.

    Attributes
    ----------
    counts
        Of class k after class b, in units, float64 of shape (B, B).
    unit
        The count of a record that comes now, from 1 up: it grows by 1 / `DECAY` a record, instead of the counts
        shrinking; float64 of shape (1,).

    """

    counts: Array
    unit: Array


@jit
def predict_transition(transitions: Transitions, before: int, p: Array) -> None:
    """The distribution of the class that follows `before` into p, (K,); alike where that is -1 or past the matrix."""
    counts = transitions.counts
    K, B = p.shape[0], counts.shape[0]
    total = SMOOTHING * transitions.unit[0]
    for k in range(K):
        p[k] = total / K
    if 0 <= before < B:
        for k in range(B):
            p[k] += counts[before, k]
            total += counts[before, k]
    for k in range(K):
        p[k] /= total


@jit
def learn_transition(transitions: Transitions, before: int, label: int, weight: float) -> None:
    """One more record of class `label` after one of class `before`; either may be past the matrix, or the latter -1."""
    counts, unit = transitions.counts, transitions.unit
    B = counts.shape[0]
    unit[0] /= DECAY
    if unit[0] > LARGEST_UNIT:
        for b in range(B):
            for k in range(B):
                counts[b, k] /= unit[0]
        unit[0] = 1.0
    if 0 <= before < B and label < B:
        counts[before, label] += weight * unit[0]
