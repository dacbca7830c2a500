"""Loss functions that River lacks, or has without a usable vector form, and the constants of any loss.

A call of a loss returns the value for each record, and `gradient` returns its derivative by the score. Arguments are
arrays: `y_true` and `y_pred` of shape (n,). For `Softmax`, `y_pred` has shape (n, K) and `y_true` holds column numbers.
Labels of binary losses are 0 and 1, as in River.

The growing machines read two attributes of a loss: `curvature`, the Lipschitz constant L of its derivative, and
`gradient_bound`, a bound M of the derivative's norm, or None without one.
"""

from typing import Any

import numpy as np
from river import base
from river.optim import losses as river_losses
from river.optim.losses import BinaryLoss, MultiClassLoss, RegressionLoss
from scipy import special

from streamkernel.arguments import Representable, require_number
from streamkernel.compute.experts import softmax_rows

__all__ = [
    "EpsilonInsensitive",
    "KLDensityRatio",
    "Log",
    "NoveltyHinge",
    "Quantile",
    "Softmax",
    "SquaredHinge",
    "curvature",
    "gradient_bound",
]


#: exp of it, over the smallest share of a sample, is far from what overflows.
LARGEST_CLIP = 50.0


class Log(Representable, BinaryLoss):
    """Logistic loss log(1 + exp(-y u)) of a score u and y in {-1, +1}, safe from overflow.

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


class SquaredHinge(Representable, BinaryLoss):
    """Squared hinge loss 1/2 max(0, 1 - y u)^2 of a score u and y in {-1, +1}, for an L2 support vector machine.

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


class Softmax(Representable, MultiClassLoss):
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


class EpsilonInsensitive(Representable, RegressionLoss):
    """Epsilon-insensitive loss max(0, |u - y| - eps), for support vector regression.

    Parameters
    ----------
    eps
        Half the width of the tube, in units of the standardized target. Defaults to 0.1.

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
        require_number("eps", eps, "a number from 0 up", lambda eps: eps >= 0)
        self.eps = eps

    def __call__(self, y_true: Any, y_pred: Any) -> Any:
        return np.maximum(np.abs(y_pred - y_true) - self.eps, 0.0)

    def gradient(self, y_true: Any, y_pred: Any) -> Any:
        error = y_pred - y_true
        return np.where(np.abs(error) > self.eps, np.sign(error), 0.0)


class Quantile(Representable, RegressionLoss):
    """Quantile (pinball) loss max(alpha (y - u), (alpha - 1) (y - u)), minimized by the quantile `alpha`.

    Parameters
    ----------
    alpha
        The quantile, in (0, 1). Defaults to 0.5, the median.

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
        require_number("alpha", alpha, "inside (0, 1)", lambda alpha: 0 < alpha < 1)
        self.alpha = alpha

    def __call__(self, y_true: Any, y_pred: Any) -> Any:
        error = y_true - y_pred
        return np.maximum(self.alpha * error, (self.alpha - 1.0) * error)

    def gradient(self, y_true: Any, y_pred: Any) -> Any:
        return np.where(y_pred < y_true, -self.alpha, 1.0 - self.alpha)


class NoveltyHinge(Representable, base.Base):
    """One-class hinge loss max(0, tau - u) - nu tau of a score u and a threshold tau, for novelty detection.

    Parameters
    ----------
    nu
        The share of records with a score below the threshold, in (0, 1]. Defaults to 0.1.

    Examples
    --------
    >>> from streamkernel.losses import NoveltyHinge
    >>> loss = NoveltyHinge(nu=0.5)
    >>> float(loss(1.0, 0.0)), float(loss.gradient(1.0, 0.0)), float(loss.threshold_gradient(1.0, 0.0))
    (0.5, -1.0, 0.5)

    References
    ----------
    [^1]: Schoelkopf et al., "Estimating the support of a high-dimensional distribution", 2001.

    """

    gradient_bound = 1.0

    def __init__(self, nu: float = 0.1) -> None:
        require_number("nu", nu, "in (0, 1], the share of records to flag", lambda nu: 0 < nu <= 1)
        self.nu = nu

    def __call__(self, threshold: Any, y_pred: Any) -> Any:
        return np.maximum(threshold - y_pred, 0.0) - self.nu * threshold

    def gradient(self, threshold: Any, y_pred: Any) -> Any:
        return np.where(y_pred < threshold, -1.0, 0.0)

    def threshold_gradient(self, threshold: Any, y_pred: Any) -> Any:
        """Return the derivative by the threshold."""
        return np.where(y_pred < threshold, 1.0, 0.0) - self.nu


class KLDensityRatio(Representable, base.Base):
    """Loss of a log density ratio u = log p/q: -u for a record of p (`y_true` 1), exp(u) for one of q (`y_true` 0).

    The mean over both samples, E_q[exp u] - E_p[u], has its minimum 1 - KL(p, q) at u = log p/q. Beyond `clip`, records
    of p have no gradient, and exp(u) continues as its tangent.

    Parameters
    ----------
    clip
        The largest log ratio that the loss distinguishes, above 0. Defaults to 5.

    Examples
    --------
    >>> from streamkernel.losses import KLDensityRatio
    >>> loss = KLDensityRatio()
    >>> float(loss(1, 2.0)), float(loss(0, 0.0)), float(loss.gradient(0, 0.0))
    (-2.0, 1.0, 1.0)

    References
    ----------
    [^1]: Nguyen, Wainwright and Jordan, "Estimating divergence functionals and the likelihood ratio by convex risk
        minimization", 2010.

    """

    # That of exp(u) has no bound; this one holds up to a ratio of 10.
    curvature = 10.0
    gradient_bound = None

    def __init__(self, clip: float = 5.0) -> None:
        wanted = f"a number above 0, {LARGEST_CLIP:g} at most"
        require_number("clip", clip, wanted, lambda clip: 0 < clip <= LARGEST_CLIP)
        self.clip = clip

    def __call__(self, y_true: Any, y_pred: Any) -> Any:
        clipped = np.minimum(y_pred, self.clip)
        ratio = np.exp(clipped)
        return np.where(np.asarray(y_true, np.bool_), -clipped, ratio * (1.0 + (y_pred - clipped)))

    def gradient(self, y_true: Any, y_pred: Any) -> Any:
        asks = np.where(np.less(y_pred, self.clip), -1.0, 0.0)
        return np.where(np.asarray(y_true, np.bool_), asks, np.exp(np.minimum(y_pred, self.clip)))


def curvature(loss: Any) -> float:
    """Return the Lipschitz constant L of a loss's derivative, for the first step size gamma_0; 1 if there is none."""
    if isinstance(loss, river_losses.Squared):
        return 2.0
    return float(getattr(loss, "curvature", 1.0))


def gradient_bound(loss: Any) -> float | None:
    """Return the bound M of the norm of a loss's derivative, used in inequality (9); None if there is none.

    Without a bound, the model tracks M on the stream. A reused block's step must then also stay below 1 / (L
    lambda_max) of its features, because the loss keeps curving up.
    """
    if isinstance(loss, river_losses.Huber):
        return float(loss.epsilon)
    if isinstance(loss, river_losses.Hinge | river_losses.Absolute):
        return 1.0
    bound: float | None = getattr(loss, "gradient_bound", None)
    return bound


def is_smooth(loss: Any) -> bool:
    """Return whether a loss is known to have a Lipschitz derivative, so that a quadratic of curvature L bounds it.

    This holds for the squared and Huber's loss, and for any loss with a `curvature`. Tube and quantile losses are
    exceptions: they have a `curvature` only for gamma_0.
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
    river_losses.Cauchy: ("its gradient does not match its value", "river.optim.losses.Huber(epsilon)"),
    river_losses.Poisson: (
        "its scores are logarithms, and this estimator standardizes targets",
        "river.optim.losses.Squared()",
    ),
}


def softmax(scores: Any) -> Any:
    """Return the softmax of each row of scores, float64 of shape (n, K)."""
    p = np.empty(scores.shape)
    softmax_rows(np.ascontiguousarray(scores, np.float64), p)
    return p


def _signed(y_true: Any) -> Any:
    """{0, 1} -> {-1.0, +1.0}."""
    return np.multiply(y_true, 2.0) - 1.0
