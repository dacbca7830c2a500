"""The watch over the mixture's losses: what it tells, and when."""

import numpy as np
import pytest

from streamkernel import AdaptiveKernelRegressor
from streamkernel.adaptive.change import BLOCK, DELAYS, Change
from streamkernel.compute.experts import count_loss
from streamkernel.state import from_bytes, to_bytes


def _told(losses, change=None, n_records=0):
    """The numbers of records after which the metric is to be learned, and from how many."""
    change, told = change or Change(), []
    for i, loss in enumerate(losses, n_records + 1):
        count_loss(change.block, loss)
        if i % BLOCK == 0 and (since := change.end_block(i)):
            told.append((i, since))
    return told


def _losses(*means, n=1_000, seed=0):
    rng = np.random.default_rng(seed)
    return np.concatenate([mean * rng.gamma(4, 0.25, n) for mean in means])


@pytest.mark.parametrize("seed", range(10))
def test_losses_that_double_are_told_of_at_once(seed):
    told = _told(_losses(1.0, 2.0, seed=seed))
    assert told == [(1_000 + BLOCK + delay, BLOCK + delay) for delay in DELAYS]


def test_losses_that_fall_are_no_change():
    assert _told(_losses(4.0, 2.0, 1.0, 0.1)) == []


def test_of_two_changes_the_last_counts():
    told = _told(np.concatenate([_losses(1.0), _losses(3.0, n=600), _losses(20.0)]))
    assert told == [(1_200, 200), (1_400, 400), (1_800, 200), (2_000, 400), (2_500, 900)]


def test_records_without_weight_make_no_block():
    change = Change()
    for end in range(BLOCK, 3_000, BLOCK):
        for loss in _losses(1.0 if end < 2_000 else 9.0, n=BLOCK // 2 - 1, seed=end):
            count_loss(change.block, loss)
        assert not change.end_block(end)


def test_the_metric_is_learned_again_when_the_stream_changes():
    """One input matters more, then another: the metric says so soon after."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(4_000, 5))
    more, less = np.where(np.arange(4_000) < 3_000, [[0], [1]], [[1], [0]])
    rows = np.arange(4_000)
    y = np.sin(2 * X[rows, more]) + 0.4 * np.sin(2 * X[rows, less])
    xs = [{f"x{j}": v for j, v in enumerate(row)} for row in X.tolist()]
    model = AdaptiveKernelRegressor(n_features=64, seed=1)
    for part, most in ((slice(0, 3_000), "x0"), (slice(3_000, 4_000), "x1")):
        model.advance(xs[part], y[part].tolist())
        assert max(model.feature_importances_, key=model.feature_importances_.get) == most


@pytest.mark.parametrize("at", [0, 1_100, 1_150, 1_700, 1_800, 2_200])
def test_changes_are_counted_and_told_at_their_record(at):
    losses = np.concatenate([_losses(1.0), _losses(3.0, n=600), _losses(20.0)])
    change, detected = Change(), []
    for i, loss in enumerate(losses, 1):
        count_loss(change.block, loss)
        if i % BLOCK == 0:
            change.end_block(i)
        if change.is_detected(i):
            detected.append(i)
        assert change.n_detected == len(detected)
        if i == at:
            again = Change()
            again.load_state(from_bytes(to_bytes(change.state())))
            assert (again.n_detected, again.is_detected(i)) == (change.n_detected, change.is_detected(i))
            change = again
    assert detected == [1_100, 1_700]


def test_a_state_without_a_count_tells_of_the_last_change():
    change = Change()
    _told(_losses(1.0, 2.0), change)
    assert change.n_detected == 1
    assert "n_drifts_detected" not in change.state()
    never = Change()
    never.load_state(Change().state())
    assert never.n_detected == 0
    for count in (0, -1, 1.5, "2", None):
        with pytest.raises(ValueError, match="n_drifts_detected"):
            Change().load_state({**change.state(), "n_drifts_detected": count})


def test_an_estimator_tells_of_a_drift_as_river_does():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(1_500, 2))
    flipped = np.where(np.arange(1_500) < 700, 1, -1)
    y = (np.sin(2 * X[:, 0]) * flipped).tolist()
    model = AdaptiveKernelRegressor(n_features=8, n_trees=0, seed=1)
    detected = []
    for x, target in zip(X.tolist(), y, strict=True):
        model.learn_one(dict(enumerate(x)), target)
        detected += [model.n_records] * model.drift_detected
        model.learn_one(dict(enumerate(x)), None)  # no update
        assert model.drift_detected == (detected[-1:] == [model.n_records])
    assert detected[:1] == [800]
    assert model.n_drifts_detected == len(detected)
    assert model.clone(include_attributes=True).n_drifts_detected == len(detected)
