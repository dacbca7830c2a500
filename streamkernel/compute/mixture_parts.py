"""What the mixture of a growing machine is made of: heads, features, state, losses, linear expert, its check (9)."""

from typing import Any, NamedTuple

import numpy as np

from streamkernel.compute.features import LINEAR_LIMIT
from streamkernel.compute.jit import Array, jit
from streamkernel.compute.projection import BATCH, TILE, WINDOW

#: The kinds of targets: a number for each output, a label that is true or not for each, or one of many classes.
NUMBERS, LABELS, CLASSES = range(3)
#: The heads: the share of its projection that a step takes, lambda, and the records after which the share has halved.
#: The first one falls as a stationary stream asks for. The slow ones come first, the fast ones last.
SHARES = (0.5, 0.3, 0.5, 1.0, 0.3)
RIDGES = (0.3, 1.0, 3.0, 0.1, 0.1)
HALVINGS = (500.0, np.inf, 100.0, np.inf, np.inf)
HEADS, SLOW = 5, 3
FAST = HEADS - SLOW
#: The step of the linear expert, which is the last.
LINEAR_STEP = 0.1
#: The discount of the heads' losses a record, and the rate of the mixture.
DISCOUNT, ETA = 0.998, 0.3
#: No record decides alone: larger errors of a number, in deviations of the target, count as this one, and smaller
#: probabilities of a label as this.
FARTHEST, LEAST = 5.0, 1e-6
#: The part of a feature's gain that its coefficients decide, and the records after which all gains are computed again.
EARNED, GAINS_EVERY = 0.9, 64
#: The constant among the features.
CONSTANT = 0.5
#: How fast the largest gradient seen is forgotten, a step.
GRADIENT_MEMORY = 0.999
#: Places in `counts`, and in `checks`.
N_RECORDS, N_BLOCKS = range(2)
LARGEST_GRADIENT, MARGIN = range(2)


class MixtureMap(NamedTuple):
    """How scaled inputs become features.

    - W: Frequencies in turns, float32 of shape (at least the most blocks, d + e, F).
    - root: The divisor of the inputs themselves.
    - n_linear: How many of these are features.
    - norm: The factor of cosines and sines.
    """

    W: Array
    root: float
    n_linear: int
    norm: float


class MixtureParts(NamedTuple):
    """What a mixture of C outputs has learned.

    - coefficients: Float32 of shape (C, HEADS, room): of the constant and the L inputs up to a whole tile, then the
      blocks. Room is a multiple of `TILE`.
    - gains: Of the features for each target, float32 of shape (T, room). An output has those of its target.
    - linear, squares: The weights of the linear expert, and the sums of its squared gradients, float64 of shape (C, 1 +
      L).
    - window: The features of the last records, float32 of shape (room / TILE, WINDOW, TILE). A record stays in its
      place.
    - gram: Their products with the gains of each target, float64 of shape (T, WINDOW, WINDOW).
    - targets, weights: Their targets and weights, float64 of shape (WINDOW, T) and (WINDOW,).
    - fitted: Their scores by the slow heads, float64 of shape (SLOW, WINDOW, C).
    - moves: What the fast heads have learned since the last step, float64 of shape (FAST, BATCH, C).
    - losses: Discounted losses of the heads and of the linear expert for each target, float64 of shape (T, HEADS + 1).
    - beta: The sum of the falling head's steps times mean gradients since a block was made, float64 of shape (blocks,
      C).
    - counts: int64: `N_RECORDS` learned, and `N_BLOCKS` in use.
    - checks: The largest gradient seen, and the margin of inequality (9) at the last step that made no block, float64.
    - phi: Room for the features of some records, and for these times the gains of each target, float32 of shape (1 + T,
      BATCH, room). Past the features in use it is 0.
    """

    coefficients: Array
    gains: Array
    linear: Array
    squares: Array
    window: Array
    gram: Array
    targets: Array
    weights: Array
    fitted: Array
    moves: Array
    losses: Array
    beta: Array
    counts: Array
    checks: Array
    phi: Array


def n_rows(C: int, T: int) -> int:
    """How many rows of float32 a mixture takes: C outputs, and T numbers in a target."""
    return C * HEADS + T + WINDOW + (1 + T) * BATCH


def n_numbers(C: int, T: int, L: int, n_blocks: int) -> int:
    """How many float64 a mixture takes: C outputs, T numbers in a target, L inputs, and the blocks that have room."""
    of_window = WINDOW * (T * WINDOW + T + 1 + SLOW * C) + FAST * BATCH * C
    return 2 * C * (1 + L) + of_window + T * (HEADS + 1) + n_blocks * C + 2


@jit
def parts_of(rows: Array, numbers: Array, counts: Array, C: int, T: int, L: int) -> MixtureParts:
    """The parts of a mixture, which lie in three arrays: each array of a compiled call costs its caller time.

    - rows: Coefficients, gains, window and room, float32 of shape (`n_rows`, room).
    - numbers: The others but for the counts, float64 of shape (`n_numbers`,).
    - counts: The counts.
    - C, T, L: Outputs, numbers in a target, and inputs.
    """
    room, n_heads, n_all = rows.shape[1], C * HEADS, numbers.shape[0]
    first = n_heads + T
    after = first + WINDOW
    of_linear, fitted, moves = C * (1 + L), SLOW * WINDOW * C, FAST * BATCH * C
    sizes = (of_linear, of_linear, T * WINDOW**2, WINDOW * T, WINDOW, fitted, moves, T * (HEADS + 1))
    ends = np.cumsum(np.array(sizes))
    return MixtureParts(
        coefficients=rows[:n_heads].reshape(C, HEADS, room),
        gains=rows[n_heads:first],
        linear=numbers[: ends[0]].reshape(C, 1 + L),
        squares=numbers[ends[0] : ends[1]].reshape(C, 1 + L),
        window=rows[first:after].reshape(room // TILE, WINDOW, TILE),
        gram=numbers[ends[1] : ends[2]].reshape(T, WINDOW, WINDOW),
        targets=numbers[ends[2] : ends[3]].reshape(WINDOW, T),
        weights=numbers[ends[3] : ends[4]],
        fitted=numbers[ends[4] : ends[5]].reshape(SLOW, WINDOW, C),
        moves=numbers[ends[5] : ends[6]].reshape(FAST, BATCH, C),
        losses=numbers[ends[6] : ends[7]].reshape(T, HEADS + 1),
        beta=numbers[ends[7] : n_all - 2].reshape((n_all - 2 - ends[7]) // C, C),
        counts=counts,
        checks=numbers[n_all - 2 :],
        phi=rows[after:].reshape(1 + T, BATCH, room),
    )


@jit
def loss_residuals(kind: int, scores: Array, targets: Array, out: Array, losses: Array) -> None:
    """The derivatives of the losses over their Lipschitz constants.

    - kind: `NUMBERS`, `LABELS` or `CLASSES`.
    - scores: Shape (n, C).
    - targets: Of each, or one for all, shape (n, T) or (1, T); NaN is a target that is not known.
    - out: Filled, shape (n, C).
    - losses: Filled with the loss of each target, shape (n, T), NaN where it is not known; or of shape (0, T).
    """
    C, with_losses = scores.shape[1], losses.shape[0] > 0
    for i in range(scores.shape[0]):
        own = i if targets.shape[0] > 1 else 0
        if kind != CLASSES:
            for c in range(C):
                target, score = targets[own, c], scores[i, c]
                slope, loss = score - target, 0.0
                if np.isnan(target):
                    slope, loss = 0.0, np.nan
                elif kind == NUMBERS:
                    slope = min(max(slope, -FARTHEST), FARTHEST)
                    loss = slope * slope
                else:  # a true label has this score, and a false one its negative
                    p = 1.0 / (1.0 + np.exp(-2.0 * score))
                    slope = 2.0 * (p - target)
                    if with_losses:
                        loss = -np.log(max(p if target > 0 else 1.0 - p, LEAST))
                out[i, c] = slope
                if with_losses:
                    losses[i, c] = loss
            continue
        highest, total = scores[i, 0], 0.0
        for c in range(1, C):
            highest = max(highest, scores[i, c])
        for c in range(C):
            out[i, c] = np.exp(scores[i, c] - highest)
            total += out[i, c]
        label = int(targets[own, 0])
        p = out[i, label] / total
        for c in range(C):
            out[i, c] *= 2.0 / total
        out[i, label] -= 2.0
        if with_losses:
            losses[i, 0] = -np.log(max(p, LEAST))


@jit
def any_known(target: Array) -> Any:
    """Whether a number of a row is not NaN."""
    known = False
    for c in range(target.shape[0]):
        known |= not np.isnan(target[c])
    return known


@jit
def learn_linear(linear: Array, squares: Array, x: Array, slopes: Array, weight: float) -> None:
    """One adaptive gradient step of the linear expert, which moves no score by more than its slope.

    A weight lengthens the step; a heavy record does not shorten those to come.
    """
    L = linear.shape[1] - 1
    step, inputs = np.empty(1 + L), np.empty(1 + L)
    inputs[0] = 1.0
    for j in range(L):
        inputs[1 + j] = min(max(np.float64(x[j]), -LINEAR_LIMIT), LINEAR_LIMIT)
    for c in range(linear.shape[0]):
        move = 0.0
        for j in range(1 + L):
            gradient = slopes[c] * inputs[j]
            squares[c, j] += gradient * gradient
            # Of a gradient too small the square is 0.
            step[j] = LINEAR_STEP * weight * gradient / np.sqrt(squares[c, j]) if squares[c, j] > 0.0 else 0.0
            move += step[j] * inputs[j]
        factor = min(1.0, slopes[c] / move) if move != 0.0 else 0.0
        for j in range(1 + L):
            linear[c, j] -= factor * step[j]


@jit
def predict_linear(weights: Array, x: Array) -> Any:
    """The score of the linear expert's weights (1 + L,)."""
    total = weights[0]
    for j in range(weights.shape[0] - 1):
        total += weights[1 + j] * min(max(np.float64(x[j]), -LINEAR_LIMIT), LINEAR_LIMIT)
    return total


def margin_of(beta2: Any, b: Any, gbar2: Any, gamma: float, variance: float, step: Any) -> Any:
    """By how much (9) holds at a step: its right side minus its left, of |beta|^2, <beta, gbar>, |gbar|^2."""
    left = 2 * (beta2 - 2 * step * b + step**2 * gbar2) + 2 * step**2 * variance
    return beta2 + gamma**2 * gbar2 - left


#: The same, compiled.
margin = jit(margin_of)
