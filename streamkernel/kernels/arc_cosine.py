"""Arc-cosine kernels: infinitely wide layers of a neural net."""

import math

import numpy as np

from streamkernel.arguments import is_whole
from streamkernel.compute.gaussians import gaussians
from streamkernel.compute.random_features import LARGEST_FEATURE, project
from streamkernel.kernels.base import LARGEST_VALUE, Kernel, inner_products
from streamkernel.state import Array, excerpt


class ArcCosine(Kernel):
    """The arc-cosine kernel k(x, x') = |x|^n |x'|^n J_n(angle) / pi of an infinitely wide layer of a neural net.

    J_0 = pi - angle, J_1 = sin angle + (pi - angle) cos angle, J_2 = 3 sin angle cos angle + (pi - angle) (1 + 2 cos^2
    angle). A feature is a unit with random weights: a step (order 0), a rectifier (1) or its square (2). There is no
    bias. If the function depends on the distance along a direction, add an input that is always 1. Every function is 0
    at a record with all inputs 0.

    Parameters
    ----------
    order
        n: 0, 1 or 2. Defaults to 1.

    Examples
    --------
    >>> import numpy as np
    >>> from streamkernel.kernels import ArcCosine
    >>> ArcCosine(order=0).matrix(np.array([[2.0, 0.0]]), np.array([[0.0, 1.0], [3.0, 0.0]]), bandwidth=1.0)
    array([[0.5, 1. ]])

    References
    ----------
    [^1]: Cho and Saul, "Kernel methods for deep learning", 2009, section 2.

    """

    rows_at_once = True

    def __init__(self, order: int = 1) -> None:
        if not (is_whole(order) and order in (0, 1, 2)):
            raise ValueError(f"order must be 0, 1 or 2, got {excerpt(order)}")
        self.order = order
        self.kappa = 1.0 if order == 0 else None
        self.feature_bound = 2.0 if order == 0 else None

    def matrix(self, X: Array, Y: Array, bandwidth: float) -> Array:  # noqa: ARG002 - it has no length scale
        lengths = np.linalg.norm(np.asarray(X, np.float64), axis=1)[:, None] * np.linalg.norm(
            np.asarray(Y, np.float64), axis=1
        )
        products = inner_products(X, Y)
        cosine = np.clip(np.divide(products, lengths, out=np.zeros_like(products), where=lengths > 0), -1.0, 1.0)
        angle, sine = np.arccos(cosine), np.sqrt(1 - cosine * cosine)
        J = (
            math.pi - angle,
            sine + (math.pi - angle) * cosine,
            3 * sine * cosine + (math.pi - angle) * (1 + 2 * cosine * cosine),
        )[self.order]
        K = np.where(lengths > 0, lengths ** int(self.order) * J / math.pi, 0.0)
        return np.asarray(np.minimum(K, LARGEST_VALUE))

    def features(self, X: Array, words: Array, keys: Array, bandwidth: float, out: Array) -> None:  # noqa: ARG002
        W = np.empty((len(keys), len(words)), X.dtype)
        gaussians(words, keys, 1.0, W)
        project(X, W, out)
        root = out.dtype.type(math.sqrt(2))
        if self.order == 0:
            out[:] = np.where(out > 0, root, 0)
            return
        np.clip(out, 0, LARGEST_FEATURE ** (1 / self.order), out=out)
        if self.order == 2:
            out *= out
        out *= root
