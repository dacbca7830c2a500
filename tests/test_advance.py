"""One learning path: however a stream is cut into calls, state and predictions are the same, bit for bit."""

import math

import numpy as np
import pytest

from streamkernel import (
    KernelClassifier,
)
from streamkernel.kernels import Gaussian

pytestmark = pytest.mark.filterwarnings("ignore:inputs past max_inputs", "ignore:classes past max_classes")


def test_the_restart_begins_anew_at_the_two_hundredth_label():
    """As a fresh machine would have learned these records, had it known the bandwidth."""
    rng = np.random.default_rng(0)
    xs = [{"a": float(v), "b": float(w), "c": "uvw"[i % 3]} for i, (v, w) in enumerate(rng.normal(size=(230, 2)))]
    ys = [x["a"] * x["b"] > 0 for x in xs]
    model = KernelClassifier(seed=1, batch_size=16)
    model.advance(xs[:199], ys[:199])
    first = model.bandwidth
    model.advance([*xs[:5], xs[199]], [None] * 5 + [ys[199]])
    assert model.bandwidth != first
    assert model.bandwidth == pytest.approx(0.7 * math.sqrt(4), rel=0.5)
    model.advance(xs[200:], ys[200:])
    known = KernelClassifier(kernel=Gaussian(model.bandwidth), seed=1, batch_size=16)
    known.advance(xs, ys)
    fields = ("input_moments", "alpha", "scale", "beta", "t", "gamma_0", "n_grown", "n_reused", "batch_rows")
    for name in fields:
        assert np.array_equal(model.__getstate__()[name], known.__getstate__()[name]), name
    assert model.n_records == 230


def test_a_partial_mini_batch_is_never_flushed():
    model = KernelClassifier(seed=1, batch_size=10, kernel=Gaussian(1.0))
    xs = [{"a": float(i % 7)} for i in range(29)]
    steps = []
    for i, x in enumerate(xs):
        model.learn_one(x, i % 2)
        steps.append(model.n_steps)
    assert steps == [0] * 9 + [1] * 10 + [2] * 10


def test_a_result_shows_what_it_holds():
    result = KernelClassifier(seed=1).advance([{"a": 1.0}] * 2, ["x", "x"])
    expected = "AdvanceResult(predictions=[None, 'x'], probabilities=[{}, {'x': 1.0}], losses=array(["
    assert repr(result).startswith(expected)
    assert repr(result).endswith("deviations=None)")
