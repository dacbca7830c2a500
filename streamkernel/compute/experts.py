"""What experts for classes and for numbers share: scores, temperatures, moments of the target, mixture, stacks.

The heads live on all columns, the linear experts on the last ones, which hold the constant and the inputs themselves.

Stacking corrects the mixture by how each expert differs from it, with weights learned online. Hedge gives its weight to
the best experts; errors that experts share, or that cancel, need weights of any sign. Each record is one of recursive
least squares: for numbers on the experts' predictions, for classes on their log-probabilities, where the gradient is
the record's column (an online Newton step).
"""

from typing import Any, NamedTuple

import numpy as np

from streamkernel.compute.jit import Array, jit, jit_reduction
from streamkernel.compute.memory import Ring
from streamkernel.compute.moments import take_target
from streamkernel.compute.packed import settled_products
from streamkernel.compute.recursive import dot, learn_least_squares, learn_least_squares_late
from streamkernel.compute.trees import Forest


@jit
def softmax_into(scores: Array, temperature: float, p: Array) -> None:
    """p = softmax(temperature scores)."""
    highest = scores[0]
    for k in range(1, scores.shape[0]):
        highest = max(highest, scores[k])
    total = 0.0
    for k in range(scores.shape[0]):
        p[k] = np.exp(temperature * (scores[k] - highest))
        total += p[k]
    for k in range(scores.shape[0]):
        p[k] /= total


@jit
def softmax_rows(scores: Array, p: Array) -> None:
    """Every row's softmax; float64 of shape (n, K)."""
    for r in range(scores.shape[0]):
        softmax_into(scores[r], 1.0, p[r])


#: Losses of the mixture are discounted by this a record.
DISCOUNT = 0.99
#: The rate of the temperatures' gradient steps, and where the gradient is clipped.
TEMPERATURE_STEP = 0.05
TEMPERATURE_CLIP = 2.0
HIGHEST_LOG_TEMPERATURE = 4.0


class Heads(NamedTuple):
    """Recursive least squares on all D columns: H heads of K outputs, each with a drift rate of its own.

    - tiles: Inverse covariances, packed, but for what is due, float64 of shape (H, packed size).
    - W: Weights, (H, K, D).
    - late, n_late: What is due to each matrix, (H, 8, padded D), and from how many records, int64 of shape (1,).
    - diagonals: (H, 2, D), as `late_product` has them.
    - drifts: q of each head, shape (H,).
    - ridge: rho.
    """

    tiles: Array
    W: Array
    late: Array
    n_late: Array
    diagonals: Array
    drifts: Array
    ridge: float


class Ahead(NamedTuple):
    """Records that the heads learn one by one. The next few are multiplied together.

    - Phi: Their columns, float64 of shape (n, D).
    - learned: Which of them are learned, bool of shape (n,).
    - X: The columns of those that are multiplied, (m, padded D).
    - V: What `settled_products` gives of these for each head, (H, m, padded D).
    - places: How many of these were learned, and the first record past them, int64 of shape (2,).
    """

    Phi: Array
    learned: Array
    X: Array
    V: Array
    places: Array


class Linear(NamedTuple):
    """Linear experts: E of K outputs on the last L columns.

    - P, W: Inverse covariances, or curvatures, float64 of shape (E, L, L), lower triangles, and weights, (E, K, L).
    - rates: How fast each forgets, shape (E,): lambda of experts for classes, q of those for numbers.
    - ridge: rho.
    """

    P: Array
    W: Array
    rates: Array
    ridge: float


class Mixture(NamedTuple):
    """The mixture of all experts by Hedge.

    - losses: Discounted losses of the experts: heads, linear experts, then the others; float64.
    - prior: Each expert's weight where all losses are alike, above 0; float64.
    - block: Number, sum and sum of squares of the mixture's own losses, where change is watched for; shape (3,).
    - eta: The learning rate of Hedge.
    """

    losses: Array
    prior: Array
    block: Array
    eta: float


@jit
def named_parts(parts: Any) -> Any:
    """`Heads`, `Linear` experts, `Forest`, `Ring`, `Mixture` and `Stacking`, from plain tuples of their fields.

    Named by the caller they would make each call from Python slower.
    """
    heads, linear, forest, memory, mixture, stacks = parts
    return Heads(*heads), Linear(*linear), Forest(*forest), Ring(*memory), Mixture(*mixture), Stacking(*stacks)


@jit_reduction
def predict_experts(heads_W: Array, linear_W: Array, phi: Array, scores: Array) -> None:
    """Scores of a record by heads and linear experts, in this order: the first rows of `scores`."""
    H, K, D = heads_W.shape
    E, _, L = linear_W.shape
    for j in range(H):
        for k in range(K):
            coefficients = heads_W[j, k]
            total = 0.0
            for i in range(D):
                total += coefficients[i] * phi[i]
            scores[j, k] = total
    linear = phi[D - L :]
    for e in range(E):
        for k in range(linear_W.shape[1]):
            coefficients = linear_W[e, k]
            total = 0.0
            for i in range(L):
                total += coefficients[i] * linear[i]
            scores[H + e, k] = total


@jit
def hedge_weights(losses: Array, prior: Array, eta: float, weights: Array) -> None:
    """Weights proportional to prior exp(-eta loss), from discounted sums of losses."""
    lowest = losses[0]
    for j in range(1, losses.shape[0]):
        lowest = min(lowest, losses[j])
    total = 0.0
    for j in range(losses.shape[0]):
        weights[j] = prior[j] * np.exp(-eta * (losses[j] - lowest))
        total += weights[j]
    for j in range(losses.shape[0]):
        weights[j] /= total


@jit
def step_temperature(log_temperature: float, scores: Array, p: Array, label: int) -> Any:
    """One clipped gradient step of the log-loss of softmax(tau scores) in log tau, kept within [0, 4]."""
    expected = 0.0
    for k in range(p.shape[0]):
        expected += p[k] * scores[k]
    slope = np.exp(log_temperature) * (expected - scores[label])
    slope = min(max(slope, -TEMPERATURE_CLIP), TEMPERATURE_CLIP)
    return min(max(log_temperature - TEMPERATURE_STEP * slope, 0.0), HIGHEST_LOG_TEMPERATURE)


@jit
def count_loss(block: Array, loss: float) -> None:
    """Add to number, sum and sum of squares, (3,)."""
    block[0] += 1
    block[1] += loss
    block[2] += loss**2


@jit
def multiply_ahead(heads: Heads, ahead: Ahead, is_due: bool) -> None:
    """Multiply the records that are learned next, up to that which fills what is due.

    - heads: Their matrices take first what is due, if `is_due`.
    - ahead: Updated.
    """
    n, r, n_most = 0, ahead.places[1], heads.late.shape[1] - heads.n_late[0]
    while r < ahead.Phi.shape[0] and n < n_most:
        if ahead.learned[r]:
            ahead.X[n, : ahead.Phi.shape[1]] = ahead.Phi[r]
            n += 1
        r += 1
    ahead.places[0], ahead.places[1] = 0, r
    if n or is_due:
        for j in range(heads.W.shape[0]):
            settled_products(heads.tiles[j], is_due, heads.late[j], heads.diagonals[j], ahead.X, ahead.V[j], n)


@jit
def look_ahead(heads: Heads, Phi: Array, learned: Array) -> Ahead:
    """The records that `update_heads` will be given, with `Phi` and `learned` as `Ahead` has them."""
    n = 0
    for r in range(learned.shape[0]):
        n += learned[r]
    H, n_most, width = heads.late.shape
    X, V = np.empty((min(n, n_most), width)), np.empty((H, min(n, n_most), width))
    X[:, Phi.shape[1] :] = 0.0
    ahead = Ahead(Phi, learned, X, V, np.zeros(2, np.int64))
    multiply_ahead(heads, ahead, False)
    return ahead


@jit
def update_heads(heads: Heads, ahead: Ahead, truth: Array, scores: Array, weight: float, errors: Array) -> None:
    """One record for each head, the next that is learned.

    - heads: Updated, but for `drifts`.
    - ahead: As `look_ahead` gave it; updated.
    - truth: What the scores should have been, shape (K,).
    - scores: What they were, the heads' in the first rows, shape (H or more, K).
    - weight: The record's weight, above 0.
    - errors: Room, shape (K,).
    """
    n_late, place = heads.n_late[0], ahead.places[0]
    for j in range(heads.W.shape[0]):
        for k in range(truth.shape[0]):
            errors[k] = truth[k] - scores[j, k]
        learn_least_squares_late(
            heads.W[j],
            heads.late[j],
            n_late,
            heads.diagonals[j],
            ahead.X[place],
            errors,
            weight,
            heads.drifts[j],
            1.0 / heads.ridge,
            ahead.V[j, place],
        )
    ahead.places[0] += 1
    heads.n_late[0] = (n_late + 1) % heads.late.shape[1]
    if heads.n_late[0] == 0:
        multiply_ahead(heads, ahead, True)


@jit
def replay(Phi: Array, truths: Array, sample_weights: Array, heads: Heads) -> None:
    """Let records (n, D) with truths (n, K) come again, to the heads alone; a weight of 0 leaves one out."""
    H, K, _ = heads.W.shape
    no_experts = np.empty((0, K, 1))
    scores = np.empty((H, K))
    errors = np.empty(K)
    ahead = look_ahead(heads, Phi, sample_weights > 0)
    for r in range(Phi.shape[0]):
        if sample_weights[r] > 0:
            predict_experts(heads.W, no_experts, Phi[r], scores)
            update_heads(heads, ahead, truths[r], scores, sample_weights[r], errors)


@jit
def standardize_targets(targets: Array, sample_weights: Array, moments: Array, out: Array) -> None:
    """Targets as the moments standardize them, one after the other, (n,) into (n,); none for a weight of 0."""
    for r in range(targets.shape[0]):
        out[r] = take_target(moments, targets[r])[0] if sample_weights[r] > 0 else 0.0


#: Most deviations of the target that a prediction counts as away from the mixture, or that correct it.
FURTHEST = 2.0
#: A logarithm is taken of no smaller probability.
LEAST = 1e-15


class Stacking(NamedTuple):
    """S stacks of N experts, which forget at different rates.

    - P, W: Inverse covariances, float64 of shape (S, N, N), lower triangles, and weights, (S, 1, N).
    - drifts: q of each, shape (S,).
    - ridge: rho.
    """

    P: Array
    W: Array
    drifts: Array
    ridge: float


@jit
def beside(predictions: Array, mixed: float, unit: float, out: Array) -> None:
    """How far from the mixture's prediction each expert's is, in deviations of the target, (N,) into (N,)."""
    for j in range(out.shape[0]):
        out[j] = min(max((predictions[j] - mixed) / unit, -FURTHEST), FURTHEST)


@jit
def stack_numbers(stacks: Stacking, x: Array, mixed: float, unit: float, out: Array) -> None:
    """Each stack's prediction, shape (S,), of what `beside` gave."""
    for s in range(out.shape[0]):
        out[s] = mixed + unit * min(max(dot(stacks.W[s, 0], x), -FURTHEST), FURTHEST)


@jit
def learn_numbers(stacks: Stacking, x: Array, error: float, weight: float, room: Array) -> None:
    """Each stack learns the mixture's error, in deviations of the target; `room` is of shape (N + 1,)."""
    error = min(max(error, -FURTHEST), FURTHEST)
    for s in range(stacks.W.shape[0]):
        room[:1] = error - dot(stacks.W[s, 0], x)
        learn_stack(stacks, s, x, weight, room)


@jit
def log_ratios(p: Array, mixed: Array, smoothing: float, out: Array) -> None:
    """Each expert's log-probabilities less the mixture's, smoothed, (N, K); the mixture's own in the last row."""
    N, K = out.shape[0] - 1, out.shape[1]
    for k in range(K):
        out[N, k] = np.log(max(mixed[k], LEAST))
        of_mixture = np.log((1.0 - smoothing) * mixed[k] + smoothing / K)
        for j in range(N):
            out[j, k] = np.log((1.0 - smoothing) * p[j, k] + smoothing / K) - of_mixture


@jit
def stack_labels(stacks: Stacking, ratios: Array, out: Array) -> None:
    """Each stack's probabilities, (S, K), of what `log_ratios` gave."""
    N, K = ratios.shape[0] - 1, ratios.shape[1]
    for s in range(out.shape[0]):
        for k in range(K):
            out[s, k] = ratios[N, k]
            for j in range(N):
                out[s, k] += stacks.W[s, 0, j] * ratios[j, k]
        softmax_into(out[s], 1.0, out[s])


@jit
def learn_labels(stacks: Stacking, ratios: Array, p: Array, label: int, weight: float, x: Array, room: Array) -> None:
    """Each stack learns a label, with what it said of it, (S, K); `x` and `room` are of shapes (N,) and (N + 1,)."""
    for s in range(stacks.W.shape[0]):
        for j in range(x.shape[0]):
            x[j] = ratios[j, label] - dot(p[s], ratios[j])
        room[:1] = 1.0
        learn_stack(stacks, s, x, weight, room)


@jit
def learn_stack(stacks: Stacking, s: int, x: Array, weight: float, room: Array) -> None:
    """One record of least squares, whose error is the first number of `room`."""
    learn_least_squares(stacks.P[s], stacks.W[s], x, room[:1], weight, stacks.drifts[s], 1.0 / stacks.ridge, room[1:])
