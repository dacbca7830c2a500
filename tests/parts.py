"""The parts of a growing kernel machine, built from the state that `__getstate__` gives."""

import numpy as np

from streamkernel.expansion.expansion import Expansion
from streamkernel.kernels import Gaussian
from streamkernel.records.inputs import Inputs


def inputs_of(model):
    """Its inputs with their moments."""
    inputs = Inputs(model.max_inputs, standardize=model.standardize is not False)
    inputs.load_state(model.__getstate__())
    return inputs


def expansion_of(model):
    """Its random features and their coefficients."""
    expansion = Expansion(model.kernel or Gaussian(), model.block_size, np.dtype(model.dtype), 0, 0)
    expansion.load_state(model.__getstate__())
    return expansion


def scores_of(model, x):
    """f(x) of a record, shape (K,)."""
    inputs, expansion = inputs_of(model), expansion_of(model)
    rows = inputs.encode([x], [False])
    X = inputs.scaler.scale(rows, np.zeros(1, np.bool_), expansion.dtype)
    return expansion.scores(X, inputs.columns.keys, rows.extra_keys)[0]
