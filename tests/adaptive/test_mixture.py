"""The mixture: Hedge on the experts' losses, and the temperatures of the heads that speak in scores."""

import math

import numpy as np
import pytest

from streamkernel.adaptive.experts import LabelExperts, NumberExperts
from streamkernel.compute.experts import (
    HIGHEST_LOG_TEMPERATURE,
    TEMPERATURE_CLIP,
    TEMPERATURE_STEP,
    hedge_weights,
    softmax_into,
    step_temperature,
)

DRIFTS = (0.0, 1e-3, 3e-2)


@pytest.mark.parametrize("N", [1, 2, 5, 30])
@pytest.mark.parametrize("spread", [0.05, 1.0, 20.0])
def test_undiscounted_log_loss_regret_is_at_most_ln_n(N, spread):
    """At eta = 1 the mixture is the Bayesian one, whose loss is exactly -ln mean_j exp(-loss_j)."""
    rng = np.random.default_rng(N)
    skill = rng.normal(size=N) * spread
    losses, weights, total = np.zeros(N), np.empty(N), 0.0
    for _ in range(400):
        scores = rng.normal(size=(N, 3)) * spread
        scores[:, 0] += skill
        p = np.exp(scores - scores.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        hedge_weights(losses, 1.0, weights)
        assert weights.sum() == pytest.approx(1)
        label = rng.choice(3, p=[0.8, 0.1, 0.1])
        said = 0.999 * p[:, label] + 0.001 / 3
        total -= math.log(weights @ said)
        losses -= np.log(said)
    assert total - losses.min() <= math.log(N) + 1e-9
    assert total == pytest.approx(losses.min() - math.log(np.mean(np.exp(losses.min() - losses))), abs=1e-8)


def _log_loss(log_temperature, scores, label):
    p = np.empty(len(scores))
    softmax_into(scores, math.exp(log_temperature), p)
    return -math.log(p[label]), p


@pytest.mark.parametrize("K", [2, 3, 12])
@pytest.mark.parametrize("log_temperature", [0.5, math.log(4), 3.5])
def test_the_temperature_follows_the_gradient_of_the_log_loss(K, log_temperature):
    rng = np.random.default_rng(K)
    plain = clipped = 0
    for _ in range(60):
        scores, label, h = rng.normal(size=K) * 0.3, int(rng.integers(K)), 1e-5
        up, down = (_log_loss(log_temperature + step, scores, label)[0] for step in (h, -h))
        slope = (up - down) / (2 * h)
        stepped = step_temperature(log_temperature, scores, _log_loss(log_temperature, scores, label)[1], label)
        expected = np.clip(slope, -TEMPERATURE_CLIP, TEMPERATURE_CLIP)
        expected = np.clip(log_temperature - TEMPERATURE_STEP * expected, 0, HIGHEST_LOG_TEMPERATURE)
        assert stepped == pytest.approx(expected, abs=1e-8)
        plain += abs(slope) < TEMPERATURE_CLIP
        clipped += abs(slope) > TEMPERATURE_CLIP
    assert plain >= 5
    assert clipped >= 5 or log_temperature < 3


@pytest.mark.parametrize(("label", "bound"), [(0, HIGHEST_LOG_TEMPERATURE), (1, 0.0)])
def test_the_temperature_stays_within_its_bounds(label, bound):
    """Scores that are always right ask for certainty, those always wrong for none."""
    log_temperature, scores = math.log(4), np.array([0.4, 0.0])
    for _ in range(4_000):
        log_temperature = step_temperature(log_temperature, scores, _log_loss(log_temperature, scores, label)[1], label)
        assert 0 <= log_temperature <= HIGHEST_LOG_TEMPERATURE
    if label:
        assert log_temperature == bound
    else:
        assert log_temperature > 2.5


def test_experts_begin_equal_and_the_weights_have_names():
    experts = LabelExperts(0.1, DRIFTS)
    experts.begin(4, 2, 2)
    assert set(experts.weights.values()) == {0.2}
    assert len(experts.weights) == 5
    experts.losses[:] = [3.0, 1.0, 2.0, 9.0, 9.0]
    weights = list(experts.weights.values())
    assert sum(weights) == pytest.approx(1)
    assert weights[1] == max(weights)
    assert weights[0] / weights[1] == pytest.approx(math.exp(-2))


def _stream(n, seed=0):
    rng = np.random.default_rng(seed)
    Phi = rng.normal(size=(n, 8))
    Phi[:, 5] = 1.0
    return Phi, rng


def test_where_the_stream_drifts_the_heads_that_drift_are_heard():
    Phi, rng = _stream(4_000)
    angle = np.arange(4_000) / 60
    turning = Phi[:, 0] * np.cos(angle) + Phi[:, 1] * np.sin(angle)
    still = Phi[:, 0] + Phi[:, 1] + rng.normal(size=4_000)
    for kind in (LabelExperts, NumberExperts):
        heard = []
        for y in (still, turning):
            experts = kind(0.1, DRIFTS)
            experts.begin(8, 2, 2 if kind is LabelExperts else 1)
            experts.learn(Phi, (y > 0).astype(np.int64) if kind is LabelExperts else y, np.ones(4_000))
            weights = list(experts.weights.values())
            heard.append(weights[0] < weights[2])
        assert heard == [False, True]


def test_where_the_inputs_themselves_tell_all_the_linear_experts_are_heard():
    Phi, _ = _stream(300, seed=1)
    Phi[:, :5] = np.random.default_rng(2).normal(size=(300, 5)) * 3  # nothing but noise for the heads
    y = Phi[:, 6] - Phi[:, 7]
    experts = LabelExperts(0.1, DRIFTS)
    experts.begin(8, 2, 2)
    said = experts.learn(Phi, (y > 0).astype(np.int64), np.ones(300))
    assert sum(list(experts.weights.values())[3:]) > 0.8
    assert ((said[100:, 1] > 0.5) == (y[100:] > 0)).mean() > 0.95


def test_numbers_in_other_units_get_the_same_weights():
    Phi, rng = _stream(200, seed=3)
    y = np.sin(Phi[:, 0]) + Phi[:, 6] + rng.normal(size=200)
    weights = []
    for unit, shift in ((1.0, 0.0), (1024.0, 0.0), (0.5, 4.0)):
        experts = NumberExperts(0.03, DRIFTS)
        experts.begin(8, 2, 1)
        experts.learn(Phi[:1], y[:1] * unit + shift, np.ones(1))
        experts.losses[:] = 0.0  # the very first loss knows no unit yet
        said = experts.learn(Phi[1:], y[1:] * unit + shift, np.ones(199))
        weights.append([*experts.weights.values(), *((said[-5:, 0] - shift) / unit)])
    assert np.allclose(weights[0], weights[1], rtol=1e-9)
    # The second loss is measured in variance 1 as well, until two targets differ.
    assert np.allclose(weights[0], weights[2], rtol=0.05)


def test_one_absurd_target_leaves_finite_losses():
    Phi, rng = _stream(300, seed=4)
    y = rng.normal(size=300)
    y[100] = 1e100
    experts = NumberExperts(0.03, DRIFTS)
    experts.begin(8, 2, 1)
    said = experts.learn(Phi, y, np.ones(300))
    assert np.isfinite(said).all()
    assert all(np.isfinite(part).all() for part in experts.record().values())


def test_the_deviation_is_that_of_the_last_errors():
    Phi, rng = _stream(3_000, seed=5)
    y = Phi[:, 6] * 3 + rng.normal(size=3_000) * np.where(np.arange(3_000) < 1_500, 0.5, 2.0)
    experts = NumberExperts(0.03, DRIFTS)
    experts.begin(8, 2, 1)
    deviations = experts.learn(Phi, y, np.ones(3_000))[:, 1]
    assert deviations[0] == 0
    assert deviations[1_000:1_500].mean() == pytest.approx(0.5, rel=0.15)
    assert deviations[2_500:].mean() == pytest.approx(2.0, rel=0.15)
