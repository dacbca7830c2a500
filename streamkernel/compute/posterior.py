"""The posterior of a Gaussian process on features by recursive least squares: predict, then learn, in one pass."""

from typing import Any, NamedTuple

import numpy as np

from streamkernel.compute.jit import Array, jit
from streamkernel.compute.moments import MEAN, deviation, near, take_target
from streamkernel.compute.recursive import dot, downdate, symmetric_product

#: The columns of a prediction: the mean, the variance in units of the noise's, and the deviation of the targets before
#: and with this one.
PREDICTION, VARIANCE, UNIT, UNIT_WITH = range(4)
#: The places of the sums: what targets are less, and the squared norms of the columns learned, times their weights.
CENTER, INFORMATION = range(2)


class Posterior(NamedTuple):
    """The posterior of the coefficients of D columns.

    - P: (Phi^T Phi + rho I)^-1, float64 of shape (D, D), its lower triangle, without what is deferred.
    - W: The coefficients of the targets less their center, and those of targets that are all 1, which move the first
      ones when the center moves; float64 of shape (2, D).
    - deferred: What P is deferred, as `symmetric_product` has it, float64 of shape (D + 2,).
    - moments: Of the targets, float64 of shape (8,).
    - sums: float64 of shape (2,): `CENTER` and `INFORMATION`.
    - rho: The ridge: the noise's variance over the prior's.
    - drift: Added to the diagonal of P after each record.
    - centers: Whether targets are taken less their running mean, and far ones drawn in.
    """

    P: Array
    W: Array
    deferred: Array
    moments: Array
    sums: Array
    rho: float
    drift: float
    centers: bool


@jit
def _settled(posterior: Posterior, phi: Array, learns: bool, v: Array) -> Any:
    """Fill v with P phi, all deferred applied, and return phi^T P phi, at least what so much information leaves of it.

    The eigenvalues of Phi^T Phi are at most the sum of squared norms. Where rounding took P below what that leaves
    along phi, and phi is to be learned, P is given back what is missing: it stays positive along all that is learned,
    however much that is.
    """
    D = v.shape[0]
    symmetric_product(posterior.P, posterior.deferred, 1.0 / posterior.rho, phi, v)
    posterior.deferred[D] = posterior.deferred[D + 1] = 0.0
    norm = dot(phi, phi)
    left = dot(phi, v)
    # Half of it: copies of one record leave just so much.
    least = 0.5 * norm / (posterior.rho + posterior.sums[INFORMATION])
    if left < least:
        if learns:
            missing = (2.0 * least - left) / (norm * norm)
            downdate(posterior.P, phi, -missing, 1.0)
            for i in range(D):
                v[i] += missing * norm * phi[i]
        left = 2.0 * least
    return min(left, norm / posterior.rho)


@jit
def _recenter(posterior: Posterior, mean: float) -> None:
    """Take all targets less another center."""
    by = mean - posterior.sums[CENTER]
    for i in range(posterior.W.shape[1]):
        posterior.W[0, i] -= by * posterior.W[1, i]
    posterior.sums[CENTER] = mean


@jit
def _forget(posterior: Posterior) -> None:
    """Begin with the prior again: all targets before are of another size, which no sum with them would be rid of."""
    D = posterior.P.shape[0]
    for i in range(D):
        for j in range(D):
            posterior.P[i, j] = 0.0
        posterior.P[i, i] = 1.0 / posterior.rho
    posterior.W[:] = 0.0
    posterior.sums[:] = 0.0


@jit
def _learn(posterior: Posterior, phi: Array, y: float, weight: float, left: float, v: Array) -> None:
    """One record, given v = P phi and phi^T v."""
    D = v.shape[0]
    norm = dot(phi, phi)
    nearer = near(posterior.moments, y) if posterior.centers else y
    is_new = take_target(posterior.moments, y)[1]
    if posterior.centers:
        if is_new:
            _forget(posterior)
            left = norm / posterior.rho
            for i in range(D):
                v[i] = phi[i] / posterior.rho
        _recenter(posterior, posterior.moments[MEAN])
    W, deferred = posterior.W, posterior.deferred
    gain = 1.0 / (1.0 / weight + left)
    of_target = gain * (nearer - posterior.sums[CENTER] - dot(W[0], phi))
    of_one = gain * (1.0 - dot(W[1], phi))
    for i in range(D):
        W[0, i] += of_target * v[i]
        W[1, i] += of_one * v[i]
        deferred[i] = v[i]
    deferred[D] = gain
    deferred[D + 1] = posterior.drift
    posterior.sums[INFORMATION] += weight * norm


@jit
def pass_posterior(Phi: Array, targets: Array, weights: Array, posterior_parts: tuple[Any, ...], out: Array) -> None:
    """Predict, then learn, records one after the other.

    - Phi: Columns of the records, float64 of shape (n, D).
    - targets: float64 of shape (n,); NaN is predicted and changes nothing.
    - weights: float64 of shape (n,); a record of weight 0 changes nothing.
    - posterior_parts: A `Posterior`, as a plain tuple; updated.
    - out: Filled, float64 of shape (n, 4): `PREDICTION`, `VARIANCE`, `UNIT` and `UNIT_WITH`. Before two targets differ,
      `UNIT` is 1 and `UNIT_WITH` is 0.
    """
    posterior = Posterior(*posterior_parts)
    v = np.empty(Phi.shape[1])
    for r in range(Phi.shape[0]):
        phi = Phi[r]
        learns = weights[r] > 0 and not np.isnan(targets[r])
        left = _settled(posterior, phi, learns, v)
        unit = deviation(posterior.moments)
        out[r, PREDICTION] = posterior.sums[CENTER] + dot(posterior.W[0], phi)
        out[r, VARIANCE] = left
        out[r, UNIT] = unit if unit > 0 else 1.0
        if learns:
            _learn(posterior, phi, targets[r], weights[r], left, v)
        out[r, UNIT_WITH] = deviation(posterior.moments)
