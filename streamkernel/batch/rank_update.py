"""The update of rank B of recursive least squares: n records at once, of which only sums are known.

P = (Phi^T Phi + rho I)^-1 becomes (P^-1 + G)^-1 without an inverse of either: of a root L of P, P = L L^T, it is
L (I + L^T G L)^-1 L^T, whatever the root, and the matrix in the middle is never near to singular.
"""

import functools
import threading

import numpy as np
from threadpoolctl import ThreadpoolController

from streamkernel.batch.sums import whole
from streamkernel.compute.recursive import learn_soundly
from streamkernel.state import Array

_EPSILON = float(np.finfo(np.float64).eps)
#: Rounding of L^T G L up to which I + L^T G L is as good as exact.
_EXACT = 1e-3
#: Of a library's threads, whose number is the whole process's.
_one_thread = threading.Lock()


def learn_sums(P: Array, W: Array, gram: Array, cross: Array, drift: float, largest: float) -> None:
    """Learn records of which sums are known, to rounding as one after the other where nothing drifts.

    It is done on one thread of the linear algebra library, whose last bits depend on their number.

    - P: (Phi^T Phi + rho I)^-1 so far, float64 of shape (D, D), lower triangle, the rest 0; updated.
    - W: Coefficients, float64 of shape (K, D); updated.
    - gram: sum w phi phi^T, float64 of shape (D, D), upper triangle.
    - cross: sum w (y - W phi) phi^T, by the coefficients before, float64 of shape (K, D).
    - drift: What is added to the diagonal of P, of all records.
    - largest: 1 / rho, which the diagonal never exceeds.
    """
    with _one_thread, _libraries().limit(limits=1, user_api="blas"):
        _learn(P, W, gram, cross)
    diagonal = np.einsum("ii->i", P)
    np.minimum(diagonal + drift, largest, out=diagonal)


def learn_one_sum(P: Array, W: Array, gram: Array, cross: Array, constant: int, drift: float, largest: float) -> None:
    """Learn one record of which the sums are known, as `learn_sums` does, in the square of D instead of its cube.

    Its columns are those of the sums, for one column, whose number is given, is always 1.
    """
    weight = float(gram[constant, constant])
    phi = np.concatenate([gram[:constant, constant], gram[constant, constant:]]) / weight
    errors = cross[:, constant] / weight
    learn_soundly(P, W, phi, errors, weight, drift, largest, np.empty((2, len(phi))))


def coefficients_of_one(P: Array, constant: int, ridge: float) -> Array:
    """The coefficients that all records so far would have taught of a target that is always 1, float64 of shape (D,).

    They are those of ridge regression where nothing drifts, P sum w phi = e - rho P e by the column e that is always 1.

    - P: As `learn_sums` has it.
    - constant: The number of that column.
    - ridge: rho.
    """
    ones = -ridge * np.concatenate([P[constant, :constant], P[constant:, constant]])
    ones[constant] += 1
    return ones


@functools.cache
def _libraries() -> ThreadpoolController:
    return ThreadpoolController()


def _learn(P: Array, W: Array, gram: Array, cross: Array) -> None:
    """Learn the records, without drift."""
    L = _root(P)
    M = L.T @ whole(gram) @ L
    # What may have cancelled out in a sum of L^T G L, of which no term is larger than this.
    sizes = np.abs(L).T @ np.sqrt(gram.diagonal())
    rounding = _EPSILON * float(sizes @ sizes)
    if rounding < _EXACT:
        X = seen = np.linalg.solve(np.linalg.cholesky(np.eye(len(M)) + M), L.T)
    else:
        # Directions below the rounding are none that the records have.
        values, Q = np.linalg.eigh(M)
        X = (Q / np.sqrt(1 + np.maximum(values, 0.0))).T @ L.T
        seen = X[values > rounding]
    W += (cross @ seen.T) @ seen
    P[:] = np.tril(X.T @ X)


def _root(P: Array) -> Array:
    """L with L L^T = P, (D, D); of a P that rounding has left not quite positive, of its positive part."""
    try:
        return np.asarray(np.linalg.cholesky(P))
    except np.linalg.LinAlgError:
        values, Q = np.linalg.eigh(P)
        return np.asarray(Q * np.sqrt(np.maximum(values, 0.0)))
