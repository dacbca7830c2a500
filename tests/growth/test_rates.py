"""The rates of the growths in short: errors fall like 1 / steps where steps are gamma, and longer ones leave a bias.

`python -m benchmarks.growth_rates` measures them in full.
"""

import pytest

from benchmarks.growth_rates import measure
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
