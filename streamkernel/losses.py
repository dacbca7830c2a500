"""Loss functions that River lacks or whose vector forms cannot be used, and the constants of any loss.

Called, a loss returns the value of each record; `gradient` is its derivative by the score. Arguments are arrays:
`y_true` of shape (n,) with `y_pred` of shape (n,), except for `Softmax`, whose `y_pred` is (n, K) and whose `y_true`
holds column numbers. Labels of binary losses are 0 and 1, as in River.

Two attributes tell the growing machines about a loss: `curvature`, the Lipschitz constant L of its derivative, and
`gradient_bound`, a bound M of the derivative's norm, or None where there is none.
"""

import math
from typing import Any

import numpy as np
from river.optim import losses as river_losses
from river.optim.losses import BinaryLoss, MultiClassLoss, RegressionLoss
from scipy import special

from streamkernel.compute.softmax import softmax_rows
from streamkernel.representation import Component

__all__ = ["EpsilonInsensitive", "Log", "Quantile", "Softmax", "SquaredHinge", "curvature", "gradient_bound"]


class Log(Component, BinaryLoss):
    """Logistic loss log(1 + exp(-y u)) of a score u and y in {-1, +1}, which overflows for no score.

    Examples
    --------
    >>> from streamkernel.losses import Log
    >>> round(float(Log()(True, 0.0)), 4), float(Log()(True, -1000.0))
    (0.6931, 1000.0)

    """

    curvature = 0.25
    gradient_bound = 1.0

    def __call__(self, y_true: Any, y_pred: Any) -> Any:
        return np.logaddexp(0.0, -_signed(y_true) * y_pred)

    def gradient(self, y_true: Any, y_pred: Any) -> Any:
        sign = _signed(y_true)
        return -sign * special.expit(-sign * y_pred)


class SquaredHinge(Component, BinaryLoss):
    """Squared hinge loss 1/2 max(0, 1 - y u)^2 of a score u and y in {-1, +1}, that of an L2 support vector machine.

    Examples
    --------
    >>> from streamkernel.losses import SquaredHinge
    >>> float(SquaredHinge()(True, -1.0)), float(SquaredHinge().gradient(True, -1.0))
    (2.0, -2.0)

    References
    ----------
    [^1]: Chang et al., "Coordinate descent method for large-scale L2-loss linear support vector machines", 2008.

    """

    curvature = 1.0
    gradient_bound = None

    def __call__(self, y_true: Any, y_pred: Any) -> Any:
        return 0.5 * np.maximum(1.0 - _signed(y_true) * y_pred, 0.0) ** 2

    def gradient(self, y_true: Any, y_pred: Any) -> Any:
        sign = _signed(y_true)
        return -sign * np.maximum(1.0 - sign * y_pred, 0.0)


class Softmax(Component, MultiClassLoss):
    """Softmax cross-entropy -log softmax(u)_y of K scores u and the column y of the true class.

    Examples
    --------
    >>> import numpy as np
    >>> from streamkernel.losses import Softmax
    >>> Softmax()(np.array([1]), np.zeros((1, 4))).round(4)
    array([1.3863])

    """

    curvature = 0.5
    gradient_bound = float(np.sqrt(2.0))

    def __call__(self, y_true: Any, y_pred: Any) -> Any:
        rows = np.arange(len(y_pred))
        highest = y_pred.max(axis=1)
        return highest + np.log(np.exp(y_pred - highest[:, None]).sum(axis=1)) - y_pred[rows, y_true]

    def gradient(self, y_true: Any, y_pred: Any) -> Any:
        g = softmax(y_pred)
        g[np.arange(len(g)), y_true] -= 1.0
        return g


class EpsilonInsensitive(Component, RegressionLoss):
    """Epsilon-insensitive loss max(0, |u - y| - eps), that of support vector regression.

    Parameters
    ----------
    eps
        Half the width of the tube, in units of the standardised target. Defaults to 0.1.

    Raises
    ------
    ValueError
        `eps` is negative or not finite.

    Examples
    --------
    >>> from streamkernel.losses import EpsilonInsensitive
    >>> float(EpsilonInsensitive()(3.0, 3.0)), float(EpsilonInsensitive(eps=0.5)(3.0, 4.0))
    (0.0, 0.5)

    References
    ----------
    [^1]: Drucker et al., "Support vector regression machines", 1996.

    """

    curvature = 1.0
    gradient_bound = 1.0

    def __init__(self, eps: float = 0.1) -> None:
        if not (isinstance(eps, int | float | np.number) and 0 <= eps < math.inf):
            raise ValueError(f"eps must be a number from 0 up, got {eps!r}")
        self.eps = eps

    def __call__(self, y_true: Any, y_pred: Any) -> Any:
        return np.maximum(np.abs(y_pred - y_true) - self.eps, 0.0)

    def gradient(self, y_true: Any, y_pred: Any) -> Any:
        error = y_pred - y_true
        return np.where(np.abs(error) > self.eps, np.sign(error), 0.0)


class Quantile(Component, RegressionLoss):
    """Quantile (pinball) loss max(alpha (y - u), (alpha - 1) (y - u)), whose minimiser is the quantile `alpha`.

    Parameters
    ----------
    alpha
        The quantile, in (0, 1). Defaults to 0.5, the median.

    Raises
    ------
    ValueError
        `alpha` is not inside (0, 1).

    Examples
    --------
    >>> from streamkernel.losses import Quantile
    >>> round(float(Quantile(alpha=0.9)(1.0, 0.0)), 4), round(float(Quantile(alpha=0.9)(0.0, 1.0)), 4)
    (0.9, 0.1)

    References
    ----------
    [^1]: Koenker and Bassett, "Regression quantiles", 1978.

    """

    curvature = 1.0
    gradient_bound = 1.0

    def __init__(self, alpha: float = 0.5) -> None:
        if not (isinstance(alpha, int | float | np.number) and 0 < alpha < 1):
            raise ValueError(f"alpha must be inside (0, 1), got {alpha!r}")
        self.alpha = alpha

    def __call__(self, y_true: Any, y_pred: Any) -> Any:
        error = y_true - y_pred
        return np.maximum(self.alpha * error, (self.alpha - 1.0) * error)

    def gradient(self, y_true: Any, y_pred: Any) -> Any:
        return np.where(y_pred < y_true, -self.alpha, 1.0 - self.alpha)


def curvature(loss: Any) -> float:
    """The Lipschitz constant L of a loss's derivative, which the first step size gamma_0 needs; 1 where it has none."""
    if isinstance(loss, river_losses.Squared):
        return 2.0
    return float(getattr(loss, "curvature", 1.0))


def gradient_bound(loss: Any) -> float | None:
    """The bound M of the norm of a loss's derivative, which inequality (9) needs; None where there is none.

    Without a bound, M is followed on the stream, and the loss curves up for ever, so that a reused block's step must
    also stay below 1 / (L lambda_max) of its features.
    """
    if isinstance(loss, river_losses.Huber):
        return float(loss.epsilon)
    if isinstance(loss, river_losses.Hinge | river_losses.Absolute):
        return 1.0
    bound: float | None = getattr(loss, "gradient_bound", None)
    return bound


def is_smooth(loss: Any) -> bool:
    """Whether a loss is known to have a Lipschitz derivative, so that a quadratic of curvature L bounds it.

    That is so for the squared and Huber's loss, and for any that tells its `curvature` but those of tubes and
    quantiles, which have one for the sake of gamma_0.
    """
    if isinstance(loss, EpsilonInsensitive | Quantile):
        return False
    return isinstance(loss, river_losses.Squared | river_losses.Huber) or hasattr(loss, "curvature")


#: River's losses that cannot be used as they are, the reason and the one to use instead.
UNUSABLE: dict[type, tuple[str, str]] = {
    river_losses.Log: ("its vector form overflows", "streamkernel.losses.Log()"),
    river_losses.Quantile: ("its value is the pinball of 1 - alpha", "streamkernel.losses.Quantile(alpha)"),
    river_losses.EpsilonInsensitiveHinge: (
        "it maps targets to 2 y - 1",
        "streamkernel.losses.EpsilonInsensitive(eps)",
    ),
    river_losses.CrossEntropy: ("it takes dicts", "streamkernel.losses.Softmax()"),
    river_losses.BinaryFocalLoss: ("its vector form overflows", "streamkernel.losses.Log()"),
    river_losses.Cauchy: ("its gradient is not that of its value", "river.optim.losses.Huber(epsilon)"),
    river_losses.Poisson: (
        "its scores are logarithms, and targets are standardised here",
        "river.optim.losses.Squared()",
    ),
}


def softmax(scores: Any) -> Any:
    """The softmax of each row of scores, float64 of shape (n, K)."""
    p = np.empty(scores.shape)
    softmax_rows(np.ascontiguousarray(scores, np.float64), p)
    return p


def _signed(y_true: Any) -> Any:
    """{0, 1} -> {-1.0, +1.0}."""
    return np.multiply(y_true, 2.0) - 1.0
