"""Records through arrival and experts, block by block; between two records trees grow, when it is time.

Growth, arrival and the pass are compiled apart: together they would be optimised, and waited for, as one.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from streamkernel.compute.arrival import BLOCK, FeatureMap, Scaling, arrive
from streamkernel.compute.tree_growth import grow_oldest
from streamkernel.compute.trees import Forest
from streamkernel.state import Array


def pass_records(
    learn: Callable[..., int],
    Phi: Array,
    X: Array,
    values: Array,
    truths: Array,
    weights: Array,
    experts: tuple[Any, ...],
    past: Array,
    forest: Forest,
    out: Array,
) -> None:
    """Predict, then learn, records whose columns are known.

    Parameters
    ----------
    learn
        `pass_labels` or `pass_numbers`.
    Phi, X, values, truths, weights
        Of n records: feature columns (n, D), scaled inputs, float32 of shape (n, d) or more, inputs as they came,
        (n, d), targets and weights (n,).
    experts
        What comes between these and `past` among its parameters.
    past
        What is known of earlier targets, (n, G).
    forest
        The trees among the experts.
    out
        Filled with the predictions.

    """
    while passed := learn(Phi, X, values, truths, weights, *experts, past, out):
        grow_oldest(forest)
        rest = Phi, X, values, truths, weights, past, out
        Phi, X, values, truths, weights, past, out = (part[passed:] for part in rest)


def advance_records(
    learn: Callable[..., int],
    values: Array,
    extras: Array,
    truths: Array,
    weights: Array,
    learnt: Array,
    scaling: Scaling,
    feature_map: FeatureMap,
    experts: tuple[Any, ...],
    past: Array,
    forest: Forest,
    out: Array,
    nothing: float,
) -> None:
    """Let records arrive, then predict and learn them, a block at a time.

    Parameters
    ----------
    learn, experts, past, forest, out
        As `pass_records` has them.
    values, extras, truths, weights, learnt, scaling, feature_map
        As `arrive` has them; one that is learnt with weight 0 counts for the moments only.
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
        pass_records(learn, *given, experts, past[block], forest, out[block])
