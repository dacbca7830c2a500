"""Records through the mixture of a growing machine: several heads on one map of random features.

A record is predicted by all heads, then learned. The fast heads and the linear expert learn it at once. The slow heads
take a step every B records, by affine projection onto the last P of them. Records go through in groups of at most B,
which share the traffic; the bits of each do not depend on its company.
"""

import numpy as np

from streamkernel.compute.experts import hedge_weights
from streamkernel.compute.features import LINEAR_LIMIT, SINE, cos_sin, observed, project_columns
from streamkernel.compute.jit import Array, jit, jit_long
from streamkernel.compute.mixture_parts import (
    CONSTANT,
    DISCOUNT,
    EARNED,
    ETA,
    FAST,
    GAINS_EVERY,
    GRADIENT_MEMORY,
    HALVINGS,
    HEADS,
    LARGEST_GRADIENT,
    MARGIN,
    N_BLOCKS,
    N_RECORDS,
    RIDGES,
    SHARES,
    SLOW,
    MixtureMap,
    MixtureParts,
    any_known,
    learn_linear,
    loss_residuals,
    margin,
    parts_of,
    predict_linear,
)
from streamkernel.compute.projection import (
    BATCH,
    SYSTEMS,
    TILE,
    WINDOW,
    products,
    ridge_of,
    row_products,
    solve_records,
    subtract_batch,
    subtract_window,
    whole_tiles,
    window_products,
)
from streamkernel.compute.vectors import multiply_add, wide

_SINE = SINE[np.dtype("float32")]


@jit
def fill_features(X: Array, feature_map: MixtureMap, n_blocks: int, phi: Array) -> None:
    """Fill the features of scaled records: a constant, their inputs, then each block's cosines and sines."""
    wide()
    L, F = feature_map.n_linear, feature_map.W.shape[2]
    columns, ends = np.empty(X.shape, np.int64), np.empty(X.shape[0], np.int64)
    turns, sine = np.empty(F, np.float32), np.float32(feature_map.norm) * _SINE
    for r in range(X.shape[0]):
        phi[r, 0] = CONSTANT
        for j in range(L):
            phi[r, 1 + j] = min(max(X[r, j] / feature_map.root, -LINEAR_LIMIT), LINEAR_LIMIT)
        ends[r] = observed(X[r], columns[r])
    # From a new tile on: no sum over the blocks depends on how many inputs there are.
    place = whole_tiles(1 + L)
    for k in range(n_blocks):
        for r in range(X.shape[0]):
            for i in range(F):
                turns[i] = 0.0
            project_columns(X[r], columns[r, : ends[r]], feature_map.W[k], 0, 0, turns)
            cos_sin(turns, sine, phi[r, place : place + F], phi[r, place + F : place + 2 * F])
        place += 2 * F


@jit
def refresh_gains(A: Array, n_features: int, first: int, F: int, gains: Array) -> None:
    """Give each feature the gain that its coefficients have earned: of the falling head, for a target's outputs."""
    total = 0.0
    for i in range(n_features):
        k = first + 2 * F * (i // F) + i % F
        square = 0.0
        for c in range(A.shape[0]):
            square += np.float64(A[c, k]) ** 2 + np.float64(A[c, k + F]) ** 2
        gains[k] = np.sqrt(square)
        total += gains[k]
    for i in range(n_features):
        k = first + 2 * F * (i // F) + i % F
        share = gains[k] * n_features / total if total > 0.0 else 1.0
        gains[k] = gains[k + F] = 1.0 - EARNED + EARNED * share


@jit
def refresh_products(window: Array, n_tiles: int, gains: Array, rows: Array, gram: Array) -> None:
    """Compute all products of the window again, with the current gains of a target; there is room for `rows`."""
    with_window = np.empty((WINDOW, BATCH))
    for first in range(0, WINDOW, BATCH):
        for i in range(BATCH):
            for t in range(n_tiles):
                for j in range(TILE):
                    rows[i, t * TILE + j] = gains[t * TILE + j] * window[t, first + i, j]
        window_products(rows, n_tiles, window, 0, first + BATCH, with_window)
        for i in range(BATCH):
            for k in range(first + i + 1):
                gram[first + i, k] = gram[k, first + i] = with_window[k, i]


@jit
def grow_mixture(mixture: MixtureParts, gamma: float, gradient: Array, F: int, most: int) -> None:
    """Make another block, unless inequality (9) holds of an old one, or there are `most`.

    - mixture: Its betas, counts and checks are updated.
    - gamma: The falling head's step.
    - gradient: The mean of its gradients, shape (C,).
    - F: The features of a block.
    - most: The most blocks.
    """
    beta, n = mixture.beta, mixture.counts[N_BLOCKS]
    gbar2 = 0.0
    for c in range(gradient.shape[0]):
        gbar2 += gradient[c] ** 2
    variance = mixture.checks[LARGEST_GRADIENT] ** 2 / (4.0 * F * BATCH)
    best = -np.inf
    for k in range(n):
        beta2 = b = 0.0
        for c in range(gradient.shape[0]):
            beta2 += beta[k, c] ** 2
            b += beta[k, c] * gradient[c]
            beta[k, c] -= gamma * gradient[c]
        best = max(best, margin(beta2, b, gbar2, gamma, variance, gamma))
    if best >= 0.0 or n >= most:
        mixture.checks[MARGIN] = best
        return
    for c in range(gradient.shape[0]):
        beta[n, c] = -gamma * gradient[c]
    mixture.counts[N_BLOCKS] += 1


@jit
def take_mixture_step(kind: int, mixture: MixtureParts, F: int, most_blocks: int) -> None:
    """One step on the last records; the last `BATCH` are new."""
    wide()
    C, T, L = mixture.linear.shape[0], mixture.targets.shape[1], mixture.linear.shape[1] - 1
    n_records, n_blocks = mixture.counts[N_RECORDS], mixture.counts[N_BLOCKS]
    first_wave = whole_tiles(1 + L)
    n_tiles = whole_tiles(first_wave + 2 * F * n_blocks) // TILE
    n = min(n_records, WINDOW)
    base = (n_records - BATCH) % WINDOW
    slow, fast = np.zeros((C, SLOW, WINDOW), np.float32), np.empty((FAST, BATCH), np.float32)
    right_sides, slopes, gradient = np.zeros((C, WINDOW, SYSTEMS)), np.empty((n, C)), np.zeros(C)
    no_losses, moved, largest = np.empty((0, mixture.targets.shape[1])), np.empty(WINDOW), 0.0
    for h in range(SLOW):
        loss_residuals(kind, mixture.fitted[h, :n], mixture.targets, slopes, no_losses)
        for i in range(n):
            for c in range(C):
                right_sides[c, i, h] = slopes[i, c]
        if h == 0:
            for i in range(base, base + BATCH):
                norm = 0.0
                for c in range(C):
                    weighted = mixture.weights[i] * slopes[i, c]
                    gradient[c] += weighted / BATCH
                    norm += weighted**2
                largest = max(largest, np.sqrt(norm))
    mixture.checks[LARGEST_GRADIENT] = max(GRADIENT_MEMORY * mixture.checks[LARGEST_GRADIENT], largest)
    of_target = C // T  # outputs of a target
    for t in range(T):
        solve_records(mixture.gram[t], RIDGES, mixture.weights, n, right_sides[t * of_target : (t + 1) * of_target])
    for h in range(SLOW):
        share = SHARES[h] / (1.0 + (n_records - BATCH) / HALVINGS[h])
        for c in range(C):
            for i in range(n):
                slow[c, h, i] = share * right_sides[c, i, h]
                moved[i] = 0.0
            for k in range(n):
                factor, row = np.float64(slow[c, h, k]), mixture.gram[c // of_target, k]
                for i in range(n):
                    moved[i] = multiply_add(factor, row[i], moved[i])
            for i in range(n):
                mixture.fitted[h, i, c] -= moved[i]
    for c in range(C):
        for h in range(FAST):
            for i in range(BATCH):
                fast[h, i] = mixture.moves[h, i, c]
        gains, A = mixture.gains[c // of_target], mixture.coefficients[c]
        subtract_window(mixture.window, n_tiles, slow[c], gains, A[:SLOW])
        subtract_batch(mixture.window, n_tiles, base, fast, gains, A[SLOW:])
    if n_records % GAINS_EVERY == 0:
        for t in range(T):
            gains, A = mixture.gains[t], mixture.coefficients[t * of_target : (t + 1) * of_target, 0]
            refresh_gains(A, n_blocks * F, first_wave, F, gains)
            refresh_products(mixture.window, n_tiles, gains, mixture.phi[1], mixture.gram[t])
    grow_mixture(mixture, SHARES[0] / (1.0 + (n_records - BATCH) / HALVINGS[0]), gradient, F, most_blocks)


@jit_long
def pass_mixture(
    kind: int,
    X: Array,
    targets: Array,
    weights: Array,
    W: Array,
    root: float,
    n_linear: int,
    norm: float,
    rows: Array,
    numbers: Array,
    counts: Array,
    most_blocks: int,
    out: Array,
) -> None:
    """Predict, then learn, records.

    - kind: `NUMBERS`, `LABELS` or `CLASSES`.
    - X: Scaled records, float32 of shape (n, d + e).
    - targets: Standardized numbers or labels that are 1 or 0, (n, C), or the class, (n, 1), float64. NaN is not known.
      A record without a known target is predicted only.
    - weights: Float64 of shape (n,); a record with 0 is predicted only.
    - W, root, n_linear, norm: The fields of `MixtureMap`. A tuple of them would make each call slower.
    - rows, numbers, counts: The mixture, as `parts_of` has it; updated.
    - most_blocks: The most blocks.
    - out: Filled: the scores of the mixture, float64 of shape (n, C).
    """
    wide()
    C, T, F, L = out.shape[1], targets.shape[1], W.shape[2], n_linear
    feature_map = MixtureMap(W, root, n_linear, norm)
    mixture, room = parts_of(rows, numbers, counts, C, T, L), rows.shape[1]
    phi, scaled, window, of_target = mixture.phi[0], mixture.phi[1:], mixture.window, C // T
    head_rows = mixture.coefficients.reshape(C * HEADS, room)
    # Of each record of a group: its products with the window's by the gains of each target, and its scores.
    with_window, scores = np.empty((T, WINDOW, BATCH)), np.empty((BATCH, HEADS + 1, C))
    one, four, own_scores = np.empty(WINDOW), np.empty(BATCH), np.empty(C * HEADS)
    places = np.empty(BATCH, np.int64)
    shares, prior = np.empty(HEADS + 1), np.ones(HEADS + 1)
    slopes, losses = np.empty((HEADS + 1, C)), np.empty((HEADS + 1, T))
    start = 0
    while start < X.shape[0]:
        n_records = counts[N_RECORDS]
        n_new = n_records % BATCH
        base = (n_records - n_new) % WINDOW
        size, n_learned = 0, 0
        while start + size < X.shape[0] and size < BATCH and n_new + n_learned < BATCH:
            learned = weights[start + size] > 0.0 and any_known(targets[start + size])
            places[size] = base + n_new + n_learned if learned else -1
            n_learned += learned
            size += 1
        D = whole_tiles(1 + L) + 2 * F * counts[N_BLOCKS]
        n_tiles = whole_tiles(D) // TILE
        fill_features(X[start : start + size], feature_map, counts[N_BLOCKS], phi)
        for r in range(size):
            row, place = phi[r], places[r]
            for c in range(T):
                scaled_row, gains = scaled[c, r], mixture.gains[c]
                for j in range(D):
                    scaled_row[j] = gains[j] * row[j]
            if place >= 0:
                # It takes the place of the oldest, which no record of the group is predicted by.
                for t in range(n_tiles):
                    tile, taken = row[t * TILE : (t + 1) * TILE], window[t, place]
                    for j in range(TILE):
                        taken[j] = tile[j]
        n_window = min(n_records + n_learned, WINDOW)
        begin, end = (0, n_window) if n_learned else (base, base + n_new)
        if size == 1:  # a quarter of the work
            for c in range(T):
                row_products(scaled[c, 0], n_tiles, window, begin, end + -end % BATCH, one)
                for i in range(begin, end):
                    with_window[c, i, 0] = one[i]
            for first in range(0, C * HEADS, BATCH):
                last = min(first + BATCH, C * HEADS)
                products(head_rows[last - BATCH : last], n_tiles, phi[0], own_scores[last - BATCH : last])
            for c in range(C):
                for h in range(HEADS):
                    scores[0, h, c] = own_scores[c * HEADS + h]
        else:
            for c in range(T):
                window_products(scaled[c], n_tiles, window, begin, end, with_window[c])
            for c in range(C):
                for h in range(HEADS):
                    products(phi, n_tiles, mixture.coefficients[c, h], four)
                    for r in range(size):
                        scores[r, h, c] = four[r]
        n_before = n_new  # records since the last step
        for r in range(size):
            x, place, own = X[start + r], places[r], scores[r]
            for c in range(C):
                for h in range(FAST):
                    total = 0.0
                    for i in range(n_before):
                        total += with_window[c // of_target, base + i, r] * mixture.moves[h, i, c]
                    own[SLOW + h, c] -= total
                own[HEADS, c] = predict_linear(mixture.linear[c], x)
                if c < T:
                    hedge_weights(mixture.losses[c], prior, ETA, shares)
                total = 0.0
                for h in range(HEADS + 1):
                    total += shares[h] * own[h, c]
                out[start + r, c] = total
            if place < 0:
                continue
            target, weight = targets[start + r], weights[start + r]
            loss_residuals(kind, own, target.reshape(1, T), slopes, losses)
            for t in range(T):
                if not np.isnan(losses[0, t]):
                    for h in range(HEADS + 1):
                        mixture.losses[t, h] = DISCOUNT * mixture.losses[t, h] + losses[h, t]
            for h in range(FAST):
                for c in range(C):
                    squared = with_window[c // of_target, place, r]
                    ridge = ridge_of(squared, RIDGES[SLOW + h], weight)
                    mixture.moves[h, n_before, c] = SHARES[SLOW + h] / (squared + ridge) * slopes[SLOW + h, c]
            for h in range(SLOW):
                for c in range(C):
                    mixture.fitted[h, place, c] = own[h, c]
            learn_linear(mixture.linear, mixture.squares, x, slopes[HEADS], weight)
            for c in range(T):
                mixture.targets[place, c] = target[c]
            mixture.weights[place] = weight
            n_before += 1
            for c in range(T):
                for i in range(n_window):  # of two of the group, the later one's own product stays
                    mixture.gram[c, place, i] = mixture.gram[c, i, place] = with_window[c, i, r]
        counts[N_RECORDS] = n_records + n_learned
        if n_new + n_learned == BATCH:
            take_mixture_step(kind, mixture, F, most_blocks)
        start += size
