"""The preconditioner of a block: the step that a ridge regression on its features and one mini-batch would take.

Its matrix, of the smaller of features and records, comes from the mini-batch at hand and is never kept.
"""

import math

import numpy as np

from streamkernel.compute.cholesky import ridge_solution
from streamkernel.finite import NotFiniteError
from streamkernel.state import Array

#: A step of 1 solves the ridge regression; a longer one leaves the mini-batch's gradients with their signs changed.
LONGEST = 1.0
TOO_LARGE = "features are so large that a preconditioned step is not finite"
#: The first step of a mini-batch of one record. It grows as the root of their number: fewer are fitted too closely.
STEP_OF_ONE = 0.049
#: It is no longer than that, however large the mini-batch: of a loss with a bounded derivative, which curves less than
#: its bound almost everywhere, and of others.
LARGEST_OF_BOUNDED, LARGEST = 0.7, 0.3
#: Steps after which the step size has halved.
HALVING = 500


def preconditioned_step(batch_size: int, bounded: bool) -> float:
    """The first step size of the default rule, in steps that would solve the ridge regression.

    - batch_size: B, the records of a step.
    - bounded: Whether the loss has a bounded derivative.

    Examples
    --------
    >>> round(preconditioned_step(32, bounded=True), 3), preconditioned_step(2048, bounded=True)
    (0.277, 0.7)

    """
    return min(STEP_OF_ONE * math.sqrt(batch_size), LARGEST_OF_BOUNDED if bounded else LARGEST)


def preconditioned_gradient(phi: Array, g: Array, weights: Array, curvature: float) -> Array:
    """(Phi^T W Phi + r I)^-1 Phi^T W g / L: the ridge regression of the gradients on the features, over L.

    The ridge r is the mean squared norm of the features, which is k(x, x) in expectation.

    - phi: Features, shape (B, 2 F), float32 or float64.
    - g: Gradients of the loss at the records' scores, without weights, float64 of shape (B, K).
    - weights: W, the records' weights, shape (B,).
    - curvature: L, the Lipschitz constant of the loss's derivative.

    Returns float64 of shape (K, 2 F).
    NotFiniteError: The features are so large that their products are not finite.
    """
    P = phi * np.sqrt(weights)[:, None]
    out = np.empty((g.shape[1], phi.shape[1]))
    # By an infinite ridge the step would be 0, and the model would learn nothing without a word.
    if not ridge_solution(phi, P, np.ascontiguousarray(g), weights, ridge_of(P, weights), curvature, out):
        raise NotFiniteError(TOO_LARGE)
    return out


def ridge_of(P: Array, weights: Array) -> float:
    """The ridge of features times the roots of the records' weights, float64 of shape (B, D); 0 without a weight."""
    total = float(weights.sum())
    return float(np.einsum("ij,ij->", P, P)) / total if total else 0.0
