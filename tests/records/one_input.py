"""Small models of one input, and the losses they may have."""

import numpy as np
from river.optim.losses import Absolute, Hinge, Huber, Squared

from streamkernel import KernelClassifier, KernelRegressor, losses
from streamkernel.kernels import Gaussian

TWO_SIDED = [losses.Log(), Hinge(), losses.SquaredHinge()]


NUMERIC = [None, Squared(), Absolute(), Huber(1.0), losses.EpsilonInsensitive(), losses.Quantile(0.8)]


def classifier(loss=None, **given):
    return KernelClassifier(
        **{"loss": loss, "kernel": Gaussian(0.5), "block_size": 8, "batch_size": 4, "seed": 1, **given}
    )


def regressor(loss=None, **given):
    return KernelRegressor(
        **{"loss": loss, "kernel": Gaussian(0.5), "block_size": 8, "batch_size": 4, "seed": 1, **given}
    )


def inputs(n, seed=0):
    return [{"a": float(v)} for v in np.random.default_rng(seed).normal(size=n)]
