"""Novelty detection: what is flagged, how well it ranks, and a threshold that is learned as the formulas say."""

import math

import numpy as np
import pytest
from river import anomaly, evaluate, metrics, optim
from sklearn.metrics import roc_auc_score

from streamkernel import KernelNoveltyDetector
from streamkernel.estimators.base import machine_of
from streamkernel.estimators.novelty import PATIENCE
from streamkernel.growth import CDSG, DSG, UDSG, OneClassStep
from streamkernel.kernels import Gaussian
from streamkernel.losses import NoveltyHinge


def clusters(n, seed=1, share=0.05):
    """Three clusters in the plane and, for a share of the rows, what is anywhere; rows, and which are anywhere."""
    rng = np.random.default_rng(seed)
    X = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 5.0]])[rng.integers(0, 3, n)] + 0.6 * rng.normal(size=(n, 2))
    strange = rng.random(n) < share
    X[strange] = rng.uniform(-6, 10, (int(strange.sum()), 2))
    return X, strange


def dicts(X):
    return [dict(enumerate(row)) for row in X.tolist()]


@pytest.mark.parametrize(
    ("nu", "growth"), [(0.2, None), (0.1, DSG()), (0.1, UDSG()), (0.1, CDSG(cap=3.0)), (0.02, None)]
)
def test_the_share_flagged_is_nu_after_the_burn_in(nu, growth):
    model = KernelNoveltyDetector(nu=nu, growth=growth, max_features=1024, seed=1)
    X, _ = clusters(16_000)
    burn_in = 6000
    model.learn_many(X[:burn_in])
    flagged = np.array(model.advance(dicts(X[burn_in:])).predictions) > 0
    assert flagged.mean() == pytest.approx(nu, abs=0.01)


def test_it_learns_as_the_formulas_say():
    """f and tau of a plain twin: alpha += gamma phi where f < tau, tau += gamma (nu - the share that is below)."""
    nu, B = 0.3, 8
    model = KernelNoveltyDetector(
        nu=nu, kernel=Gaussian(1.0), growth=DSG(), batch_size=B, standardize=False, dtype="float64", seed=1
    )
    X, _ = clusters(25 * B)
    keys_model = KernelNoveltyDetector(kernel=Gaussian(1.0), standardize=False, dtype="float64", seed=1)
    keys_model.learn_many(X[:1])
    expansion, keys = machine_of(keys_model).expansion, machine_of(keys_model).inputs.columns.keys
    phi, alphas, tau, flagged = [], [], 0.0, 0
    for t in range(25):
        rows = X[t * B : (t + 1) * B]
        f = sum((expansion.features(k, rows, keys) @ alpha for k, alpha in zip(phi, alphas, strict=True)), np.zeros(B))
        model.learn_many(rows)
        below = f < tau
        flagged += int(below.sum())
        gamma = 1 / (nu * (t + 10 + 1 / nu))
        alphas = [alpha * (1 - gamma * nu) for alpha in alphas]
        if below.any():
            block = len(phi)
            phi.append(block)
            alphas.append(gamma * (expansion.features(block, rows, keys).T @ below) / B)
        tau += gamma * (nu - below.mean())
        assert model.threshold == pytest.approx(tau, abs=1e-9)
    assert model.n_blocks == len(phi) > 5
    assert model.n_flagged == flagged
    f = sum(expansion.features(k, X[:20], keys) @ alpha for k, alpha in zip(phi, alphas, strict=True))
    assert np.allclose(model.score_many(X[:20]), tau - f, atol=1e-9)


def test_records_before_the_bandwidth_is_fixed_are_learned_again():
    X, _ = clusters(900)
    model = KernelNoveltyDetector(batch_size=7, seed=1)
    scores = model.advance(dicts(X), ["anything"] * 900).predictions
    assert model.n_flagged >= sum(score > 0 for score in scores[200 : 900 - 900 % 7])


def test_rivers_filters_and_validation():
    """River's curve takes scores from 0 to 1, such as a filter's yes and no."""
    X, strange = clusters(3000)
    model = KernelNoveltyDetector(nu=0.05, seed=1)
    novelties = anomaly.QuantileFilter(model, q=0.95, protect_anomaly_detector=False)
    found = evaluate.progressive_val_score(
        list(zip(dicts(X), strange.tolist(), strict=True)), novelties, metrics.ROCAUC()
    )
    assert model.n_records == 3000
    twin = anomaly.QuantileFilter(KernelNoveltyDetector(nu=0.05, seed=1), q=0.95, protect_anomaly_detector=False)
    flagged = []
    for x in dicts(X):
        flagged.append(twin.classify(twin.score_one(x)))
        twin.learn_one(x)
    assert found.get() == pytest.approx(roc_auc_score(strange, flagged), abs=1e-6)
    # Flags at random have an AUC of 1/2 with a deviation of .009.
    assert np.mean(flagged) == pytest.approx(0.05, abs=0.01)
    assert found.get() > 0.5 + 20 * 0.009
    by_threshold = anomaly.ThresholdFilter(model, threshold=0)
    assert by_threshold.classify(by_threshold.score_one({0: 30.0, 1: -30.0}))
    assert not by_threshold.classify(by_threshold.score_one({0: 0.0, 1: 0.0}))


def test_contributions_add_up_to_the_score():
    X, _ = clusters(600)
    model = KernelNoveltyDetector(seed=1)
    model.learn_many(X)
    x = {0: 9.0, 1: 9.0}
    assert sum(model.explain_one(x).values()) == pytest.approx(model.score_one(x) - model.score_one({}), abs=1e-6)
    assert set(model.feature_importances_) == {"0", "1"}


@pytest.mark.parametrize("nu", [0, -0.1, 1.1, math.nan, math.inf, "a", True])
def test_nu_is_a_share(nu):
    for one in (KernelNoveltyDetector, NoveltyHinge, OneClassStep):
        with pytest.raises(ValueError, match=r"^nu must be in \(0, 1\].* got "):
            one(nu=nu)


def test_a_schedule_of_steps_is_used():
    model = KernelNoveltyDetector(step=optim.schedulers.Constant(0.05), kernel=Gaussian(1.0), batch_size=10, seed=1)
    assert model.gamma_0 == 0.05
    model.learn_many(clusters(10)[0])
    assert model.threshold == pytest.approx(0.05 * 0.1)


def test_a_filter_that_keeps_it_from_learning_is_warned_of():
    """All first scores are alike, so River's quantile filter flags, and by default does not learn, each record."""
    xs = dicts(clusters(PATIENCE + 100)[0])

    def learn(protected):
        model = anomaly.QuantileFilter(KernelNoveltyDetector(seed=1), q=0.95, protect_anomaly_detector=protected)
        for x in xs:
            model.learn_one(x)
        return model.anomaly_detector.n_records

    with pytest.warns(RuntimeWarning, match="protect_anomaly_detector=False") as told:
        n_learned = learn(protected=True)
    assert (len(told), n_learned < 100) == (1, True)
    assert learn(protected=False) == len(xs)
