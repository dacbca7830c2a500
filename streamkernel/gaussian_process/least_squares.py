"""The posterior by recursive least squares on random features: exact for the kernel that the features have."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from streamkernel.compute.posterior import INFORMATION, Posterior, pass_posterior
from streamkernel.compute.recursive import apply_deferred
from streamkernel.fields import Rules, all_finite, array, checked, state_mismatch
from streamkernel.state import Array, State


@dataclass(eq=False)
class LeastSquaresPosterior:
    """The Gaussian posterior of the coefficients of D columns, given noisy targets."""

    rho: float  #: The variance of the noise over that of the process
    drift: float  #: What a coefficient's variance gains a record, over the prior's
    centers: bool  #: Whether targets are taken less their running mean

    rules: ClassVar[Rules] = {"posterior_P": all_finite, "posterior_W": all_finite, "posterior_sums": all_finite}

    def __post_init__(self) -> None:
        self.begin(0)

    def begin(self, n_columns: int) -> None:
        """Begin with the prior."""
        self._P = np.eye(n_columns) / self.rho
        self._W = np.zeros((2, n_columns))
        self._deferred = np.zeros(n_columns + 2)
        self._sums = np.zeros(2)

    @property
    def n_columns(self) -> int:
        """D; 0 before it begins."""
        return len(self._P)

    @property
    def P(self) -> Array:
        """(Phi^T Phi + rho I)^-1, float64 of shape (D, D), a copy."""
        lower = np.tril(self._settled)
        return np.asarray(lower + np.tril(lower, -1).T)

    @property
    def nbytes(self) -> int:
        """Bytes of the matrix and the coefficients."""
        return int(self._P.nbytes + self._W.nbytes)

    def advance(self, Phi: Array, targets: Array, weights: Array, moments: Array) -> Array:
        """Predict, then learn, rows.

        - Phi, targets, weights: Columns (n, D), targets (n,), NaN for none, and weights (n,).
        - moments: Of the targets, float64 of shape (8,); updated.

        Returns float64 of shape (n, 4), as `pass_posterior` has them.
        """
        out = np.empty((len(Phi), 4))
        parts = Posterior(
            self._P,
            self._W,
            self._deferred,
            moments,
            self._sums,
            self.rho,
            self.drift / self.rho,
            self.centers,
        )
        pass_posterior(Phi, targets, weights, tuple(parts), out)
        return out

    def state(self) -> State:
        """The fields of the state: of P its lower triangle, row after row."""
        P = self._settled
        fields = {
            "posterior_P": P[np.tril_indices(len(P))],
            "posterior_W": self._W.copy(),
            "posterior_sums": self._sums.copy(),
        }
        return checked(fields, self.rules)

    def load_state(self, state: State, n_columns: int) -> None:
        """Take the fields that `state` gave; ValueError where they do not fit."""
        checked(state, self.rules)
        self.begin(n_columns)
        lower = array(state, "posterior_P", np.float64, n_columns * (n_columns + 1) // 2)
        self._P[np.tril_indices(n_columns)] = lower
        diagonal = np.diagonal(self._P)
        if (diagonal < 0).any() or (diagonal > (1 + 1e-9) / self.rho).any():
            raise state_mismatch("posterior_P")
        self._W = array(state, "posterior_W", np.float64, 2, n_columns)
        self._sums = array(state, "posterior_sums", np.float64, 2)
        if self._sums[INFORMATION] < 0 or not math.isfinite(self._sums[INFORMATION]):
            raise state_mismatch("posterior_sums")

    @property
    def _settled(self) -> Array:
        if self._deferred.any():
            apply_deferred(self._P, self._deferred, 1.0 / self.rho)
        return self._P
