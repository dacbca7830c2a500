"""Twin of streamkernel/compute/mixture_linear.py."""

import numpy as np


def predict_linear(weights, x):
    return weights.T @ np.concatenate([[1.0], np.clip(x, -1e6, 1e6)])


def learn_linear(linear, squares, x, slopes, weight):
    """Weights and sums of squares after an AdaGrad step of .1."""
    slope = weight * np.outer(np.concatenate([[1.0], np.clip(x, -1e6, 1e6)]), slopes)
    squares = squares + slope**2
    return linear - 0.1 * np.divide(slope, np.sqrt(squares), out=np.zeros_like(slope), where=slope != 0), squares
