"""Sums over the learned rows of a batch, and the update of least squares by them."""

import functools
import threading
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import ClassVar, Self

import numpy as np
from threadpoolctl import ThreadpoolController

from streamkernel.compute.recursive import learn_soundly
from streamkernel.state import Array


@dataclass(frozen=True)
class Sums:
    """Sums over rows: each field is a number or an array. It adds up, or the largest one counts."""

    #: The fields whose largest value counts.
    largest: ClassVar[frozenset[str]] = frozenset()

    @classmethod
    def total(cls, parts: Sequence[Self]) -> Self:
        """Add up the sums over the rows of all parts, in this order; there is at least one part."""
        total = {field.name: getattr(parts[0], field.name) for field in fields(cls)}
        for part in parts[1:]:
            for name, value in total.items():
                other = getattr(part, name)
                total[name] = np.maximum(value, other) if name in cls.largest else value + other
        return cls(**total)

    def __add__(self, other: Self) -> Self:
        return type(self).total([self, other])


@dataclass(frozen=True)
class BlockSums(Sums):
    """What a step asks of the features phi_i of a block."""

    gradient: Array  #: sum_i w_i g_i phi_i^T, float64 of shape (K, D)
    gram: Array  #: sum_i w_i phi_i phi_i^T, float64 of shape (D, D), upper triangle; (0, 0) where it is not asked for
    squares: float  #: sum_i w_i |phi_i|^2
    weight: float  #: sum_i w_i


#: What is asked of no block.
NO_BLOCK = BlockSums(np.zeros((0, 0)), np.zeros((0, 0)), 0.0, 0.0)


@dataclass(frozen=True)
class GradientSums(Sums):
    """What a step asks of the gradients g_i of its records, with weights w_i."""

    largest: ClassVar[frozenset[str]] = frozenset({"gradient_norm", "weight"})

    n: int  #: The records
    gradient: Array  #: sum_i w_i g_i, float64 of shape (K,)
    n_pulling: int  #: Records with w_i g_i that is not 0
    gradient_norm: float  #: The largest |w_i g_i|
    weight: float  #: The largest w_i
    observed: Array  #: What an encoder of targets that learns from scores asks for
    slope: float
    block: BlockSums = NO_BLOCK  #: The sums of a block that was foreseen; else `NO_BLOCK`


@dataclass(frozen=True)
class LeastSquaresSums(Sums):
    """What a step of least squares asks of the columns phi_i of its records, with targets y_i and weights w_i."""

    n: int  #: The records
    n_counted: int  #: Rows with a weight above 0: all other sums are over them
    gram: Array  #: sum_i w_i phi_i phi_i^T, float64 of shape (D, D), upper triangle
    heads: Array  #: sum_i w_i (y_i - W phi_i) phi_i^T of each head, float64 of shape (H, K, D)
    linear: Array  #: The same of each linear expert, of the last L columns, (E, K, L)
    tried: Array  #: The losses of each expert by each of the settings there are, (J, S)


def whole(upper: Array) -> Array:
    """A symmetric matrix by its upper triangle."""
    return np.asarray(np.triu(upper) + np.triu(upper, 1).T)


_EPSILON = float(np.finfo(np.float64).eps)
#: Rounding of L^T G L up to which I + L^T G L is as good as exact.
_EXACT = 1e-3
#: Of a library's threads, whose number is the whole process's.
_one_thread = threading.Lock()


def learn_sums(P: Array, W: Array, gram: Array, cross: Array, drift: float, largest: float) -> None:
    """Learn records by their sums. Without drift, this equals learning them one by one, to rounding.

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
    """Learn one record by its sums, as `learn_sums` does, in D^2 operations instead of D^3.

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
    # What may have cancelled out in a sum of L^T G L: no term is larger than this.
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
