"""How large a kernel and its features are: the bounds that it states, or what the first mini-batch shows."""

import math
from typing import ClassVar

import numpy as np

from streamkernel.expansion.expansion import Expansion
from streamkernel.fields import Rules, all_from_zero, checked, number
from streamkernel.finite import LARGEST, NotFiniteError
from streamkernel.kernels import Kernel
from streamkernel.kernels.drawing import kernel_matrix
from streamkernel.records.input_columns import SCALED_LIMIT
from streamkernel.state import Array, State


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


class FeatureScale:
    """The largest k(x, x), and the largest sum of the squares of one draw's features.

    Where the kernel has no bound, both are measured in the first mini-batch, and kept in the state: of k(x, x) the
    largest, of the features' squares the root of their mean square over draws, at the row where that is largest.

    - is_bounded: Whether the kernel states both.
    - kappa, feature_bound: The two; 0 before they are measured.
    """

    rules: ClassVar[Rules] = {"kappa": all_from_zero, "feature_bound": all_from_zero}

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self.is_bounded = kernel.kappa is not None and kernel.feature_bound is not None
        self.forget()

    def forget(self) -> None:
        """Start over."""
        self.kappa = self._kernel.kappa or 0.0
        self.feature_bound = self._kernel.feature_bound or 0.0

    @property
    def is_measured(self) -> bool:
        """Whether both are known."""
        return bool(self.kappa and self.feature_bound)

    def measure(self, expansion: Expansion, X: Array, keys: Array) -> None:
        """Take what the kernel does not state from the rows of the first mini-batch, shape (B, d).

        NotFiniteError: The features are so large that the fourth power of their norm is not finite.
        """
        if not self.kappa:
            rows = occupied(X)
            K = kernel_matrix(self._kernel, rows, rows, expansion.bandwidth)
            self.kappa = float(np.diag(K).max()) or 1.0
        if not self.feature_bound:
            phi = expansion.features(0, X, keys).astype(np.float64)
            with np.errstate(over="ignore"):
                squares = np.square(phi).reshape(len(X), -1, expansion.block_size).sum(axis=1) * expansion.block_size
                bound = float(np.sqrt(np.mean(np.square(squares), axis=1)).max()) or 1.0
            if not np.isfinite(bound):
                raise NotFiniteError(
                    f"the kernel {type(self._kernel).__name__} gave {np.abs(phi).max():g} in its method `features`, "
                    "whose fourth power is not finite: use smaller inputs or a smaller multiple of the kernel"
                )
            self.feature_bound = bound

    @property
    def noise(self) -> float:
        """What divides M^2 / (F B) in the variance term of the check (9): ((kappa + phi) / phi)^2, 4 if both are 1."""
        if not self.is_measured:
            return 4.0
        root = (self.kappa + self.feature_bound) / self.feature_bound
        return root**2 if root < LARGEST else math.inf  # where Python raises

    def state(self) -> State:
        """The fields of the state; none where the kernel states its bounds."""
        if self.is_bounded:
            return {}
        return checked({"kappa": self.kappa, "feature_bound": self.feature_bound}, self.rules)

    def load_state(self, state: State) -> None:
        """Take the fields that `state` gave; ValueError where they do not fit."""
        if self.is_bounded:
            return
        checked(state, self.rules)
        self.kappa, self.feature_bound = number(state, "kappa"), number(state, "feature_bound")
