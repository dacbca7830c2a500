"""Records through the mixture of a growing machine: several heads on one map of random features.

A record is predicted by all heads, then learned. The fast heads and the linear expert learn it at once. The slow heads
take a step every B records, by affine projection onto the last P of them. Records go through in groups of at most B,
which share the traffic; the bits of each do not depend on its company.
"""

from typing import Any

import numpy as np

from streamkernel.compute.check import margin
from streamkernel.compute.experts import hedge_weights
from streamkernel.compute.features import LINEAR_LIMIT, cos_sin, project_observed
from streamkernel.compute.intrinsics import wide
from streamkernel.compute.jit import jit, jit_long
from streamkernel.compute.mixture_linear import learn_linear, predict_linear
from streamkernel.compute.mixture_losses import any_known, residual
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
)
from streamkernel.compute.projection import (
    BATCH,
    TILE,
    WINDOW,
    products,
    ridge_of,
    solve_records,
    subtract_batch,
    subtract_window,
    whole_tiles,
    window_products,
)

Array = np.ndarray[Any, np.dtype[Any]]


@jit
def fill_features(x: Array, columns: Array, turns: Array, feature_map: MixtureMap, n_blocks: int, phi: Array) -> None:
    """Fill the features of a scaled record: a constant, its inputs, then each block's cosines and sines."""
    wide()
    L, F = feature_map.n_linear, feature_map.block_size
    phi[0] = CONSTANT
    for j in range(L):
        phi[1 + j] = min(max(x[j] / feature_map.root, -LINEAR_LIMIT), LINEAR_LIMIT)
    own = turns[: n_blocks * F]
    for i in range(own.shape[0]):
        own[i] = 0.0
    project_observed(x, columns, feature_map.W, own)
    # From a new tile on: no sum over the blocks depends on how many inputs there are.
    first = whole_tiles(1 + L)
    for k in range(n_blocks):
        place = first + 2 * F * k
        cos_sin(own[k * F : (k + 1) * F], feature_map.sine, phi[place : place + F], phi[place + F : place + 2 * F])
    waves, norm = phi[first : first + 2 * F * n_blocks], np.float32(feature_map.norm)
    for i in range(waves.shape[0]):
        waves[i] *= norm


@jit
def refresh_gains(mixture: MixtureParts, n_features: int, first: int, F: int) -> None:
    """Give each feature the gain that its coefficients of the falling head have earned."""
    A, gains = mixture.coefficients[:, 0], mixture.gains
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
def refresh_products(mixture: MixtureParts, n_tiles: int, rows: Array) -> None:
    """Compute all products of the window again, with the current gains; `rows` is scratch, (BATCH, room)."""
    gram, with_window = mixture.gram, np.empty((WINDOW, BATCH))
    for first in range(0, WINDOW, BATCH):
        for i in range(BATCH):
            for t in range(n_tiles):
                for j in range(TILE):
                    rows[i, t * TILE + j] = mixture.gains[t * TILE + j] * mixture.window[t, first + i, j]
        window_products(rows, n_tiles, mixture.window, 0, first + BATCH, with_window)
        for i in range(BATCH):
            for k in range(first + i + 1):
                gram[first + i, k] = gram[k, first + i] = with_window[k, i]


@jit
def grow_mixture(mixture: MixtureParts, gamma: float, gradient: Array, F: int, most: int) -> None:
    """Make another block, unless inequality (9) holds of an old one, or there are `most`.

    Parameters
    ----------
    mixture
        Its betas, counts and checks are updated.
    gamma
        The falling head's step.
    gradient
        The mean of its gradients, shape (C,).
    F
        The features of a block.
    most
        The most blocks.
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
def take_mixture_step(kind: int, mixture: MixtureParts, F: int, most_blocks: int, scaled: Array) -> None:
    """One step on the last records; the last `BATCH` are new. `scaled` is scratch, (BATCH, room)."""
    C, L = mixture.linear.shape[0], mixture.linear.shape[1] - 1
    n_records, n_blocks = mixture.counts[N_RECORDS], mixture.counts[N_BLOCKS]
    first_wave = whole_tiles(1 + L)
    D = first_wave + 2 * F * n_blocks
    n = min(n_records, WINDOW)
    base = (n_records - BATCH) % WINDOW
    slow, fast = np.zeros((C, SLOW, WINDOW), np.float32), np.empty((C, FAST, BATCH), np.float32)
    residuals, own, gradient = np.empty((C, WINDOW)), np.empty(C), np.zeros(C)
    losses = np.empty(mixture.targets.shape[1])
    gamma = 0.0
    for h in range(SLOW):
        share = SHARES[h] / (1.0 + (n_records - BATCH) / HALVINGS[h])
        largest = 0.0
        for i in range(n):
            residual(kind, mixture.fitted[h, i], mixture.targets[i], own, losses)
            norm = 0.0
            for c in range(C):
                residuals[c, i] = own[c]
                norm += (mixture.weights[i] * own[c]) ** 2
            if h == 0 and base <= i < base + BATCH:
                largest = max(largest, np.sqrt(norm))
                for c in range(C):
                    gradient[c] += mixture.weights[i] * own[c] / BATCH
        if h == 0:
            gamma = share
            mixture.checks[LARGEST_GRADIENT] = max(GRADIENT_MEMORY * mixture.checks[LARGEST_GRADIENT], largest)
        solve_records(mixture.gram, RIDGES[h], mixture.weights, n, residuals)
        for c in range(C):
            for i in range(n):
                slow[c, h, i] = share * residuals[c, i]
            for i in range(n):
                total = 0.0
                for k in range(n):
                    total += mixture.gram[i, k] * slow[c, h, k]
                mixture.fitted[h, i, c] -= total
    for h in range(FAST):
        for c in range(C):
            for i in range(BATCH):
                fast[c, h, i] = mixture.moves[h, i, c]
    n_tiles = whole_tiles(D) // TILE
    for c in range(C):
        subtract_window(mixture.window, n_tiles, slow[c], mixture.gains, mixture.coefficients[c, :SLOW])
        subtract_batch(mixture.window, n_tiles, base, fast[c], mixture.gains, mixture.coefficients[c, SLOW:])
    if n_records % GAINS_EVERY == 0:
        refresh_gains(mixture, n_blocks * F, first_wave, F)
        refresh_products(mixture, n_tiles, scaled)
    grow_mixture(mixture, gamma, gradient, F, most_blocks)


@jit_long
def pass_mixture(
    kind: int,
    X: Array,
    targets: Array,
    weights: Array,
    map_parts: tuple[Any, ...],
    mixture_parts: tuple[Any, ...],
    most_blocks: int,
    out: Array,
) -> None:
    """Predict, then learn, records.

    Parameters
    ----------
    kind
        `NUMBERS`, `LABELS` or `CLASSES`.
    X
        Scaled records, float32 of shape (n, d + e).
    targets
        Standardized numbers or labels that are 1 or 0, (n, C), or the class, (n, 1), float64. NaN is not known. A
        record without a known target is predicted only.
    weights
        Float64 of shape (n,); a record with 0 is predicted only.
    map_parts, mixture_parts
        `MixtureMap` and `MixtureParts`, as plain tuples; the latter is updated.
    most_blocks
        The most blocks.
    out
        Filled: the scores of the mixture, float64 of shape (n, C).
    """
    # Named by the caller they would make each call from Python slower.
    feature_map, mixture = MixtureMap(*map_parts), MixtureParts(*mixture_parts)
    C, T, room = mixture.linear.shape[0], mixture.targets.shape[1], mixture.gains.shape[0]
    F, L, counts = feature_map.block_size, feature_map.n_linear, mixture.counts
    phi, scaled = np.zeros((BATCH, room), np.float32), np.zeros((BATCH, room), np.float32)
    turns, columns = np.empty(max(most_blocks, 1) * F, np.float32), np.empty(X.shape[1], np.int64)
    four = np.empty(BATCH)
    # Of each record of a group: with those of the window, with those of the group, and its scores.
    with_window, with_group = np.empty((WINDOW, BATCH)), np.empty((BATCH, BATCH))
    scores = np.empty((BATCH, HEADS + 1, C))
    places = np.empty(BATCH, np.int64)
    shares, prior, slopes, losses = np.empty(HEADS + 1), np.ones(HEADS + 1), np.empty(C), np.empty(T)
    start = 0
    while start < X.shape[0]:
        n_records = counts[N_RECORDS]
        n_new = n_records % BATCH
        size, n_learned = 0, 0
        while start + size < X.shape[0] and size < BATCH and n_new + n_learned < BATCH:
            learned = weights[start + size] > 0.0 and any_known(targets[start + size])
            places[size] = (n_records + n_learned) % WINDOW if learned else -1
            n_learned += learned
            size += 1
        D = whole_tiles(1 + L) + 2 * F * counts[N_BLOCKS]
        n_tiles = whole_tiles(D) // TILE
        for r in range(size):
            fill_features(X[start + r], columns, turns, feature_map, counts[N_BLOCKS], phi[r])
            for j in range(D):
                scaled[r, j] = mixture.gains[j] * phi[r, j]
        base = (n_records - n_new) % WINDOW
        n_window = min(n_records, WINDOW)
        begin, end = (0, n_window) if n_learned else (base, base + n_new)
        window_products(scaled, n_tiles, mixture.window, begin, end, with_window)
        for r in range(size):
            if places[r] >= 0:
                products(scaled, n_tiles, phi[r], with_group[r])
        for h in range(HEADS):
            for c in range(C):
                products(phi, n_tiles, mixture.coefficients[c, h], four)
                for r in range(size):
                    scores[r, h, c] = four[r]
        for r in range(size):
            x, own, place = X[start + r], scores[r], places[r]
            for h in range(FAST):
                for c in range(C):
                    total = 0.0
                    for i in range(n_new):
                        total += with_window[base + i, r] * mixture.moves[h, i, c]
                    for q in range(r):
                        if places[q] >= 0:
                            total += with_group[q, r] * mixture.moves[h, places[q] - base, c]
                    own[SLOW + h, c] -= total
            for c in range(C):
                own[HEADS, c] = predict_linear(mixture.linear[c], x)
            for c in range(C):
                if c < T:
                    hedge_weights(mixture.losses[c], prior, ETA, shares)
                total = 0.0
                for h in range(HEADS + 1):
                    total += shares[h] * own[h, c]
                out[start + r, c] = total
            if place < 0:
                continue
            target, weight = targets[start + r], weights[start + r]
            squared = with_group[r, r]
            for h in range(HEADS + 1):
                residual(kind, own[h], target, slopes, losses)
                for t in range(T):
                    if not np.isnan(losses[t]):
                        mixture.losses[t, h] = DISCOUNT * mixture.losses[t, h] + losses[t]
                if h < SLOW:
                    for c in range(C):
                        mixture.fitted[h, place, c] = own[h, c]
                elif h < HEADS:
                    factor = SHARES[h] / (squared + ridge_of(squared, RIDGES[h], weight))
                    for c in range(C):
                        mixture.moves[h - SLOW, place - base, c] = factor * slopes[c]
                else:
                    learn_linear(mixture.linear, mixture.squares, x, slopes, weight)
            for c in range(target.shape[0]):
                mixture.targets[place, c] = target[c]
            mixture.weights[place] = weight
        # Only now: the places of the window that a group takes are those of its oldest records.
        for r in range(size):
            place = places[r]
            if place < 0:
                continue
            for i in range(n_window):
                mixture.gram[place, i] = mixture.gram[i, place] = with_window[i, r]
            for q in range(r + 1):
                if places[q] >= 0:
                    mixture.gram[place, places[q]] = mixture.gram[places[q], place] = with_group[q, r]
            for t in range(n_tiles):
                for j in range(TILE):
                    mixture.window[t, place, j] = phi[r, t * TILE + j]
        counts[N_RECORDS] = n_records + n_learned
        if n_new + n_learned == BATCH:
            take_mixture_step(kind, mixture, F, most_blocks, scaled)
        start += size
