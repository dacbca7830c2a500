"""Models of each kind that have learned a few records."""

import functools

import numpy as np
import pytest

from streamkernel import (
    AdaptiveKernelClassifier,
    AdaptiveKernelRegressor,
    KernelClassifier,
    KernelLeastSquaresClassifier,
    KernelLeastSquaresRegressor,
    KernelMultiLabelClassifier,
    KernelMultiTargetRegressor,
    losses,
)

DEFAULTS = {
    KernelClassifier: {"loss": losses.Log(), "block_size": 4, "batch_size": 8, "seed": 1},
    AdaptiveKernelClassifier: {"n_features": 4, "buffer_size": 90, "seed": 1},
    AdaptiveKernelRegressor: {"n_features": 4, "buffer_size": 90, "seed": 1},
    KernelLeastSquaresClassifier: {"n_features": 4, "seed": 1},
    KernelLeastSquaresRegressor: {"n_features": 4, "seed": 1},
    KernelMultiTargetRegressor: {"block_size": 4, "batch_size": 8, "seed": 1},
    KernelMultiLabelClassifier: {"block_size": 4, "batch_size": 8, "seed": 1},
}


@functools.cache
def state_of(kind, n=150):
    """The state of a model that has learned so many records."""
    return learned(n, kind).__getstate__()


KINDS = pytest.mark.parametrize("kind", DEFAULTS)


def target_of(kind, y):
    """A boolean as a target of an estimator."""
    return {"p": y, "q": not y} if kind in (KernelMultiTargetRegressor, KernelMultiLabelClassifier) else y


def learned(n=150, kind=KernelClassifier, **given):
    model = kind(**{**DEFAULTS[kind], **given})
    rng = np.random.default_rng(0)
    xs = [{"a": v, "b": v * w, "c": "pqr"[i % 3]} for i, (v, w) in enumerate(rng.normal(size=(n, 2)))]
    model.advance(xs, [target_of(kind, bool(x["b"] > 0)) for x in xs])
    return model
