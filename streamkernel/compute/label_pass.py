"""A segment of classified records through all experts and their mixture: each predicts before it learns.

The transition expert counts how often one class followed another, discounted record by record.
"""

from typing import Any, NamedTuple

import numpy as np

from streamkernel.compute.experts import (
    DISCOUNT,
    count_loss,
    hedge_weights,
    learn_labels,
    log_ratios,
    look_ahead,
    named_parts,
    predict_experts,
    softmax_into,
    stack_labels,
    step_temperature,
    update_heads,
)
from streamkernel.compute.jit import Array, jit, jit_long
from streamkernel.compute.memory import MANY, neighbors_of_label, remember
from streamkernel.compute.recursive import learn_newton
from streamkernel.compute.tree_growth import learn_trees
from streamkernel.compute.trees import predict_trees

#: What is left of a count after one more record.
DECAY = 0.995
#: Records of weight 1 that a row counts as before its first, alike of all classes.
PRIOR_COUNT = 0.1
#: Where the unit is made 1 again.
LARGEST_UNIT = 1e100


class Transitions(NamedTuple):
    """A discounted transition matrix of the first B classes.

    - counts: Of class k after class b, in units, float64 of shape (B, B).
    - unit: The count of a record that comes now, from 1 up: it grows by 1 / `DECAY` a record, instead of the counts
      shrinking; float64 of shape (1,).
    """

    counts: Array
    unit: Array


@jit
def predict_transition(transitions: Transitions, before: int, p: Array) -> None:
    """The distribution of the class that follows `before` into p, (K,); alike where that is -1 or past the matrix."""
    counts = transitions.counts
    K, B = p.shape[0], counts.shape[0]
    total = PRIOR_COUNT * transitions.unit[0]
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


#: How much of an expert's distribution is uniform: when its loss is taken, and in the trees' at once.
SMOOTHING = 0.001
TREE_SMOOTHING = 0.02
#: No loss counts as more where change is watched for, so that one record does not look like one.
WORST = 10.0


@jit
def mix(weights: Array, p: Array, n: int, out: Array) -> None:
    """The mixture of the first n experts' distributions, (n or more, K) into (K,)."""
    for k in range(out.shape[0]):
        out[k] = 0.0
        for j in range(n):
            out[k] += weights[j] * p[j, k]


@jit
def shift(p: Array, by: Array, least: float, out: Array) -> None:
    """A distribution (K,) moved by some amounts (K,), none of it below `least`, made to sum to 1 again."""
    total = 0.0
    for k in range(p.shape[0]):
        out[k] = max(p[k] + by[k], least)
        total += out[k]
    for k in range(p.shape[0]):
        out[k] /= total


@jit_long
def pass_labels(
    Phi: Array,
    X: Array,
    values: Array,
    labels: Array,
    sample_weights: Array,
    experts_parts: tuple[Any, ...],
    scores_parts: tuple[Any, ...],
    past: Array,
    out: Array,
) -> None:
    """Predict, then learn, classified records.

    - Phi: Columns of the records, float64 of shape (n, D).
    - X: Their inputs scaled, float32 of shape (n, d) at least.
    - values: Their inputs as they came, float64 of shape (n, d); NaN where not observed.
    - labels: Classes, int64 of shape (n,); -1 is predicted and changes nothing.
    - sample_weights: float64 of shape (n,).
    - experts_parts: As `named_parts` has them; updated. Heads have a temperature each, linear experts none. Of T = 2
      ensembles of trees, if there are any, one learns the classes, one what the mixture of heads and linear experts
      leaves over. The mixture is of H + E + T + M + G experts: heads, linear experts, trees, neighbors, transitions;
      then the 1 + S of the last mixture, of all these mixed and of the stacks. None of its own losses counts as more
      than `WORST` in its block.
    - scores_parts: log tau of each head, shape (H,), and `Transitions`; updated.
    - past: The classes before, int64 of shape (n, G), -1 where not known; G = 1 with an expert of transitions, else 0.
    - out: Filled: the mixture's probabilities, float64 of shape (n, K).
    """
    heads, linear, forest, memory, mixture, stacks = named_parts(experts_parts)
    H, K, D = heads.W.shape
    E, _, L = linear.W.shape
    log_temperatures, transitions = scores_parts[0], Transitions(scores_parts[1], scores_parts[2])
    losses, prior, eta = mixture.losses, mixture.prior, mixture.eta
    T = forest.targets.shape[0]
    n_smooth = H + E
    S, _, n_experts = stacks.W.shape
    G = past.shape[1]
    scores = np.empty((n_smooth, K))
    p = np.empty((n_experts, K))
    weights, shares = np.empty(n_experts), np.empty(1 + S)
    last, ratios = np.empty((1 + S, K)), np.empty((n_experts + 1, K))
    x, room = np.empty(n_experts), np.empty(n_experts + 1)
    truth, smooth, nothing = np.empty(K), np.empty(K), np.empty(K)
    leaves, leaf_targets = np.empty((T, K)), np.empty((T, K))
    for k in range(K):  # `np.zeros` takes longer to compile than `np.empty`
        nothing[k] = 0.0
    errors = np.empty(K)
    neighbors = np.empty(MANY)
    v_linear = np.empty(L)
    ahead = look_ahead(heads, Phi, labels >= 0)
    for r in range(Phi.shape[0]):
        phi = Phi[r]
        label = labels[r]
        predict_experts(heads.W, linear.W, phi, scores)
        for j in range(H):
            softmax_into(scores[j], np.exp(log_temperatures[j]), p[j])
        for j in range(H, n_smooth):
            softmax_into(scores[j], 1.0, p[j])
        if T:
            hedge_weights(losses[:n_smooth], prior[:n_smooth], eta, weights[:n_smooth])
            mix(weights, p, n_smooth, smooth)
            predict_trees(forest, values[r], leaves)
            for k in range(K):
                leaves[0, k] = max(leaves[0, k], 0.0) + TREE_SMOOTHING / K
            shift(leaves[0], nothing, 0.0, p[n_smooth])
            shift(smooth, leaves[1], TREE_SMOOTHING / 10.0 / K, p[n_smooth + 1])
        if memory.span[0]:
            neighbors_of_label(memory, X[r], neighbors, p[n_smooth + T : n_experts - G])
        if G:
            predict_transition(transitions, past[r, 0], p[n_experts - 1])
        hedge_weights(losses[:n_experts], prior[:n_experts], eta, weights)
        mix(weights, p, n_experts, last[0])
        log_ratios(p, last[0], SMOOTHING, ratios)
        stack_labels(stacks, ratios, last[1:])
        hedge_weights(losses[n_experts:], prior[n_experts:], eta, shares)
        mix(shares, last, 1 + S, out[r])
        shift(out[r], nothing, 0.0, out[r])  # sums of weights and of distributions are 1 but for rounding
        if label < 0:
            continue
        count_loss(mixture.block, min(-np.log(out[r, label]), WORST))
        for k in range(K):
            truth[k] = (1.0 if k == label else 0.0) - 1.0 / K
        update_heads(heads, ahead, truth, scores, sample_weights[r], errors)
        for j in range(n_experts):
            losses[j] = DISCOUNT * losses[j] - np.log((1.0 - SMOOTHING) * p[j, label] + SMOOTHING / K)
        for g in range(1 + S):
            loss = -np.log((1.0 - SMOOTHING) * last[g, label] + SMOOTHING / K)
            losses[n_experts + g] = DISCOUNT * losses[n_experts + g] + loss
        learn_labels(stacks, ratios, last[1:], label, sample_weights[r], x, room)
        for j in range(H):
            log_temperatures[j] = step_temperature(log_temperatures[j], scores[j], p[j], label)
        for e in range(E):
            learn_newton(
                linear.P[e],
                linear.W[e],
                phi[D - L :],
                p[H + e],
                label,
                sample_weights[r],
                linear.rates[e],
                linear.ridge,
                v_linear,
            )
        remember(memory, X[r], float(label), sample_weights[r], 0.0)
        if G:
            learn_transition(transitions, past[r, 0], label, sample_weights[r])
        if T:
            for k in range(K):
                leaf_targets[0, k] = 1.0 if k == label else 0.0
                leaf_targets[1, k] = leaf_targets[0, k] - smooth[k]
            learn_trees(forest, values[r], leaf_targets, sample_weights[r])
