"""Losses of many scores against their plain twins."""

import numpy as np
import pytest

from streamkernel.compute.score_losses import score_derivatives, score_losses
from streamkernel.compute.window_losses import LOGISTIC, SMOOTH_HINGE, SQUARED, SQUARED_HINGE
from tests import naive


@pytest.mark.parametrize("kind", [SQUARED, LOGISTIC, SMOOTH_HINGE, SQUARED_HINGE])
def test_they_are_those_of_each_score(kind):
    rng = np.random.default_rng(1)
    z, y = rng.normal(size=50) * 3, rng.choice([-1.0, 1.0], 50)
    out = np.empty(50)
    score_losses(kind, z, y, out)
    np.testing.assert_allclose(out, naive.score_losses(kind, z, y), rtol=1e-12)
    score_derivatives(kind, z, y, out)
    np.testing.assert_allclose(out, naive.score_derivatives(kind, z, y), rtol=1e-12)
