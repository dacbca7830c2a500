"""The mixture: Hedge on the experts' losses, and the temperatures of the heads that speak in scores."""

import math

import numpy as np
import pytest

from streamkernel.adaptive.target_experts import LabelExperts, NumberExperts
from streamkernel.compute.experts import (
    hedge_weights,
)
from tests.adaptive.experts import learn, make_experts

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
        hedge_weights(losses, np.ones(N), 1.0, weights)
        assert weights.sum() == pytest.approx(1)
        label = rng.choice(3, p=[0.8, 0.1, 0.1])
        said = 0.999 * p[:, label] + 0.001 / 3
        total -= math.log(weights @ said)
        losses -= np.log(said)
    assert total - losses.min() <= math.log(N) + 1e-9
    assert total == pytest.approx(losses.min() - math.log(np.mean(np.exp(losses.min() - losses))), abs=1e-8)


HEADS = ["head, drift 0", "head, drift 0.001", "head, drift 0.03"]
LINEAR = ["linear 0", "linear 1"]
ASINH = [f"asinh {name}" for name in HEADS]
LABEL_TREES = ["trees", "residual trees"]


@pytest.mark.parametrize("memory", [0, 20])
@pytest.mark.parametrize(
    ("kind", "n_trees", "n_linear", "trees_and_levels"),
    [
        (LabelExperts, 0, 2, ([], [])),
        (LabelExperts, 3, 2, (LABEL_TREES, [])),
        (LabelExperts, 3, None, (LABEL_TREES, [])),
        (NumberExperts, 0, 2, ([], ["level"])),
        (NumberExperts, 3, 2, (["residual trees"], ["level", "residual trees, level"])),
        (NumberExperts, 3, None, (["residual trees"], ["level", "residual trees, level"])),
    ],
)
def test_experts_begin_as_their_prior_is_and_the_weights_have_names(kind, n_trees, n_linear, trees_and_levels, memory):
    experts = make_experts(kind, 0.1, DRIFTS, n_trees, 40, memory)
    experts.begin(4, n_linear, 2, 2)
    trees, levels = trees_and_levels
    asked = list(kind.memory_experts) if memory else []
    asinh = ASINH if kind is NumberExperts else []
    names = [*HEADS, *(LINEAR if n_linear else []), *asinh, *trees, *asked, *levels]
    assert list(experts.weights) == names
    # Those of a memory for numbers are much alike, and six count as one; so do heads on the scale of asinh.
    alike = {**dict.fromkeys(asked, 6), **dict.fromkeys(ASINH, len(ASINH))} if kind is NumberExperts else {}
    prior = np.array([1 / alike.get(name, 1) for name in names])
    assert list(experts.weights.values()) == pytest.approx(list(prior / prior.sum()))


def _values(Phi):
    """The inputs of columns whose last three are the constant and two inputs."""
    return np.ascontiguousarray(Phi[:, 6:])


def _stream(n, seed=0):
    rng = np.random.default_rng(seed)
    Phi = rng.normal(size=(n, 8))
    Phi[:, 5] = 1.0
    return Phi, rng


@pytest.mark.parametrize("n_trees", [0, 3])
def test_numbers_in_other_units_get_the_same_weights(n_trees):
    Phi, rng = _stream(200, seed=3)
    y = np.sin(Phi[:, 0]) + Phi[:, 6] + rng.normal(size=200)
    weights, heads = [], []
    for unit, shift in ((1.0, 0.0), (1024.0, 0.0), (0.5, 0.0), (0.5, 4.0)):
        experts = make_experts(NumberExperts, 0.03, DRIFTS, n_trees, 40)
        experts.begin(8, 2, 1, 2)
        learn(experts, Phi[:1], _values(Phi[:1]), y[:1] * unit + shift, np.ones(1))
        # The very first loss knows no unit yet, nor do level and trees know that the target was no error.
        experts.losses[:] = experts.levels[:] = 0.0
        experts.forest.begin(2, 1)
        said = learn(experts, Phi[1:], _values(Phi[1:]), y[1:] * unit + shift, np.ones(199))
        weights.append([*experts.weights.values(), *((said[-5:, 0] - shift) / unit)])
        heads.append(experts.heads.W)
    assert np.allclose(weights[0], weights[1], rtol=1e-9)
    # The second loss is measured in variance 1 as well, until two targets differ.
    assert np.allclose(weights[0], weights[2], rtol=0.05)
    # Another 0 is another scale of asinh, which is not what the others learn.
    assert np.allclose(heads[0], heads[2], rtol=1e-6)
    assert np.allclose(heads[0][:, 0], heads[3][:, 0], rtol=1e-6)
    assert not np.allclose(heads[0][:, 1], heads[3][:, 1], rtol=0.05)


@pytest.mark.parametrize("n_trees", [0, 3])
def test_the_deviation_is_that_of_the_last_errors(n_trees):
    Phi, rng = _stream(3_000, seed=5)
    y = Phi[:, 6] * 3 + rng.normal(size=3_000) * np.where(np.arange(3_000) < 1_500, 0.5, 2.0)
    experts = make_experts(NumberExperts, 0.03, DRIFTS, n_trees, 40)
    experts.begin(8, 2, 1, 2)
    deviations = learn(experts, Phi, _values(Phi), y, np.ones(3_000))[:, 1]
    assert np.isnan(deviations[0])  # nothing is known yet: 0 would claim certainty
    assert deviations[1_000:1_500].mean() == pytest.approx(0.5, rel=0.15)
    assert deviations[2_500:].mean() == pytest.approx(2.0, rel=0.15)


def _box(values):
    return (values[:, 0] > 0.3) & (values[:, 1] < 0.5)


@pytest.mark.parametrize("kind", [LabelExperts, NumberExperts])
def test_where_a_box_decides_the_trees_are_heard(kind):
    """Heads that see but noise beside the inputs themselves cannot say it, and no neighbor is asked."""
    Phi, rng = _stream(1_500, seed=6)
    box, noise, errors = _box(_values(Phi)), 0.1 * rng.normal(size=1_500), []
    for n_trees in (0, 3):
        # One that drifts follows noise, which no tree sees.
        experts = make_experts(kind, 0.1, (0.0,), n_trees, 500, memory=0)
        experts.begin(8, 2, 2 if kind is LabelExperts else 1, 2)
        if kind is LabelExperts:
            said = learn(experts, Phi, _values(Phi), box.astype(np.int64), np.ones(1_500))
            errors.append(((said[:, 1] > 0.5) != box)[500:].mean())
        else:
            said = learn(experts, Phi, _values(Phi), 5 * box + noise, np.ones(1_500))
            errors.append(np.abs(said[:, 0] - 5 * box - noise)[500:].mean())
    weights = experts.weights
    assert sum(weight for name, weight in weights.items() if "trees" in name) > 0.98
    assert errors[1] < 0.3 * errors[0]
