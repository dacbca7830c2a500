"""River's own checks, one test each and none skipped."""

import functools
import inspect
import itertools
import random
from unittest import mock

import pandas as pd
import pytest
from river import (
    base,
    checks,
    compose,
    datasets,
    optim,
    preprocessing,
    stream,
)

from streamkernel import (
    AdaptiveKernelClassifier,
    AdaptiveKernelRegressor,
    GaussianProcessRegressor,
    KernelClassifier,
    KernelDensityRatio,
    KernelLeastSquaresClassifier,
    KernelLeastSquaresRegressor,
    KernelNoveltyDetector,
    KernelRegressor,
    losses,
)
from streamkernel.gaussian_process import TestPointFunctions, VarianceOperator
from streamkernel.growth import CDSG, DSG, UDSG
from streamkernel.kernels import Gaussian, Matern

CLASSIFIERS = [
    KernelClassifier(),
    KernelClassifier(loss=losses.Log(), growth=DSG(), batch_size=3, max_features=128, seed=1),
    KernelClassifier(loss=optim.losses.Hinge(), growth=UDSG(grow=1, reuse=2), dtype="float64", seed=1),
    KernelClassifier(loss=losses.SquaredHinge(), growth=CDSG(cap=3.0), kernel=Gaussian(2.0), seed=1),
    KernelClassifier(precondition=False, average=True, batch_size=5, seed=1),
    KernelClassifier(loss=losses.Log(), growth=DSG(), blocks_per_step=3, average=True, batch_size=16, seed=1),
    AdaptiveKernelClassifier(),
    AdaptiveKernelClassifier(n_features=3, drift_rates=(0.1,), metric_schedule=None, kernel=Gaussian(2.0), seed=1),
    AdaptiveKernelClassifier(n_features=16, metric_schedule=(5, 6, 50), buffer_size=7, standardize=False, seed=1),
    AdaptiveKernelClassifier(n_features=16, lags=1, seed=1),
    KernelLeastSquaresClassifier(),
    KernelLeastSquaresClassifier(Gaussian(2.0), n_features=3, drift_rates=(0.1,), standardize=False, seed=1),
]


REGRESSORS = [
    KernelRegressor(),
    KernelRegressor(loss=optim.losses.Huber(epsilon=1.0), growth=UDSG(), dtype="float64", standardize=False, seed=1),
    KernelRegressor(loss=losses.EpsilonInsensitive(), kernel=Gaussian(3.0), growth=DSG(), cache_bytes=0, seed=1),
    KernelRegressor(loss=optim.losses.Absolute(), step=optim.schedulers.InverseScaling(0.3, 0.5), seed=1),
    KernelRegressor(loss=losses.Quantile(alpha=0.9), block_size=1, batch_size=5, max_features=64, seed=1),
    KernelRegressor(precondition=False, blocks_per_step=2, seed=1),
    KernelRegressor(growth=UDSG(), average=True, block_size=4, batch_size=3, dtype="float64", seed=1),
    AdaptiveKernelRegressor(),
    AdaptiveKernelRegressor(n_features=3, drift_rates=(0.1,), metric_schedule=None, kernel=Gaussian(2.0), seed=1),
    AdaptiveKernelRegressor(n_features=16, metric_schedule=(5, 6, 50), buffer_size=7, standardize=False, seed=1),
    AdaptiveKernelRegressor(n_features=16, lags=3, seed=1),
    AdaptiveKernelRegressor(n_features=16, lags=2, n_trees=0, standardize=False, seed=1),
    GaussianProcessRegressor(n_features=32),
    GaussianProcessRegressor(Matern() + Gaussian(2.0), 0.5, 8, None, False, True, 1e-3, False, False, seed=1),
    GaussianProcessRegressor(n_features=8, variance=VarianceOperator(8, 4, 16), seed=1),
    GaussianProcessRegressor(n_features=8, variance=TestPointFunctions([{"x": 1.0}, {}], 8, 4, 16), seed=1),
    KernelLeastSquaresRegressor(),
    KernelLeastSquaresRegressor(Matern(), n_features=3, drift_rates=(0.1,), standardize=False, seed=1),
]


DETECTORS = [
    KernelNoveltyDetector(),
    KernelNoveltyDetector(nu=0.02, growth=UDSG(), batch_size=5, dtype="float64", seed=1),
]


RATIOS = [
    KernelDensityRatio(p=True, q=False),
    KernelDensityRatio(p=1, q=0, growth=UDSG(), precondition=False, average=True, batch_size=5, seed=1),
]


SCALED = [
    KernelClassifier(seed=1),
    KernelRegressor(seed=1),
    AdaptiveKernelClassifier(n_features=16, seed=1),
    AdaptiveKernelRegressor(n_features=16, seed=1),
    GaussianProcessRegressor(n_features=16, seed=1),
    KernelLeastSquaresRegressor(n_features=16, seed=1),
]


def _checked(models):
    """(a model, a check of River's) pairs with readable names."""
    for number, model in enumerate(models):
        for index, check in enumerate(checks.yield_checks(model)):
            inner = model.steps["model"] if isinstance(model, compose.Pipeline) else model
            loss = f"-{type(inner.loss).__name__}" if getattr(inner, "loss", None) else ""
            yield pytest.param(model, check, id=f"{number}-{type(inner).__name__}{loss}-{index}-{check.__name__}")


@pytest.mark.parametrize(("model", "check"), [*_checked(CLASSIFIERS + REGRESSORS)])
def test_check(model, check):
    check(model.clone())


def _card_payments():
    """Records in place of those of `datasets.CreditCard`, which River downloads: 1 in 20 is unlike the others."""
    rng = random.Random(1)
    for i in range(400):
        strange = i % 20 == 19
        yield {f"V{j}": rng.gauss(4 * strange, 1) for j in range(8)}, int(strange)


def _checked_detectors():
    class CreditCard:
        def take(self, n):
            return list(itertools.islice(_card_payments(), n))

    with mock.patch.object(datasets, "CreditCard", CreditCard):
        return list(_checked(DETECTORS))


@pytest.mark.parametrize(("model", "check"), _checked_detectors())
def test_check_of_detectors(model, check):
    check(model.clone())


def _checks_of_ratios():
    """The checks that River has for any estimator, and those of records, which it has for the kinds that it knows."""
    known = checks.yield_checks(KernelRegressor())
    on_records = {check.__name__: check for check in known if isinstance(check, functools.partial)}
    generic = list(checks.yield_checks(KernelDensityRatio()))
    others = [check for name, check in on_records.items() if name not in {check.__name__ for check in generic}]
    return generic, [check.func for check in others if "learn_many" not in check.__name__]


@pytest.mark.parametrize("model", RATIOS, ids=range(len(RATIOS)))
def test_checks_of_ratios(model):
    generic, on_records = _checks_of_ratios()
    assert len(generic) > 10
    assert len(on_records) > 10
    for check in generic:
        check(model.clone())
    for check in on_records:
        check(model.clone(), list(datasets.Phishing().take(60)))


def test_no_check_is_skipped():
    for model in CLASSIFIERS + REGRESSORS + DETECTORS + RATIOS:
        assert set(model._unit_test_skips()) == set()
    for kind in {type(model) for model in CLASSIFIERS + REGRESSORS + DETECTORS + RATIOS}:
        for given in kind._unit_test_params():
            assert set(kind(**given)._unit_test_skips()) == set()


def _behind_scaler(model):
    return compose.Pipeline(("scale", preprocessing.StandardScaler()), ("model", model))


@pytest.mark.parametrize(("model", "check"), [*_checked([_behind_scaler(model) for model in SCALED])])
def test_check_behind_a_scaler(model, check):
    if check.__name__ == "check_learn_many_matches_learn_one":
        with pytest.raises(AssertionError):
            check(model.clone())
    else:
        check(model.clone())


class Looping(base.MiniBatchRegressor):
    """Predicts the mean of its inputs' sums; learns many by learning one after the other."""

    def __init__(self):
        self.total = 0.0
        self.count = 0

    def learn_one(self, x, y):
        self.total += sum(x.values()) * y
        self.count += 1

    def predict_one(self, x):
        return self.total / max(self.count, 1) + sum(x.values())

    def learn_many(self, X, y):
        for row, target in stream.iter_frame(X, y):
            self.learn_one(row, target)

    def predict_many(self, X):
        return pd.Series([self.predict_one(row) for row, _ in stream.iter_frame(X)], index=X.index)


def test_the_scaler_is_the_cause_of_the_one_exemption():
    """A model whose learn_many is the loop passes the check, and fails it behind the scaler as ours do."""

    def check_of(model):
        return next(c for c in checks.yield_checks(model) if c.__name__ == "check_learn_many_matches_learn_one")

    check_of(Looping())(Looping())
    piped = _behind_scaler(Looping())
    with pytest.raises(AssertionError):
        check_of(piped)(piped.clone())
    # It learns a whole batch before it transforms it: its first row comes out scaled by rows that came later.
    frame = pd.DataFrame({"a": [1.0, 2.0, 6.0]})
    one, many = preprocessing.StandardScaler(), preprocessing.StandardScaler()
    many.learn_many(frame)
    one.learn_one({"a": 1.0})
    assert one.transform_one({"a": 1.0}) != {"a": many.transform_many(frame)["a"][0]}


def test_signatures_are_rivers():
    regressors = KernelRegressor, AdaptiveKernelRegressor, GaussianProcessRegressor, KernelLeastSquaresRegressor
    classifiers = KernelClassifier, AdaptiveKernelClassifier, KernelLeastSquaresClassifier
    for model in (*classifiers, *regressors):
        assert list(inspect.signature(model.learn_one).parameters)[1:] == ["x", "y", "w"]
        assert list(inspect.signature(model.learn_many).parameters)[1:] == ["X", "y", "w"]
    assert list(inspect.signature(KernelDensityRatio.learn_one).parameters) == ["self", "x", "y", "w"]
    assert list(inspect.signature(KernelNoveltyDetector.learn_one).parameters) == ["self", "x", "w"]
    assert issubclass(KernelNoveltyDetector, base.AnomalyDetector)
    for model in classifiers:
        assert issubclass(model, base.MiniBatchClassifier)
    for model in regressors:
        assert issubclass(model, base.MiniBatchRegressor)
    assert AdaptiveKernelClassifier()._multiclass
    for model in (AdaptiveKernelRegressor, GaussianProcessRegressor):
        assert list(inspect.signature(model.predict_one).parameters) == ["self", "x", "with_dist"]
    assert [KernelClassifier(loss=loss)._multiclass for loss in (None, losses.Softmax(), losses.Log())] == [
        True,
        True,
        False,
    ]
