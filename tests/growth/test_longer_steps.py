"""CDSG with a cap above 1, the algorithm as its paper prints it: each decision has the bits that it had at first."""

import hashlib

import numpy as np
import pytest

from streamkernel.growth import CDSG
from tests.growth.naive import context


@pytest.mark.parametrize(
    ("cap", "digest"),
    [
        (2, "4b893257dc92fb9220dfccd9ce7bdc69e0ead036addc3c56a07f5f56c9784f9c"),
        (7.5, "c71c41ffc79249e77bdf19269727bd0811d5d6059cc67b9161e8fee5c16e3835"),
    ],
)
def test_each_decision_has_the_bits_that_it_had(cap, digest):
    rng = np.random.default_rng(7)
    parts = []
    for n in range(400):
        K, n_blocks, gamma = int(rng.choice([1, 3, 10, 11, 40])), int(rng.integers(1, 30)), float(rng.uniform(0.05, 2))
        gbar = rng.normal(size=K) * 0.3
        beta = gamma * (rng.uniform(-0.5, 1.5, (n_blocks, 1)) * gbar + 0.1 * rng.normal(size=(n_blocks, K)))
        limits = rng.uniform(0.5, 3, n_blocks) * gamma
        terms = {"beta": beta, "mean_gradient": gbar, "gamma": gamma, "variance": 1e-3, "class_variance": 1e-4}
        update = CDSG(cap).choose(context(n_blocks=n_blocks, full=n % 2 == 0, limit=limits.__getitem__, **terms))
        parts.append(np.concatenate([[update.block], np.atleast_1d(update.size), [update.decay, update.margin]]))
    assert hashlib.sha256(np.concatenate(parts).tobytes()).hexdigest() == digest
