"""How the scores of an expansion change along its inputs: the gradient in closed form."""

import math

import numpy as np

from streamkernel.expansion.expansion import Expansion
from streamkernel.state import Array


def gradients(expansion: Expansion, X: Array, keys: Array, outputs: Array | None = None) -> Array:
    """The gradients of the scores f(x) by the scaled inputs.

    Parameters
    ----------
    expansion
        With K outputs.
    X
        Scaled rows, shape (n, d).
    keys
        The keys of the d inputs, uint64.
    outputs
        Sums of outputs instead of these, float64 of shape (S, K); None (the default) is each output itself.

    Returns
    -------
    float64 of shape (S or K, n, d).

    """
    F = expansion.block_size
    alpha = expansion.alpha.astype(np.float64)
    if outputs is not None:
        alpha = np.einsum("sk,bkf->bsf", outputs, alpha)
    X = np.asarray(X, np.float64)
    out = np.zeros((alpha.shape[1], *X.shape))
    for block, of_block in enumerate(alpha):
        W = expansion.frequencies.of_block(block, keys, expansion.bandwidth).astype(np.float64)
        turns = 2 * math.pi * (X @ W)
        along = of_block[:, None, F:] * np.cos(turns) - of_block[:, None, :F] * np.sin(turns)
        out += along @ W.T
    return out * (2 * math.pi * expansion.scale / math.sqrt(F))
