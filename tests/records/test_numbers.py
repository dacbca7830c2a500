"""Numbers as targets: which are taken, how they are standardized, and what is predicted before."""

import datetime
import decimal
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from river.optim.losses import Squared

from streamkernel import KernelRegressor
from streamkernel.compute.moments import COUNT, MEAN, deviation
from streamkernel.records.targets import Numbers
from tests import naive
from tests.records.one_input import NUMERIC, inputs, regressor


@given(st.lists(st.one_of(st.none(), st.floats(-1e6, 1e6)), min_size=1, max_size=40))
def test_target_moments(targets):
    model = regressor()
    model.advance(inputs(len(targets)), targets)
    twin = naive.Moments(naive.TARGETS)
    naive.standardize([y for y in targets if y is not None], twin)
    moments = model.__getstate__()["target_moments"]
    assert moments[COUNT] == len(twin)
    assert moments[MEAN] == pytest.approx(twin.mean, abs=1e-6)
    assert deviation(moments) == pytest.approx(twin.deviation, abs=1e-6 + 1e-6)


def test_predictions_use_the_moments_before_and_training_those_after():
    targets = [5.0, 9.0, 1.0, None, 4.0]
    encoded = Numbers(Squared()).admit(targets)
    before = [[], [5.0], [5.0, 9.0], [5.0, 9.0, 1.0], [5.0, 9.0, 1.0]]
    assert np.allclose(encoded.means, [np.mean(b) if b else 0 for b in before])
    assert np.allclose(encoded.deviations, [np.std(b) if b else 0 for b in before])
    after = [[5.0], [5.0, 9.0], [5.0, 9.0, 1.0], [5.0, 9.0, 1.0, 4.0]]
    expected = [(b[-1] - np.mean(b)) / (np.std(b) or 1) for b in after]
    assert np.allclose(encoded.y[[0, 1, 2, 4]], expected)
    assert math.isnan(encoded.y[3])


@pytest.mark.parametrize("loss", NUMERIC, ids=lambda loss: type(loss).__name__)
def test_regressors_learn_in_the_targets_own_units(loss):
    xs = inputs(1500)
    targets = [1e4 + 500 * math.sin(2 * x["a"]) for x in xs]
    model = KernelRegressor(loss=loss, seed=1)
    outcome = model.advance(xs, targets)
    errors = np.abs(np.array(outcome.predictions) - targets)[750:]
    spread = np.abs(np.array(targets) - np.mean(targets)).mean()
    assert errors.mean() < 0.75 * spread


@pytest.mark.parametrize("n", [1, 50])
def test_a_constant_target_is_predicted_and_leaves_no_error(n):
    model = regressor()
    outcome = model.advance(inputs(n), [7.0] * n)
    assert outcome.losses.tolist() == [0.0] * n
    assert model.predict_one({"a": 3.0}) == pytest.approx(7.0)


def test_what_is_no_finite_number_is_refused_and_changes_nothing(subtests):
    for target in [
        math.nan,
        math.inf,
        -math.inf,
        10**400,
        np.float32("inf"),
        decimal.Decimal("nan"),
        decimal.Decimal("1e400"),
        pd.NA,
        "1.5",
        np.str_("1.5"),
        b"1",
        1j,
        np.complex64(1),
        [1.0],
        datetime.datetime(2020, 1, 1),
        np.datetime64("2020-01-01", "ns"),
        np.timedelta64(3, "ns"),
    ]:
        with subtests.test(target=target):
            model = regressor()
            model.advance(inputs(6), [float(i) for i in range(6)])
            before = model.state_digest()
            for targets in ([1.0, target, 2.0], [None, target, None]):
                with pytest.raises(ValueError, match=r"^the target .* not a finite number"):
                    model.advance([{"a": 1.0}, {"new": 1.0}, {"a": 2.0}], targets)
                assert model.state_digest() == before
