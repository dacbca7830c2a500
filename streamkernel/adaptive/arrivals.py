"""Records through arrival and experts, block by block.

Arrival and the pass are compiled apart: together they would be optimized, and waited for, as one.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from streamkernel.compute.arrival import BLOCK, FeatureMap, Scaling, arrive
from streamkernel.state import Array


class Arrivals(NamedTuple):
    """Records as they came to a core, which predicts, then learns them: of one segment, in which no shape changes."""

    values: Array  #: As `arrive` has them; one that is learned with weight 0 counts for the moments only
    extras: Array
    learned: Array
    truths: Array  #: Targets as the pass has them, shape (n,); any where a record is not learned
    weights: Array  #: float64 of shape (n,)
    past: Array  #: What is known of earlier targets, (n, G)
    scaling: Scaling  #: As `arrive` has them
    feature_map: FeatureMap


def advance_records(
    learn: Callable[..., None], records: Arrivals, experts: tuple[Any, ...], out: Array, nothing: float
) -> None:
    """Let records arrive, then predict and learn them, a block at a time.

    - learn: `pass_labels` or `pass_numbers`.
    - records: Their moments are updated.
    - experts: What comes between weights and `past` among the parameters of `learn`; updated.
    - out: Filled with the predictions.
    - nothing: The truth of a record that is predicted only.
    """
    values, extras, learned, truths, weights, past, scaling, feature_map = records
    n = len(values)
    to_learn = np.where(weights > 0, truths, nothing).astype(truths.dtype, copy=False)
    X = np.empty((min(n, BLOCK), len(feature_map.W)), feature_map.W.dtype)
    Phi = np.empty((len(X), 2 * feature_map.W.shape[1] + 1 + feature_map.n_linear))
    for start in range(0, n, BLOCK):
        block = slice(start, start + BLOCK)
        scaled, columns = X[: n - start], Phi[: n - start]
        arrive(values[block], extras[block], learned[block], scaling, feature_map, scaled, columns)
        given = columns, scaled, values[block], to_learn[block], weights[block]
        learn(*given, *experts, past[block], out[block])
