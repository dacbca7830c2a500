"""Several targets at once: one target is the single machine's to the bit, and K of them the algorithm's twin."""

import numpy as np
import pandas as pd
import pytest
from river.optim.losses import Huber, Squared
from river.optim.schedulers import Constant

from streamkernel import KernelMultiLabelClassifier, KernelMultiTargetRegressor, KernelRegressor
from streamkernel.estimators.base import machine_of
from streamkernel.finite import NotFiniteError
from streamkernel.growth import CDSG, DSG
from streamkernel.kernels import Gaussian
from streamkernel.records.several import SeveralNumbers
from tests.growth import naive


def _stream(n, seed=2):
    rng = np.random.default_rng(seed)
    xs = [{"a": a, "b": b, "c": c} for a, b, c in rng.normal(size=(n, 3)).tolist()]
    return xs, [{"sum": x["a"] + x["b"], "wave": 7 * np.sin(2 * x["c"]) + 30, "far": x["a"] ** 2} for x in xs]


@pytest.mark.parametrize(
    "given", [{"growth": CDSG()}, {"loss": Huber(0.3), "precondition": False}, {"growth": DSG(), "average": True}]
)
def test_one_number_is_learned_as_if_it_were_alone(given):
    xs, ys = _stream(420)
    several, alone = KernelMultiTargetRegressor(**given, seed=4), KernelRegressor(**given, seed=4)
    ours = several.advance(xs, [{"wave": y["wave"]} for y in ys])
    theirs = alone.advance(xs, [y["wave"] for y in ys])
    assert [y.get("wave", 0.0) for y in ours.predictions] == theirs.predictions
    assert ours.losses.tolist() == theirs.losses.tolist()
    assert machine_of(several).expansion.alpha.tobytes() == machine_of(alone).expansion.alpha.tobytes()


@pytest.mark.parametrize("curvature", [None, 2.0])
def test_several_numbers_are_the_algorithms_twin(curvature):
    """The papers' steps in plain loops, each target with a gradient of its own, 0 where it is missing."""
    xs, ys = _stream(96)
    ys = [{name: v for name, v in y.items() if (i + len(name)) % 5 or i < 1} for i, y in enumerate(ys)]
    model = KernelMultiTargetRegressor(
        kernel=Gaussian(1.5),
        growth=DSG(),
        block_size=4,
        batch_size=16,
        step=Constant(0.2),
        regularization=0.01,
        standardize=False,
        dtype="float64",
        precondition=curvature is not None,
        blocks_per_step=2,
        seed=3,
    )
    w = np.random.default_rng(1).uniform(0.5, 2, len(xs))
    model.advance(xs, ys, w)
    X = np.array([[x[name] for name in model.input_names] for x in xs])
    encoder = SeveralNumbers(Squared(), 9)
    Y = encoder.admit(encoder.prepare(ys)[0]).y

    def frequencies(block):
        return naive.frequencies(machine_of(model), block)

    def derivative(y, f):
        return np.where(np.isnan(y), 0.0, 2 * (f - y))

    *_, alphas = naive.by_mini_batches(X, Y, w, frequencies, lambda _: 0.2, 0.01, derivative, 16, 2, curvature)
    expected = naive.scores_of(alphas, X, frequencies)
    np.testing.assert_allclose(machine_of(model).predict(xs), expected, rtol=1e-8, atol=1e-10)


def test_a_target_that_is_missing_is_not_learned_and_one_that_comes_late_joins():
    xs, ys = _stream(300)
    model = KernelMultiTargetRegressor(regularization=0.0, standardize=False, seed=1)
    model.advance(xs[:256], [{**y, "wave": None} if i < 128 else y for i, y in enumerate(ys[:256])])
    assert model.targets == ["sum", "far", "wave"]
    before = model.predict_one(xs[0])
    model.learn_many(pd.DataFrame(xs[256:288]), pd.DataFrame(ys[256:288])[["sum", "far"]])
    after = model.predict_one(xs[0])
    assert (before["wave"], before["sum"]) != (0.0, after["sum"])
    assert before["wave"] == after["wave"]
    assert model.n_records == 288


def test_an_own_loss_that_fails_says_for_which_target():
    class Broken(Squared):
        def gradient(self, y_true, y_pred):
            return np.where(y_true > 1.5, np.nan, y_pred)

    model = KernelMultiTargetRegressor(loss=Broken(), batch_size=8, seed=1)
    ys = [{"a": 0.0, "b": float(i == 7)} for i in range(8)]
    with pytest.raises(NotFiniteError, match=r"the loss Broken gave nan in its method `gradient` for y_true 2\.64"):
        model.advance([{"x": float(i)} for i in range(8)], ys)


def test_targets_past_the_limit_warn_once_and_batch_steps_are_refused():
    model = KernelMultiLabelClassifier(max_labels=1, seed=1)
    with pytest.warns(RuntimeWarning, match="labels past max_labels are not learned, counted in n_ignored_labels"):
        model.learn_one({"x": 1.0}, {"a": True, "b": False})
    model.learn_one({"x": 1.0}, {"b": False})
    assert (model.n_ignored_labels, model.labels, model.n_records) == (2, ["a"], 1)
    with pytest.raises(ValueError, match="takes no batch steps, because they take one target: call learn_many"):
        model.batch_step(np.ones((3, 1)), np.ones((3, 1)))
