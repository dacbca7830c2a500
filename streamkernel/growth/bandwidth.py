"""What a growing machine takes its bandwidth and first step size from: rows without what would mislead."""

import numpy as np

from streamkernel.expansion.expansion import Expansion
from streamkernel.kernels import Kernel
from streamkernel.records.input_scaler import SCALED_LIMIT
from streamkernel.state import Array


def occupied(X: Array) -> Array:
    """Without the columns that are 0 in every row: a call may hold inputs that only later rows bring, and numpy's sums
    change their last bits with the number of terms."""
    return np.ascontiguousarray(X[:, X.any(axis=0)])


def usual(X: Array) -> Array:
    """Without the rows that hold an outlier, a value clipped at the limit, unless they are half of all."""
    kept = X[np.abs(X).max(axis=1, initial=0.0) < SCALED_LIMIT]
    return kept if 2 * len(kept) > len(X) else X


def begin_expansion(expansion: Expansion, X: Array, keys: Array) -> None:
    """Fix what the first scaled rows (n, d) of the inputs of some keys decide about an expansion."""
    kernel, rows = expansion.kernel.on_rows(X, keys)
    expansion.begin(rows, first_bandwidth(kernel, occupied(rows)))


def first_bandwidth(kernel: Kernel, X: Array) -> float:
    """The kernel's bandwidth for as many inputs as there are: the rows' mean squared norm, or d if standardized."""
    d = float(np.mean(np.einsum("ij,ij->i", X, X, dtype=np.float64)))
    return kernel.initial_bandwidth(d) if d > 0 else kernel.initial_bandwidth(0.5)
