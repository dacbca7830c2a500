"""River's own checks, none skipped: one variant of each estimator here, the others in the long suite."""

import functools
import inspect
import itertools
import random
from unittest import mock

import numpy as np
import pytest
from river import (
    base,
    checks,
    compose,
    datasets,
    optim,
    preprocessing,
)

from streamkernel import (
    AdaptiveKernelClassifier,
    AdaptiveKernelRegressor,
    GaussianProcessRegressor,
    KernelClassifier,
    KernelDensityRatio,
    KernelLeastSquaresClassifier,
    KernelLeastSquaresRegressor,
    KernelMultiLabelClassifier,
    KernelMultiTargetRegressor,
    KernelNoveltyDetector,
    KernelRegressor,
    WindowRefit,
    losses,
)
from streamkernel.gaussian_process import TestPointFunctions, VarianceOperator
from streamkernel.growth import CDSG, DSG, UDSG
from streamkernel.kernels import Gaussian, Matern
from streamkernel.window import S3GD
from tests.kernels.cases import CASES

#: One variant of each estimator, for the suite that every change runs.
MODELS = [
    KernelClassifier(),
    AdaptiveKernelClassifier(n_features=16, n_trees=1, lags=1),
    KernelLeastSquaresClassifier(n_features=4, drift_rates=(0.0, 0.01)),
    KernelRegressor(),
    AdaptiveKernelRegressor(n_features=16, n_trees=1, lags=3),
    GaussianProcessRegressor(n_features=8),
    KernelLeastSquaresRegressor(n_features=16),
    KernelMultiLabelClassifier(batch_size=16),
    KernelMultiTargetRegressor(),
    KernelNoveltyDetector(),
    KernelDensityRatio(p=True, q=False),
    WindowRefit(KernelClassifier(max_features=64), window=50, every=90),
    WindowRefit(KernelRegressor(max_features=64), window=100, every=90),
]


HUBER = optim.losses.Huber(epsilon=1.0)
VARIANTS = [
    KernelClassifier(loss=losses.Log(), growth=DSG(), batch_size=3, max_features=128, seed=1),
    KernelClassifier(loss=optim.losses.Hinge(), growth=UDSG(grow=1, reuse=2), dtype="float64", seed=1),
    KernelClassifier(loss=losses.SquaredHinge(), growth=CDSG(cap=3.0), kernel=Gaussian(2.0), seed=1),
    KernelClassifier(precondition=False, average=True, batch_size=5, seed=1),
    KernelClassifier(loss=losses.Log(), growth=DSG(), blocks_per_step=3, average=True, batch_size=16, seed=1),
    KernelClassifier(kernel=Gaussian(structured=True)),
    KernelClassifier(kernel=Gaussian(2.0, structured=True), growth=UDSG(), block_size=7, batch_size=5, seed=1),
    AdaptiveKernelClassifier(),
    AdaptiveKernelClassifier(n_features=3, drift_rates=(0.1,), metric_schedule=None, kernel=Gaussian(2.0), seed=1),
    AdaptiveKernelClassifier(n_features=16, metric_schedule=(5, 6, 50), buffer_size=7, standardize=False, seed=1),
    KernelLeastSquaresClassifier(),
    KernelLeastSquaresClassifier(Gaussian(2.0), n_features=3, drift_rates=(0.1,), standardize=False, seed=1),
    KernelRegressor(loss=HUBER, growth=UDSG(), dtype="float64", standardize=False, seed=1),
    KernelRegressor(loss=losses.EpsilonInsensitive(), kernel=Gaussian(3.0), growth=DSG(), cache_bytes=0, seed=1),
    KernelRegressor(loss=optim.losses.Absolute(), step=optim.schedulers.InverseScaling(0.3, 0.5), seed=1),
    KernelRegressor(loss=losses.Quantile(alpha=0.9), block_size=1, batch_size=5, max_features=64, seed=1),
    KernelRegressor(precondition=False, blocks_per_step=2, seed=1),
    KernelRegressor(kernel=Gaussian(structured=True), standardize=False, seed=1),
    KernelRegressor(growth=UDSG(), average=True, block_size=4, batch_size=3, dtype="float64", seed=1),
    AdaptiveKernelRegressor(),
    AdaptiveKernelRegressor(n_features=3, drift_rates=(0.1,), metric_schedule=None, kernel=Gaussian(2.0), seed=1),
    AdaptiveKernelRegressor(n_features=16, metric_schedule=(5, 6, 50), buffer_size=7, standardize=False, seed=1),
    AdaptiveKernelRegressor(n_features=16, lags=2, n_trees=0, standardize=False, seed=1),
    GaussianProcessRegressor(Matern() + Gaussian(2.0), 0.5, 8, None, False, True, 1e-3, False, False, seed=1),
    GaussianProcessRegressor(n_features=8, variance=VarianceOperator(8, 4, 16), seed=1),
    GaussianProcessRegressor(n_features=8, variance=TestPointFunctions([{"x": 1.0}, {}], 8, 4, 16), seed=1),
    KernelLeastSquaresRegressor(),
    KernelLeastSquaresRegressor(Matern(), n_features=3, drift_rates=(0.1,), standardize=False, seed=1),
    KernelMultiLabelClassifier(loss=optim.losses.Hinge(), growth=UDSG(), max_labels=400, dtype="float64", seed=1),
    KernelMultiTargetRegressor(loss=HUBER, growth=DSG(), average=True, batch_size=5, max_targets=20, seed=1),
    KernelNoveltyDetector(nu=0.02, growth=UDSG(), batch_size=5, dtype="float64", seed=1),
    KernelDensityRatio(p=1, q=0, growth=UDSG(), precondition=False, average=True, batch_size=5, seed=1),
    WindowRefit(KernelClassifier(loss=losses.Log(), max_features=64, average=True, seed=1), window=50, every=30),
    WindowRefit(
        KernelClassifier(max_features=64, seed=1), 200, 100, S3GD(anchors=5, neighbors=2, max_passes=2, seed=1)
    ),
    WindowRefit(KernelRegressor(loss=HUBER, max_features=64, precondition=False, seed=1), 300, 70),
]


def _behind_scaler(model):
    return compose.Pipeline(("scale", preprocessing.StandardScaler()), ("model", model))


class Mirrored(base.MiniBatchTransformer):
    """Numbers without their sign."""

    def transform_one(self, x):
        return {name: abs(value) if isinstance(value, int | float) else value for name, value in x.items()}

    def transform_many(self, X):
        numbers = X.select_dtypes(np.number).columns
        return X.assign(**{name: X[name].abs() for name in numbers}) if len(numbers) else X

    def learn_many(self, X):
        pass


def _with_each_kernel():
    """Machines with each kernel; those with a domain stand behind a step that keeps to it."""
    for kernel in {type(kernel): kernel for kernel, _ in CASES.values()}.values():
        for estimator in (KernelRegressor, KernelClassifier):
            model = estimator(kernel=kernel, batch_size=8, seed=1)
            yield model if kernel.domain is None else Mirrored() | model


SCALED = [
    KernelRegressor(seed=1),
    KernelClassifier(seed=1),
    AdaptiveKernelClassifier(n_features=16, seed=1),
    AdaptiveKernelRegressor(n_features=16, seed=1),
    GaussianProcessRegressor(n_features=16, seed=1),
    KernelLeastSquaresRegressor(n_features=16, seed=1),
]


class CreditCard:
    """Records in place of those of `datasets.CreditCard`, which River downloads: 1 in 20 is unlike the others."""

    def take(self, n):
        rng = random.Random(1)
        records = []
        for i in range(min(n, 400)):
            strange = i % 20 == 19
            records.append(({f"V{j}": rng.gauss(4 * strange, 1) for j in range(8)}, int(strange)))
        return records


class Music(CreditCard):
    """Records in place of those of `datasets.Music`, which River downloads: each with several labels."""

    def take(self, n):
        return [(x, {label: v > 0 for label, v in zip("abc", x.values(), strict=False)}) for x, _ in super().take(n)]


def _checks_of(model, longest=10):
    """River's checks, by name; a density ratio's with those of records, which River has for the kinds that it knows.

    The streams of the check of memory are `longest` times those of the others.
    """
    of_river = checks._yield_datasets
    with (
        mock.patch.object(datasets, "CreditCard", CreditCard),
        mock.patch.object(datasets, "Music", Music),
        mock.patch.object(checks, "_yield_datasets", lambda model, scale=1: of_river(model, min(scale, longest))),
    ):
        found = list(checks.yield_checks(model))
    if isinstance(model, KernelDensityRatio):
        on_records = [check for check in checks.yield_checks(KernelRegressor()) if isinstance(check, functools.partial)]
        known = {check.__name__ for check in found} | {"check_learn_many_matches_learn_one"}
        records = list(datasets.Phishing().take(60))
        others = [check for check in on_records if check.__name__ not in known]
        found += [functools.update_wrapper(functools.partial(check.func, dataset=records), check) for check in others]
    return [(check.__name__, check) for check in found]


def _parameters(short, long):
    """Two lists of models, of which the second is for the long suite."""
    marked = [(model, ()) for model in short] + [(model, pytest.mark.long) for model in long]
    return [pytest.param(model, marks=marks, id=f"{i}-{model}") for i, (model, marks) in enumerate(marked)]


@pytest.mark.parametrize("model", _parameters(MODELS, []))
def test_checks(model, subtests):
    """Each over one of River's streams for such models, in turn."""
    by_name = [list(found) for _, found in itertools.groupby(_checks_of(model, longest=3), key=lambda found: found[0])]
    assert len(by_name) > 20
    for number, found in enumerate(by_name):
        name, check = found[number % len(found)]
        with subtests.test(check=name):
            check(model.clone())


@pytest.mark.parametrize("model", _parameters([], [*MODELS, *VARIANTS, *_with_each_kernel()]))
def test_checks_over_every_stream(model, subtests):
    for number, (name, check) in enumerate(_checks_of(model)):
        with subtests.test(check=f"{number} {name}"):
            check(model.clone())


@pytest.mark.parametrize("model", _parameters(SCALED[:1], SCALED[1:]))
def test_checks_behind_a_scaler(model, subtests):
    piped = _behind_scaler(model)
    for number, (name, check) in enumerate(_checks_of(piped)):
        with subtests.test(check=f"{number} {name}"):
            if name == "check_learn_many_matches_learn_one":
                with pytest.raises(AssertionError):
                    check(piped.clone())
            else:
                check(piped.clone())


def test_no_check_is_skipped():
    for model in MODELS + VARIANTS:
        assert set(model._unit_test_skips()) == set()
        for given in type(model)._unit_test_params():
            assert set(type(model)(**given)._unit_test_skips()) == set()


def test_signatures_are_rivers():
    regressors = KernelRegressor, AdaptiveKernelRegressor, GaussianProcessRegressor, KernelLeastSquaresRegressor
    classifiers = KernelClassifier, AdaptiveKernelClassifier, KernelLeastSquaresClassifier
    for model in (*classifiers, *regressors):
        assert list(inspect.signature(model.learn_one).parameters)[1:] == ["x", "y", "w"]
        assert list(inspect.signature(model.learn_many).parameters)[1:] == ["X", "y", "w"]
    several = KernelMultiLabelClassifier, KernelMultiTargetRegressor
    for model, kind in zip(several, (base.MultiLabelClassifier, base.MultiTargetRegressor), strict=True):
        assert issubclass(model, kind)
        assert list(inspect.signature(model.learn_one).parameters)[1:] == ["x", "y", "w"]
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
