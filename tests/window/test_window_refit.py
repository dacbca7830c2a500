"""The refit of a growing model on its last records: cuts of the stream, and what it refuses."""

import numpy as np
import pytest
from river import base, tree
from river.optim import losses as river_losses

from streamkernel import (
    AdaptiveKernelClassifier,
    KernelClassifier,
    KernelNoveltyDetector,
    KernelRegressor,
    WindowRefit,
    losses,
)
from streamkernel.estimators.base import machine_of
from streamkernel.kernels import Gaussian
from streamkernel.window import DSPDC, S3GD, Exact

HUBER = river_losses.Huber(1.0)


def stream(n, seed=3):
    """Numbers, a string, an input that comes late, values that are missing; three classes."""
    rng = np.random.default_rng(seed)
    xs = []
    for i, (a, b) in enumerate(rng.normal(size=(n, 2)).tolist()):
        x = {"a": a, "b": b, "text": "uvw"[i * i % 3]}
        if i % 7 == 0:
            del x["b"]
        if i > n // 2:
            x["late"] = a * b
        xs.append(x)
    return xs, [f"class {int(x['a'] > 0) + int(x.get('b', 0) > 0.5)}" for x in xs]


def learned(model, n=400):
    xs, ys = stream(n)
    model.advance(xs, [float(y[-1]) for y in ys] if isinstance(model.model, KernelRegressor) else ys)
    return model


def test_a_wrapper_is_what_its_model_is():
    classifier, regressor = WindowRefit(KernelClassifier()), WindowRefit(model=KernelRegressor())
    assert isinstance(classifier, WindowRefit)
    assert isinstance(regressor, WindowRefit)
    assert str(classifier) == "WindowRefit(KernelClassifier)"
    assert "model=KernelRegressor(" in repr(regressor)
    assert isinstance(classifier, base.MiniBatchClassifier)
    assert isinstance(regressor, base.MiniBatchRegressor)
    assert not isinstance(regressor, base.Classifier)
    binary = WindowRefit(KernelClassifier(loss=losses.Log()))
    assert classifier._multiclass
    assert not binary._multiclass


def test_the_figures_are_the_models_and_those_of_the_window():
    model = learned(WindowRefit(KernelClassifier(max_features=64, seed=1), window=150, every=100))
    inner = model.model
    assert model.n_features == inner.n_features == 64
    assert (model.n_records, model.n_steps) == (inner.n_records, inner.n_steps)
    assert model.classes == inner.classes
    assert len(model.classes) == 3
    assert model.input_names == inner.input_names
    assert model.feature_importances_ == inner.feature_importances_
    assert model.memory_bytes == inner.memory_bytes + machine_of(model).window.records.nbytes
    assert machine_of(model).window.records.nbytes >= 150 * 8 * len(model.input_names)
    assert set(model.explain_one({"a": 1.0, "b": 2.0})) == {"a", "b"}
    assert model.loss_of("x", {"x": 1.0}) == inner.loss_of("x", {"x": 1.0})


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: WindowRefit(tree.HoeffdingTreeClassifier()), "model must be a KernelClassifier or KernelRegressor"),
        (lambda: WindowRefit(AdaptiveKernelClassifier()), "model must be a KernelClassifier or KernelRegressor"),
        (lambda: WindowRefit(KernelNoveltyDetector()), "model must be a KernelClassifier or KernelRegressor"),
        (lambda: WindowRefit(KernelClassifier(loss=river_losses.Hinge())), "the loss Hinge is not smooth"),
        (lambda: WindowRefit(KernelRegressor(loss=losses.Quantile(0.5))), "the loss Quantile is not smooth"),
        (lambda: WindowRefit(KernelRegressor(loss=losses.EpsilonInsensitive())), "EpsilonInsensitive is not smooth"),
        (lambda: WindowRefit(KernelRegressor(loss=HUBER), solver=S3GD()), "S3GD does not support the loss Huber"),
        (lambda: WindowRefit(KernelClassifier(max_features=None)), "set max_features of the model"),
        (
            lambda: WindowRefit(KernelClassifier(max_features=8192), solver=Exact()),
            "max_features of the model to at most 4096",
        ),
        (
            lambda: WindowRefit(KernelClassifier(), solver=Exact(), max_bytes=10_000),
            "set max_features of the model to at most 17",
        ),
        (
            lambda: WindowRefit(KernelClassifier(), solver=Exact(), max_bytes=9),
            "max_bytes=9: set a larger max_bytes of the WindowRefit",
        ),
        (lambda: WindowRefit(KernelClassifier(), window=0), "window must be a whole number of at least 1"),
        (lambda: WindowRefit(KernelClassifier(), every=1.5), "every must be a whole number of at least 1"),
        (
            lambda: WindowRefit(KernelClassifier(), solver="Exact"),
            r"solver must be None or a LinearSolver such as streamkernel.window.Exact\(\)",
        ),
        (lambda: WindowRefit(KernelClassifier(), solver=Exact(l2=0.0)), "l2 must be a finite number above 0"),
    ],
)
def test_a_refusal_is_a_sentence(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make()


def test_there_is_no_refit_before_there_is_something_to_solve():
    model = WindowRefit(KernelClassifier(max_features=64, seed=1), window=500, every=30)
    assert not model.refit()
    xs, ys = stream(199)
    model.advance(xs, ys)  # the bandwidth is not fixed yet
    assert (model.n_refits, model.n_window) == (0, 199)
    assert not model.refit()
    model.advance(xs, ys)
    assert model.n_refits > 0
    one = WindowRefit(KernelClassifier(kernel=Gaussian(1.0), max_features=64, seed=1), window=500, every=30)
    one.advance(xs, ["only"] * len(xs))
    assert one.n_refits == 0
    weightless = WindowRefit(KernelRegressor(kernel=Gaussian(1.0), max_features=64, seed=1), window=500, every=30)
    weightless.advance(xs, [1.0] * len(xs), [0.0] * len(xs))
    assert weightless.n_refits == 0


@pytest.mark.parametrize("solver", [None, DSPDC(dual=50, primal=10_000), S3GD(batch=10**9, anchors=500, neighbors=50)])
def test_a_solver_updates_no_more_at_a_time_than_the_window_has(solver):
    model = learned(WindowRefit(KernelClassifier(kernel=Gaussian(1.0), seed=1), 30, 40, solver), n=130)
    assert (model.n_refits, model.n_refit_failures) == (3, 0)


def test_fewer_wide_records_are_kept():
    model = WindowRefit(
        KernelRegressor(max_features=8, block_size=8, seed=1), window=1000, every=10_000, max_bytes=8000
    )
    rng = np.random.default_rng(0)
    model.learn_many(rng.normal(size=(300, 10)), np.arange(300.0))
    assert (model.n_window, model.max_window) == (100, 100)
    assert machine_of(model).window.records.targets.tolist() == list(range(200, 300))
    model.learn_one(dict(enumerate(np.ones(20))), 1.0)
    assert (model.n_window, model.max_window) == (50, 50)
    assert machine_of(model).window.records.nbytes <= 8000 + 50 * 16
    model.learn_many(rng.normal(size=(300, 20)), np.arange(300.0))
    assert model.n_window == 50
