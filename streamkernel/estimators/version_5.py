"""Adaptive states of version 5, without stacks and a short memory's expert, and with lags as inputs only, as of now.

A stack begins with the weights by which it says what has been predicted so far, the last target as a prediction and
the neighbours in the short memory with none: right after it was read a model predicts what it predicted.
"""

from typing import Any

import numpy as np

from streamkernel.adaptive.label_experts import LabelExperts
from streamkernel.adaptive.number_experts import NumberExperts
from streamkernel.compute.experts import hedge_weights
from streamkernel.fields import array, state_mismatch
from streamkernel.state import Array, State

#: The loss of what came since, beyond those of the others: exp(-it) is 0.
LATE = 1_000.0
#: More experts, and parts of the last mixture, than there are beside the heads.
_MOST_OTHERS = 20
#: The experts that a memory brought.
NUMBER_NEIGHBOURS, LABEL_NEIGHBOURS = 6, 4


def from_version_5(state: State, given: dict[str, Any]) -> State:
    """An adaptive state of version 5 as one of now, for a model with these arguments.

    Raises
    ------
    ValueError
        A field that is to become another does not fit.

    """
    prefixes = [name.removesuffix("losses") for name in state if name in ("losses", "lagged_losses")]
    # Each head learns two scales at most. What claims more experts must not be given matrices of their size.
    most = 2 * len(given["drift_rates"]) + _MOST_OTHERS
    parts = [_stacks(state, prefix, most) for prefix in prefixes]
    return {**state, **{name: value for part in parts for name, value in part.items()}}


def _stacks(state: State, prefix: str, most: int) -> State:
    """Stacks, and the losses of experts and of the last mixture: of all mixed, of what is beside them, of stacks."""
    kind = NumberExperts if "levels" in state else LabelExperts
    losses, S = array(state, f"{prefix}losses", np.float64, None), len(kind.stack_drifts)
    n_beside = int("levels" in state and "lagged_losses" in state)
    # Beside the plain core's experts there was what sees the lags; beside those that see them there was nothing.
    n_before = 0 if prefix else 2 * n_beside
    if not np.isfinite(losses).all() or not n_before <= len(losses) <= most:
        raise state_mismatch(f"{prefix}losses")
    experts, last = np.split(losses, [len(losses) - n_before])
    experts = _with_short_memory(state, prefix, experts)
    W = np.zeros((S, 1, len(experts) + n_beside))
    if n_before:
        shares = np.empty(2)
        hedge_weights(last, np.ones(2), kind.eta, shares)
        W[:, 0, -1] = shares[1]
    else:
        last = np.array([0.0, LATE][: 1 + n_beside])
    return {
        f"{prefix}stack_P": np.tile(np.eye(W.shape[2]) / kind.stack_ridge, (S, 1, 1)),
        f"{prefix}stack_W": W,
        f"{prefix}losses": np.concatenate([experts, last, np.full(S, last.min())]),
    }


def _with_short_memory(state: State, prefix: str, losses: Array) -> Array:
    """The experts' losses, with one before those of the neighbours in the longer memories, if there are any."""
    of_numbers = "levels" in state
    n_heads, n_linear, n_ensembles = (
        len(array(state, prefix + name, dtype, None, None, None))
        for name, dtype in (("heads_W", np.float64), ("linear_W", np.float64), ("tree_features", np.int32))
    )
    n_neighbours = NUMBER_NEIGHBOURS if of_numbers else LABEL_NEIGHBOURS
    n_after = 1 + n_ensembles if of_numbers else int("transition_counts" in state)
    n_before = n_heads * (2 if of_numbers else 1) + n_linear + n_ensembles
    if len(losses) != n_before + n_neighbours + n_after:
        return losses
    return np.insert(losses, n_before, losses.max(initial=0.0) + LATE)
