"""Twin of streamkernel/compute/mixture_linear.py."""

import numpy as np


def predict_linear(weights, x):
    return weights.T @ np.concatenate([[1.0], np.clip(x, -1e6, 1e6)])


def learn_linear(linear, squares, x, slopes, weight):
    """Weights and sums of squares after an AdaGrad step of .1, which moves no score by more than its slope."""
    inputs = np.concatenate([[1.0], np.clip(x, -1e6, 1e6)])
    gradient = np.outer(inputs, slopes)
    squares = squares + gradient**2
    step = 0.1 * weight * np.divide(gradient, np.sqrt(squares), out=np.zeros_like(gradient), where=squares > 0)
    moves = inputs @ step
    factors = np.minimum(np.divide(slopes, moves, out=np.zeros_like(moves), where=moves != 0), 1)
    return linear - factors * step, squares
