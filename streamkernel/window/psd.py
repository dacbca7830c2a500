"""Projection onto the positive semi-definite matrices."""

from typing import Any

import numpy as np

__all__ = ["psd_factor", "psd_project"]

Array = np.ndarray[Any, np.dtype[Any]]


def psd_project(S: Array) -> Array:
    """The nearest positive semi-definite matrices, in the Frobenius norm.

    Each is a matrix times its transpose: symmetric to the last bit, with eigenvalues of at least 0 to rounding.

    Parameters
    ----------
    S
        Symmetric matrices of shape (k, d, d), of which the lower triangles are read.

    Returns
    -------
    float64 of shape (k, d, d).

    Raises
    ------
    numpy.linalg.LinAlgError
        A number is not finite.

    Examples
    --------
    >>> import numpy as np
    >>> psd_project(np.array([[[2.0, 0.0], [0.0, -3.0]]]))
    array([[[2., 0.],
            [0., 0.]]])

    """
    out = np.empty_like(S)
    for one, projected in zip(S, out, strict=True):
        L = psd_factor(one)
        np.matmul(L.T, L, out=projected)
    return out


def psd_factor(S: Array) -> Array:
    """L of shape (r, d) with L^T L = the projection of S, r the number of S's eigenvalues above 0.

    Examples
    --------
    >>> import numpy as np
    >>> psd_factor(np.array([[4.0, 0.0], [0.0, -3.0]])).shape
    (1, 2)

    """
    w, V = np.linalg.eigh(S)
    above = w > 0
    return np.ascontiguousarray((V[:, above] * np.sqrt(w[above])).T)
