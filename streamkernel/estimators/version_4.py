"""Adaptive states of version 4, of fewer experts, as those of version 5.

Experts that came since begin with so large a loss that they have no weight: right after it was read a model predicts
what it predicted, and as losses are forgotten the new experts join.
"""

from typing import Any

import numpy as np

from streamkernel.compute.asinh import MAGNITUDES
from streamkernel.compute.moments import SIZE
from streamkernel.compute.residuals import RESIDUALS
from streamkernel.estimators.version_5 import LABEL_NEIGHBOURS, LATE, NUMBER_NEIGHBOURS
from streamkernel.fields import all_from_zero, array, checked
from streamkernel.state import Array, State


def from_version_4(state: State, given: dict[str, Any]) -> State:
    """An adaptive state of version 4 as one of version 5; what such a state has no argument for is as it was given.

    Raises
    ------
    ValueError
        A field that is to become another does not fit.

    """
    parts = _arguments(state, given), _heads(state), trees_of_now(state), _memory(state), _losses(state, given)
    return {**state, **{name: value for part in parts for name, value in part.items()}}


def _arguments(state: State, given: dict[str, Any]) -> State:
    stated = state.get("arguments")
    return {"arguments": {"memory": given["memory"], **stated}} if isinstance(stated, dict) else {}


def _heads(state: State) -> State:
    """Nothing was due to the matrices, and heads for numbers learnt them on one scale."""
    H, _, D = array(state, "heads_P", np.float64, None, None, None).shape
    due = {"heads_late": np.zeros((H, 0, D))}
    if "levels" not in state:
        return due
    W = array(state, "heads_W", np.float64, None, None, None)
    n_outputs = W.shape[1]  # 1, and 0 before the first labelled record
    asinh = {"asinh_moments": np.zeros(SIZE), "magnitudes": np.zeros(1 + MAGNITUDES), "target_bounds": np.zeros(2)}
    asinh["residuals"] = np.zeros(1 + RESIDUALS)
    return {**due, "heads_W": np.pad(W, ((0, 0), (0, n_outputs), (0, 0))), **asinh}


def trees_of_now(old: State) -> State:
    """The trees' window stood as in its ring, and no growth was ever under way."""
    counts = array(old, "tree_counts", np.int64, 3)
    window = array(old, "window_rows", np.float64, None, None), array(old, "window_weights", np.float64, None)
    targets = array(old, "window_targets", np.float64, None, None, None)
    oldest = -int(counts[0])
    return {
        "tree_counts": np.append(counts, 0),
        "window_rows": np.roll(window[0], oldest, axis=0),
        "window_weights": np.roll(window[1], oldest),
        "window_targets": np.roll(targets, oldest, axis=1),
    }


def _memory(state: State) -> State:
    """Records of weight 0 were kept, and what the others left over was not."""
    checked(state, {"recent_weights": all_from_zero})
    weights = array(state, "recent_weights", np.float64, None)
    targets = array(state, "recent_targets", np.float64, len(weights))
    rows = array(state, "recent_rows", np.float32, len(weights), None)
    kept = weights > 0
    return {
        "recent_rows": rows[kept],
        "recent_targets": targets[kept],
        "recent_weights": weights[kept],
        "recent_residuals": np.zeros(int(kept.sum())),
    }


def _losses(state: State, given: dict[str, Any]) -> State:
    """Heads and linear experts, then those on the scale of asinh, trees, the memory's, and levels."""
    losses = array(state, "losses", np.float64, None)
    n_smooth = sum(len(array(state, name, np.float64, None, None, None)) for name in ("heads_W", "linear_W"))
    n_trees = len(array(state, "tree_features", np.int32, None, None, None))
    asked = NUMBER_NEIGHBOURS if "levels" in state else LABEL_NEIGHBOURS
    smooth, trees, levels = np.split(losses, [n_smooth, n_smooth + n_trees])
    asinh = len(array(state, "heads_W", np.float64, None, None, None)) if "levels" in state else 0
    neighbours = asked if given["memory"] else 0
    parts = smooth, _late(losses, asinh), trees, _late(losses, neighbours), levels
    return {"losses": np.concatenate(parts)}


def _late(losses: Array, n: int) -> Array:
    """The losses of n experts that came since."""
    return np.full(n, losses.max(initial=0.0) + LATE)
