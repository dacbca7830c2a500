"""Records through arrival and experts, block by block.

Arrival and the pass are compiled apart: together they would be optimised, and waited for, as one.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from streamkernel.compute.arrival import BLOCK, FeatureMap, Scaling, arrive
from streamkernel.state import Array


def advance_records(
    learn: Callable[..., None],
    values: Array,
    extras: Array,
    truths: Array,
    weights: Array,
    learnt: Array,
    scaling: Scaling,
    feature_map: FeatureMap,
    experts: tuple[Any, ...],
    past: Array,
    out: Array,
    nothing: float,
) -> None:
    """Let records arrive, then predict and learn them, a block at a time.

    Parameters
    ----------
    learn
        `pass_labels` or `pass_numbers`.
    values, extras, truths, weights, learnt, scaling, feature_map
        As `arrive` has them; one that is learnt with weight 0 counts for the moments only.
    experts
        What comes between these and `past` among its parameters.
    past
        What is known of earlier targets, (n, G).
    out
        Filled with the predictions.
    nothing
        The truth of a record that is predicted only.

    """
    n = len(values)
    to_learn = np.where(weights > 0, truths, nothing).astype(truths.dtype, copy=False)
    X = np.empty((min(n, BLOCK), len(feature_map.W)), feature_map.W.dtype)
    Phi = np.empty((len(X), 2 * feature_map.W.shape[1] + 1 + feature_map.n_linear))
    for start in range(0, n, BLOCK):
        block = slice(start, start + BLOCK)
        scaled, columns = X[: n - start], Phi[: n - start]
        arrive(values[block], extras[block], learnt[block], scaling, feature_map, scaled, columns)
        given = columns, scaled, values[block], to_learn[block], weights[block]
        learn(*given, *experts, past[block], out[block])
