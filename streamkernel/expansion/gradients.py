"""How the scores of an expansion change along its inputs: the gradient in closed form, or by differences."""

import math

import numpy as np

from streamkernel.domain import Domain
from streamkernel.expansion.computed import Computed
from streamkernel.expansion.expansion import Expansion
from streamkernel.expansion.terms import Term
from streamkernel.kernels.base import has_frequencies
from streamkernel.kernels.drawing import APART, slope_frequencies
from streamkernel.state import Array

_NO_KEYS = np.zeros(0, np.uint64)


def gradients(expansion: Expansion, X: Array, keys: Array, outputs: Array | None = None) -> Array:
    """The gradients of the scores f(x) by the inputs.

    They are exact where all features are cosines of the inputs and the squares of their frequencies have a variance,
    and central differences otherwise: of features with steps, or of very high frequencies, a derivative says nothing.

    Parameters
    ----------
    expansion
        With K outputs.
    X
        Rows as the expansion has them, scaled if they are standardised, shape (n, d).
    keys
        The keys of the d inputs, uint64.
    outputs
        Sums of outputs instead of these, float64 of shape (S, K); None (the default) is each output itself.

    Returns
    -------
    float64 of shape (S or K, n, d).

    """
    X = np.asarray(X, np.float64)
    if any(isinstance(term.source, Computed) or term.kernel.transforms for term in expansion.terms):
        return _differences(expansion, X, keys, outputs)
    alpha = expansion.alpha.astype(np.float64)
    if outputs is not None:
        alpha = np.einsum("sk,bkf->bsf", outputs, alpha)
    out = np.zeros((alpha.shape[1], *X.shape))
    first = 0
    for term in expansion.terms:
        own = alpha[:, :, first : first + term.width]
        _add_gradients(term, own if term.factor == 1 else own * term.factor, expansion.bandwidth, X, keys, out)
        first += term.width
    return out * (2 * math.pi * expansion.scale / math.sqrt(expansion.block_size))


def _add_gradients(term: Term, alpha: Array, bandwidth: float, X: Array, keys: Array, out: Array) -> None:
    assert not isinstance(term.source, Computed)
    assert has_frequencies(term.kernel)
    F = term.block_size
    for block, of_block in enumerate(alpha):
        W = term.source.of_block(block, keys, term.bandwidth(bandwidth)).astype(np.float64)
        turns = 2 * math.pi * (X @ W)
        along = of_block[:, None, F:] * np.cos(turns) - of_block[:, None, :F] * np.sin(turns)
        out += along @ slope_frequencies(term.kernel, W).T


def _differences(expansion: Expansion, X: Array, keys: Array, outputs: Array | None) -> Array:
    """Differences of the scores at two points beside each row, both in the kernel's domain."""
    n, d = X.shape
    out = np.empty((expansion.n_outputs if outputs is None else len(outputs), n, d))
    for j in range(d):
        span = APART * (float(X[:, j].std()) or 1.0)
        below, above = X.copy(), X.copy()
        below[:, j] -= span / 2
        above[:, j] += span / 2
        below[:, j] = _inside(expansion.kernel.domain, below[:, j], X[:, j])
        scores = [expansion.scores(rows.astype(expansion.dtype), keys, _NO_KEYS, alone=True) for rows in (above, below)]
        change = (scores[0] - scores[1]).T
        out[:, :, j] = (change if outputs is None else outputs @ change) / (above[:, j] - below[:, j])
    return out


def _inside(domain: Domain | None, moved: Array, X: Array) -> Array:
    return moved if domain is None else np.where(domain.outside(moved), X, moved)
