"""Twin of streamkernel/compute/mixture_losses.py."""

import math

import numpy as np


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
