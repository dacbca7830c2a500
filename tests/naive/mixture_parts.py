"""Plain twins of `streamkernel.compute.mixture_parts`."""

import math

import numpy as np


def parts_of(C, T, L, n_blocks, room):
    return {
        "coefficients": (C, 5, room),
        "gains": (T, room),
        "linear": (C, 1 + L),
        "squares": (C, 1 + L),
        "window": (room // 256, 16, 256),
        "gram": (T, 16, 16),
        "targets": (16, T),
        "weights": (16,),
        "fitted": (3, 16, C),
        "moves": (2, 4, C),
        "losses": (T, 6),
        "beta": (n_blocks, C),
        "checks": (2,),
        "phi": (1 + T, 4, room),
    }


def any_known(target):
    return not np.isnan(target).all()


def loss_residuals(kind, f, target):
    """The derivatives of the losses over their Lipschitz constants, and the loss of each target."""
    if kind != "classes":
        p = 1 / (1 + np.exp(-2 * f))
        r = np.clip(f - target, -5, 5) if kind == "numbers" else 2 * (p - target)
        loss = r**2 if kind == "numbers" else -np.log(np.where(target > 0, p, 1 - p))
        return np.nan_to_num(r), np.where(np.isnan(target), np.nan, loss)
    p = np.exp(f - f.max()) / np.exp(f - f.max()).sum()
    return 2 * (p - np.eye(len(f))[int(target[0])]), np.array([-math.log(max(p[int(target[0])], 1e-6))])


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
