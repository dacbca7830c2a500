"""The estimators' mixture: when it is the machine, and what asks for the machine of the papers instead."""

import numpy as np
import pytest

from streamkernel import KernelClassifier, KernelMultiTargetRegressor, KernelRegressor, WindowRefit
from streamkernel.compute.mixture_parts import NUMBERS, MixtureMap
from streamkernel.growth import CDSG, DSG
from streamkernel.kernels import Gaussian
from streamkernel.mixture.heads import MixtureHeads
from streamkernel.mixture.machine import MixtureMachine
from streamkernel.state import from_bytes, to_bytes

XS = [{"a": np.sin(i), "b": np.cos(3.0 * i)} for i in range(260)]
YS = [x["a"] * x["b"] for x in XS]
X = np.array([list(x.values()) for x in XS])


def is_mixture(model):
    return isinstance(model._machine, MixtureMachine)


@pytest.mark.parametrize(
    "given",
    [
        {"growth": CDSG()},
        {"growth": DSG()},
        {"kernel": Gaussian()},
        {"block_size": 8},
        {"batch_size": 8},
        {"precondition": True},
        {"average": True},
        {"dtype": "float64"},
        {"regularization": 0.1},
    ],
)
def test_an_argument_of_the_papers_machine_asks_for_it(given):
    assert is_mixture(KernelRegressor(max_features=64, seed=1))
    assert not is_mixture(KernelRegressor(max_features=64, seed=1, **given))


@pytest.mark.parametrize(("most", "n_features"), [(40, 40), (256, 256), (257, 256), (1000, 1000)])
def test_blocks_are_as_large_as_may_be(most, n_features):
    model = KernelRegressor(max_features=most, seed=1)
    for i in range(4000):
        model.learn_one({"a": np.sin(i), "b": np.cos(3.0 * i)}, 1e3 * (-1) ** i)
        if model.n_features == n_features:
            break
    assert model.n_features == n_features


def test_batch_steps_and_refits_are_of_the_papers_machine():
    model = KernelRegressor(seed=1)
    model.batch_step(X, YS)
    assert not is_mixture(model)
    assert model.n_steps == 1
    twin = KernelRegressor(seed=1)
    twin.__setstate__(from_bytes(to_bytes(model.__getstate__())))  # a model with the same arguments goes on with it
    assert not is_mixture(twin)
    assert twin.state_digest() == model.state_digest()
    assert not is_mixture(WindowRefit(KernelClassifier(max_features=64, seed=1), 100, 100).model)


@pytest.mark.parametrize("use", [lambda model: model.batch_step(X, YS), lambda model: WindowRefit(model, 100, 100)])
def test_a_mixture_that_has_learned_stays_one(use):
    model = KernelRegressor(max_features=64, seed=1)
    model.advance(XS[:10], YS[:10])
    before = model.state_digest()
    with pytest.raises(ValueError, match=r"needs the machine of the papers.*: give it growth="):
        use(model)
    assert model.state_digest() == before


def test_a_state_is_of_one_machine_or_the_other():
    mixture, papers = KernelRegressor(max_features=64, seed=1), KernelRegressor(max_features=64, growth=CDSG(), seed=1)
    for model in (mixture, papers):
        model.advance(XS, YS)
    for model, state in ((mixture.clone(), papers.__getstate__()), (papers.clone(), mixture.__getstate__())):
        with pytest.raises(ValueError, match="this state is from a model with "):
            model.__setstate__(state)


def test_the_figures_of_a_mixture():
    model = KernelRegressor(max_features=64, seed=1)
    assert (model.n_features, model.n_steps, model.gamma_0, model.expert_weights) == (0, 0, 0.0, {})
    for x, y in zip(XS, YS, strict=True):
        model.learn_one(x, y)
    assert (model.n_features, model.n_blocks, model.n_steps, model.last_batch_size) == (64, 1, 65, 4)
    assert model.n_grown + model.n_reused == 66
    weights = model.expert_weights
    assert sum(weights.values()) == pytest.approx(1)
    assert {"falling head", "fast head", "linear"} < set(weights)
    assert not hasattr(KernelRegressor(growth=CDSG(), seed=1), "expert_weights")


def test_a_mixture_grows_until_it_is_full():
    model = KernelRegressor(max_features=2048, seed=1)
    for start in range(0, 260, 20):
        model.advance(XS[start : start + 20], YS[start : start + 20])
    assert model.n_features == 2048
    unbounded = KernelRegressor(max_features=None, seed=1)
    unbounded.advance(XS, YS)
    assert unbounded.n_features > 2048
    assert unbounded.n_grown == unbounded.n_blocks


def test_single_records_are_learned_together_unseen():
    """Whoever asks, whatever was learned is known: the model learns plain records four at a time."""
    one, other = (KernelRegressor(max_features=64, seed=1) for _ in range(2))
    for i, (x, y) in enumerate(zip(XS, YS, strict=True)):
        one.learn_one(x, y)
        other.learn_one(x, y)
        assert one.n_records == i + 1
        if i % 3 == 0:
            assert one.predict_one(x) == pytest.approx(other.predict_one(x), abs=0)
        if i % 5 == 0:
            one.state_digest()
    assert one.state_digest() == other.state_digest()


def test_a_record_that_brings_an_input_is_predicted_alike_before_and_while_it_is_learned():
    """A new input has no coefficients yet; and no sum over the others changes its order."""
    model, other = (KernelClassifier(max_features=300, seed=1) for _ in range(2))
    for i, (x, y) in enumerate(zip(XS, YS, strict=True)):
        late = {f"late{i // 7}": 1.5 * i, "word": "abc"[i % 3]} if i > 3 else {}
        record = {**x, **late}
        before = model.predict_proba_one(record)
        assert other.advance([record], [y > 0]).probabilities == [before]
        model.learn_one(record, y > 0)


def test_a_first_step_does_not_overshoot():
    draws = np.random.default_rng(1)
    model = KernelRegressor(max_features=64, seed=1)
    shared = draws.normal(size=40)
    for own in shared:
        x = {str(j): own + 0.1 * noise for j, noise in enumerate(draws.normal(size=2000).tolist())}
        assert abs(model.predict_one(x)) < 5
        model.learn_one(x, own)


def errors_after(wild, weight=1.0):
    """Mean absolute errors on records 100 to 300 after some whose targets are far off, or that weigh much."""
    draws = np.random.default_rng(2)
    model = KernelRegressor(max_features=256, seed=1)
    X = draws.normal(size=(1400, 5))
    y = np.sin(2 * X[:, 0]) + X[:, 1]
    errors = []
    for i, (row, target) in enumerate(zip(X.tolist(), y.tolist(), strict=True)):
        x = dict(zip("abcde", row, strict=True))
        errors.append(abs(model.predict_one(x) - target))
        is_wild = 1000 <= i < 1000 + wild
        model.learn_one(x, -50 * target if is_wild else target, weight if is_wild else 1.0)
    return np.mean(errors[1100:1300]) / np.abs(y).mean()


def test_it_recovers_from_wild_targets():
    assert errors_after(wild=5) < 0.5
    assert errors_after(wild=1, weight=1e6) < 0.5


def test_a_target_is_learned_as_by_a_machine_of_its_own():
    """Where both have as many features: each target has gains of its own."""
    several = KernelMultiTargetRegressor(max_features=64, seed=1)
    own = {name: KernelRegressor(max_features=64, seed=1) for name in ("product", "a")}
    for x, y in zip(XS * 2, YS * 2, strict=True):
        targets = {"product": y, "a": 100 * x["a"]}
        several.learn_one(x, targets)
        for name, model in own.items():
            model.learn_one(x, targets[name])
        assert several.predict_one(x) == {name: model.predict_one(x) for name, model in own.items()}


def test_a_target_that_comes_late_has_the_mean_of_the_gains():
    rng = np.random.default_rng(1)
    heads = MixtureHeads(NUMBERS, 8, 1)
    heads.begin(3, 2)
    feature_map = MixtureMap(rng.normal(size=(1, 3, 8)).astype(np.float32), 1.0, 3, 0.5)
    rows = rng.normal(size=(150, 3)).astype(np.float32)
    heads.advance(rows, rng.normal(size=(150, 2)) + rows[:, :2], np.ones(150), feature_map)
    heads.add_outputs(4)
    state = heads.state()
    gains, window = state["gains"], state["window"]
    assert not np.array_equal(gains[0], gains[1])
    for target in (2, 3):
        assert np.array_equal(gains[target], gains[:2].mean(axis=0))
    for own, gram in zip(gains, state["gram"], strict=True):
        np.testing.assert_allclose(gram, window * own @ window.T, rtol=1e-5, atol=1e-5)
