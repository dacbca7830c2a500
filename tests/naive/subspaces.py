"""Twin of streamkernel/compute/subspaces.py."""

import math

from tests.naive.gaussians import mix64

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
