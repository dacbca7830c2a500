"""Small regressors and the records they learn."""

import numpy as np

from streamkernel import KernelRegressor
from streamkernel.kernels import Gaussian
from streamkernel.records.input_columns import key_of


def regressor(**given):
    return KernelRegressor(**{"block_size": 4, "batch_size": 4, "kernel": Gaussian(1.0), "seed": 1, **given})


def stream(n, d=2, seed=0):
    rng = np.random.default_rng(seed)
    return [{f"x{j}": float(v) for j, v in enumerate(row)} for row in rng.normal(size=(n, d))]


def learned(n=50, **given):
    model = regressor(**given)
    xs = stream(n)
    model.advance(xs, [x["x0"] for x in xs])
    return model


def keys_of(model):
    """The keys of its columns, in their order."""
    return [key_of(column) for column in model.__getstate__()["columns"]]
