"""The result of a batch: what a machine predicted of its records before it learned them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from streamkernel.records.targets import Encoded
from streamkernel.state import Array


@dataclass(frozen=True)
class BatchResult:
    """The predictions of a batch, each made before its record was learned, and their losses.

    Attributes
    ----------
    targets
        The encoded targets, with what was known before each.
    predictions
        Scores f(x) of a growing machine, (n, K); of an adaptive one probabilities, (n, K), or numbers, (n, 1).
    losses
        The loss of each, float64 of shape (n,); NaN where there is no target.
    deviations
        Of the errors of adaptive predictions of numbers, float64 of shape (n,); else None.

    """

    targets: Encoded
    predictions: Array
    losses: Array
    deviations: Array | None = None


def padded(scores: Array, n_outputs: int) -> Array:
    """Scores (n, k) with a 0 for each output that came later, (n, n_outputs)."""
    missing = n_outputs - scores.shape[1]
    return np.pad(scores, ((0, 0), (0, missing))) if missing > 0 else scores


def joined_targets(parts: Sequence[Encoded]) -> Encoded:
    """The encoded targets of batches that came one after the other."""
    return type(parts[0]).joined(parts) if parts else Encoded(np.zeros(0), np.zeros((0, 2)))
