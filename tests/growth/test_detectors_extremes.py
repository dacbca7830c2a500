"""Numbers of any magnitude, and any weights, leave novelty detectors and density ratios finite."""

import math
import random

import numpy as np
import pytest

from streamkernel import KernelDensityRatio, KernelNoveltyDetector
from streamkernel.kernels import Gaussian, Polynomial

FAR = [0.0, 5e-324, 1e-30, 1.0, -1.0, 1e30, -1e30, 1e150, 1e308, -1e308]


@pytest.mark.parametrize("kind", [KernelNoveltyDetector, KernelDensityRatio])
@pytest.mark.parametrize("kernel", [None, 1e6 * Gaussian(1.0), Polynomial(3)], ids=["default", "multiple", "unbounded"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_all_stays_finite(kind, kernel, dtype):
    rng = random.Random(1)
    xs = [{"a": rng.choice(FAR), "b": rng.choice([rng.choice(FAR), rng.gauss(0, 1)])} for _ in range(400)]
    samples = [rng.choice("pq") for _ in xs]
    weights = [rng.choice([0.0, 1e-300, 1.0, 1e300]) for _ in xs]
    model = kind(kernel=kernel, dtype=dtype, batch_size=8, seed=1)
    result = model.advance(xs, samples, weights)
    assert np.isfinite(result.predictions).all()
    assert np.isfinite(result.losses).all()
    assert math.isfinite(model.threshold if kind is KernelNoveltyDetector else model.divergence)
    twin = kind(kernel=kernel, dtype=dtype, batch_size=8, seed=1)
    twin.__setstate__(model.__getstate__())
    assert twin.state_digest() == model.state_digest()
