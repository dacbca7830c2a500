"""Plain twins of the random choices."""

import math

from tests.naive.gaussians import mix64
from tests.naive.semi_stochastic import draw_row


def draw_blocks(state, count, chosen):
    drawn = []
    for _ in chosen:
        state, number = draw_row(state, count)
        drawn.append(number)
    return drawn


def draw_subsets(state, pool, chosen):
    drawn = []
    for _ in chosen:
        for k in range(len(chosen[0])):
            state, number = draw_row(state, len(pool) - k)
            pool[k], pool[k + number] = pool[k + number], pool[k]
        drawn.append(list(pool[: len(chosen[0])]))
    return drawn


_FIRST, _SECOND = 0x66697273742D696E, 0x7365636F6E642D69


def place_below(word, n):
    return (mix64(word) >> 33) * n >> 31


def restrict(words, sizes, n_inputs, first, W):
    """W with zeros for the inputs that a feature does not see."""
    out = W.copy()
    for i, (word, size, n) in enumerate(zip(words.tolist(), sizes.tolist(), n_inputs.tolist(), strict=True)):
        if size == 0 or size >= n:
            continue
        seen = [place_below(word ^ _FIRST, n)]
        if size == 2:
            others = [j for j in range(n) if j not in seen]
            seen.append(others[place_below(word ^ _SECOND, n - 1)])
        for r in range(len(W)):
            out[r, i] = W[r, i] * math.sqrt(n / size) if first + r in seen else 0
    return out
