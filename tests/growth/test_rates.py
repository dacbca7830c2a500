"""The rates of the growths in short: errors fall like 1 / steps where steps are gamma, and longer ones leave a bias.

`python -m benchmarks.growth_rates` measures them in full.
"""

import numpy as np
import pytest

from benchmarks.growth_rates import POINTS, Walk, best, measure
from streamkernel.estimators.base import machine_of
from streamkernel.growth import CDSG, DSG, UDSG

SIZE = 8
LOOKS = (128, 256, 512, 1_024)
SEEDS = range(200, 204)
#: The squared bias of a growth with none is that of its few runs.
UNBIASED = 2e-4


@pytest.fixture(scope="module")
def by_dsg():
    return measure(DSG(), SIZE, LOOKS, SEEDS)


def test_dsg_falls_like_1_over_steps(by_dsg):
    assert by_dsg.slope < -0.8
    assert by_dsg.biases[-1] < UNBIASED


@pytest.mark.parametrize("growth", [UDSG(), CDSG()], ids=repr)
def test_reused_blocks_fall_as_fast_as_new_ones(growth, by_dsg):
    rates = measure(growth, SIZE, LOOKS, SEEDS)
    assert rates.slope < -0.8
    assert rates.errors[-1] < 1.5 * by_dsg.errors[-1]
    assert rates.biases[-1] < UNBIASED
    assert rates.blocks < 0.85 * by_dsg.blocks


def test_steps_that_their_mini_batch_makes_longer_leave_a_bias(by_dsg):
    rates = measure(CDSG(cap=2), SIZE, LOOKS, SEEDS[:3])
    assert rates.slope > -0.5
    assert rates.errors[-1] > 5 * by_dsg.errors[-1]
    assert rates.biases[-1] > 15 * UNBIASED


@pytest.mark.parametrize("growth", [DSG(), UDSG(), CDSG(), CDSG(cap=2)], ids=repr)
def test_a_walk_takes_the_steps_of_a_model(growth):
    walk, twin = Walk(growth, SIZE, 3), Walk(growth, SIZE, 3)
    for _ in range(40):
        walk.step()
        index, y = twin.draw()
        twin.model.learn_many(POINTS[index, None], y)
    model, machine = twin.model, machine_of(twin.model)
    assert (walk.model.n_grown, walk.model.n_reused) == (model.n_grown, model.n_reused)
    np.testing.assert_allclose(walk.f, machine.predict([{0: x} for x in POINTS])[:, 0], rtol=0, atol=1e-12)
    assert np.abs(walk.f - best()).max() < 1


def test_the_best_function_is_the_least_of_its_neighbors():
    chances = 1 / (1 + np.exp(1.0 - 1.5 * np.sin(2 * POINTS)))
    K, f = np.exp(-((POINTS[:, None] - POINTS) ** 2) / 2), best()

    def objective(a):
        scores = K @ a
        losses = chances * np.logaddexp(0, -scores) + (1 - chances) * np.logaddexp(0, scores)
        return losses.mean() + 0.05 * a @ K @ a

    a = np.linalg.lstsq(K, f, rcond=None)[0]
    for direction in np.eye(16):
        assert objective(a) < min(objective(a + 0.01 * direction), objective(a - 0.01 * direction))
