"""River's own checks, one test each and none skipped, and River's ways of putting models together."""

import copy
import inspect
import pickle

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from river import (
    base,
    checks,
    compose,
    datasets,
    drift,
    ensemble,
    evaluate,
    feature_extraction,
    linear_model,
    metrics,
    model_selection,
    multiclass,
    optim,
    preprocessing,
    stream,
    utils,
)

from streamkernel import AdaptiveKernelClassifier, AdaptiveKernelRegressor, KernelClassifier, KernelRegressor, losses
from streamkernel.growth import CDSG, DSG, UDSG
from streamkernel.kernels import Gaussian

CLASSIFIERS = [
    KernelClassifier(),
    KernelClassifier(loss=losses.Log(), growth=DSG(), batch_size=3, max_features=128, seed=1),
    KernelClassifier(loss=optim.losses.Hinge(), growth=UDSG(grow=1, reuse=2), dtype="float64", seed=1),
    KernelClassifier(loss=losses.SquaredHinge(), growth=CDSG(cap=3.0), kernel=Gaussian(2.0), seed=1),
    AdaptiveKernelClassifier(),
    AdaptiveKernelClassifier(n_features=3, drift_rates=(0.1,), metric_schedule=None, kernel=Gaussian(2.0), seed=1),
    AdaptiveKernelClassifier(n_features=16, metric_schedule=(5, 6, 50), buffer_size=7, standardize=False, seed=1),
]
REGRESSORS = [
    KernelRegressor(),
    KernelRegressor(loss=optim.losses.Huber(epsilon=1.0), growth=UDSG(), dtype="float64", standardize=False, seed=1),
    KernelRegressor(loss=losses.EpsilonInsensitive(), kernel=Gaussian(3.0), growth=DSG(), cache_bytes=0, seed=1),
    KernelRegressor(loss=optim.losses.Absolute(), step=optim.schedulers.InverseScaling(0.3, 0.5), seed=1),
    KernelRegressor(loss=losses.Quantile(alpha=0.9), block_size=1, batch_size=5, max_features=64, seed=1),
    AdaptiveKernelRegressor(),
    AdaptiveKernelRegressor(n_features=3, drift_rates=(0.1,), metric_schedule=None, kernel=Gaussian(2.0), seed=1),
    AdaptiveKernelRegressor(n_features=16, metric_schedule=(5, 6, 50), buffer_size=7, standardize=False, seed=1),
]
SCALED = [
    KernelClassifier(seed=1),
    KernelRegressor(seed=1),
    AdaptiveKernelClassifier(n_features=16, seed=1),
    AdaptiveKernelRegressor(n_features=16, seed=1),
]
BOTH_CLASSIFIERS = pytest.mark.parametrize("classifier", [KernelClassifier, AdaptiveKernelClassifier])


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


def test_no_check_is_skipped():
    for model in CLASSIFIERS + REGRESSORS:
        assert set(model._unit_test_skips()) == set()
    for kind in {type(model) for model in CLASSIFIERS + REGRESSORS}:
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
    for model in (KernelClassifier, KernelRegressor, AdaptiveKernelClassifier, AdaptiveKernelRegressor):
        assert list(inspect.signature(model.learn_one).parameters)[1:] == ["x", "y", "w"]
        assert list(inspect.signature(model.learn_many).parameters)[1:] == ["X", "y", "w"]
    for model in (KernelClassifier, AdaptiveKernelClassifier):
        assert issubclass(model, base.MiniBatchClassifier)
    for model in (KernelRegressor, AdaptiveKernelRegressor):
        assert issubclass(model, base.MiniBatchRegressor)
    assert AdaptiveKernelClassifier()._multiclass
    assert list(inspect.signature(AdaptiveKernelRegressor.predict_one).parameters) == ["self", "x", "with_dist"]
    assert [KernelClassifier(loss=loss)._multiclass for loss in (None, losses.Softmax(), losses.Log())] == [
        True,
        True,
        False,
    ]


# Put together ---------------------------------------------------------------------------------------------------------


def _score(dataset, model, metric, **given):
    return evaluate.progressive_val_score(dataset, model, metric, **given).get()


@BOTH_CLASSIFIERS
def test_with_delayed_labels(classifier):
    model = classifier(seed=1)
    accuracy = _score(datasets.Phishing(), model, metrics.Accuracy(), delay=30, moment=None)
    assert accuracy > 0.8
    assert model.n_records == 1250
    for step in evaluate.iter_progressive_val_score(
        datasets.Phishing().take(250), classifier(seed=1), metrics.Accuracy(), step=100, delay=5
    ):
        assert set(step) >= {"Accuracy", "Step"}


@BOTH_CLASSIFIERS
def test_progressive_validation_is_advance(classifier):
    one, other = classifier(seed=1), classifier(seed=1)
    metric = metrics.LogLoss()
    expected = _score(datasets.Phishing(), one, metrics.LogLoss())
    xs, ys = zip(*datasets.Phishing(), strict=True)
    for y, p in zip(ys, other.advance(xs, ys).probabilities, strict=True):
        if p:
            metric.update(y, p)
    assert metric.get() == expected
    assert one.state_digest() == other.state_digest()


@pytest.mark.parametrize(
    ("classifier", "regressor"),
    [(KernelClassifier, KernelRegressor), (AdaptiveKernelClassifier, AdaptiveKernelRegressor)],
)
def test_in_a_pipeline_of_many_parts(classifier, regressor):
    numbers = compose.SelectType(int, float) | preprocessing.MinMaxScaler()
    words = compose.SelectType(str) | preprocessing.OneHotEncoder()
    model = (numbers + words) | classifier(seed=1)
    rows = [({"a": i % 9, "b": i / 7, "c": "uvw"[i % 3]}, i % 3 == 0 or i % 9 > 6) for i in range(900)]
    assert _score(rows, model, metrics.Accuracy()) > 0.85
    assert isinstance(model, compose.Pipeline)
    copied = pickle.loads(pickle.dumps(model))[classifier.__name__]
    assert copied.state_digest() == model[classifier.__name__].state_digest()
    polynomial = feature_extraction.PolynomialExtender() | preprocessing.StandardScaler() | regressor(seed=1)
    assert _score(datasets.TrumpApproval(), polynomial, metrics.MAE()) < 1.5


@BOTH_CLASSIFIERS
def test_learn_many_in_a_pipeline(classifier):
    model = compose.Select("1") | classifier(seed=1)
    alone = classifier(seed=1)
    rows = list(datasets.Bananas().take(600))
    for first in range(0, 600, 250):
        xs, ys = zip(*rows[first : first + 250], strict=True)
        model.learn_many(pd.DataFrame(xs), pd.Series(ys))
    for x, y in rows:
        alone.learn_one({"1": x["1"]}, y)
    assert model[classifier.__name__].state_digest() == alone.state_digest()
    xs = [x for x, _ in rows[:9]]
    assert model.predict_many(pd.DataFrame(xs)).tolist() == [model.predict_one(x) for x in xs]


def test_one_against_the_rest():
    model = multiclass.OneVsRestClassifier(KernelClassifier(loss=losses.Log(), seed=1))
    assert _score(datasets.ImageSegments().take(600), model, metrics.Accuracy()) > 0.6
    assert len(model.classifiers) == 7
    one_one = multiclass.OneVsOneClassifier(KernelClassifier(loss=losses.SquaredHinge(), seed=1))
    assert _score(datasets.ImageSegments().take(200), one_one, metrics.Accuracy()) > 0.3


@BOTH_CLASSIFIERS
def test_softmax_natively(classifier):
    assert _score(datasets.ImageSegments(), classifier(seed=1), metrics.Accuracy()) > 0.75


@pytest.mark.parametrize("base_model", [KernelClassifier(seed=1, batch_size=8), AdaptiveKernelClassifier(seed=1)])
def test_retrained_on_drift(base_model):
    model = drift.DriftRetrainingClassifier(base_model, drift.binary.DDM())
    rows = [({"a": (i * 7 % 13) / 13}, ((i * 7 % 13) > 6) != (i > 800)) for i in range(1600)]
    assert _score(rows, model, metrics.Accuracy()) > 0.8


@pytest.mark.parametrize(
    ("classifier", "regressor"),
    [
        (KernelClassifier(), KernelRegressor(seed=1)),
        (AdaptiveKernelClassifier(n_features=32), AdaptiveKernelRegressor(n_features=32, seed=1)),
    ],
)
def test_bagged(classifier, regressor):
    phishing = list(datasets.Phishing().take(400))
    for classifiers in (
        ensemble.BaggingClassifier(classifier.clone({"seed": 1}), n_models=3, seed=1),
        ensemble.ADWINBaggingClassifier(classifier, n_models=3, seed=1),
    ):
        assert _score(phishing, classifiers, metrics.Accuracy()) > 0.75
    regressors = ensemble.BaggingRegressor(regressor, n_models=3, seed=1)
    assert _score(datasets.TrumpApproval(), regressors, metrics.MAE()) < 1.5


def test_selected_among_others():
    candidates = [
        linear_model.LinearRegression(),
        KernelRegressor(seed=1),
        KernelRegressor(loss=optim.losses.Huber(1.0), seed=1),
    ]
    rows = [({"a": (i * 7 % 41) / 41}, ((i * 7 % 41) / 41 - 0.5) ** 2) for i in range(1500)]
    model = model_selection.GreedyRegressor([*candidates], metric=metrics.MAE())
    _score(rows, model, metrics.MAE())
    assert isinstance(model.best_model, KernelRegressor)
    grid = utils.expand_param_grid(KernelRegressor(seed=1), {"block_size": [8, 16], "growth": [DSG(), CDSG()]})
    assert [(m.block_size, type(m.growth).__name__) for m in grid] == [
        (8, "DSG"),
        (8, "CDSG"),
        (16, "DSG"),
        (16, "CDSG"),
    ]
    grid = utils.expand_param_grid(AdaptiveKernelRegressor(seed=1), {"ridge": [0.1, 1.0], "kernel": [None, Gaussian()]})
    assert [(m.ridge, m.kernel is None) for m in grid] == [(0.1, True), (0.1, False), (1.0, True), (1.0, False)]


@BOTH_CLASSIFIERS
def test_deep_copies_and_clones_of_compositions(classifier):
    model = _behind_scaler(classifier(seed=1))
    for x, y in datasets.Phishing().take(250):
        model.learn_one(x, y)
    twin = copy.deepcopy(model)
    assert twin["model"].state_digest() == model["model"].state_digest()
    assert model.clone()["model"].n_records == 0
    for x, y in datasets.Phishing().take(20):
        model.learn_one(x, y)
    assert twin["model"].n_records == 250


# Frames ---------------------------------------------------------------------------------------------------------------

ROWS = [{"a": i / 3, "b": None if i % 4 == 0 else float(i), "c": "uv"[i % 2], "d": i % 3 == 0} for i in range(70)]
FRAMES = {
    "pandas": lambda rows: pd.DataFrame(rows),
    "pandas-nullable": lambda rows: pd.DataFrame(rows).convert_dtypes(),
    "pandas-pyarrow": lambda rows: pd.DataFrame(rows).convert_dtypes(dtype_backend="pyarrow"),
    "polars": lambda rows: pl.DataFrame(rows),
    "pyarrow": lambda rows: pa.Table.from_pylist(rows),
}
LABELS = {"bool": (False, True), "str": ("no", "yes"), "int": (0, 1)}


@pytest.mark.parametrize(
    "classifier",
    [KernelClassifier(seed=1, batch_size=8), AdaptiveKernelClassifier(seed=1, n_features=16, metric_schedule=(30, 50))],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
@pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES)
def test_frames_of_every_kind_are_the_loop(make, labels, classifier):
    ys = [labels[i % 5 > 1] for i in range(len(ROWS))]
    one, many = (classifier.clone() for _ in range(2))
    for x, y in zip(ROWS, ys, strict=True):
        one.learn_one(x, y)
    frame = make(ROWS)
    many.learn_many(frame, ys)
    assert many.state_digest() == one.state_digest()
    predicted = many.predict_many(frame)
    assert type(predicted).__module__.split(".")[0] == type(frame).__module__.split(".")[0]
    assert (predicted.to_pylist() if hasattr(predicted, "to_pylist") else list(predicted)) == [
        one.predict_one(x) for x in ROWS
    ]
    probabilities = many.predict_proba_many(frame)
    assert type(probabilities) is type(frame)
    assert probabilities.shape == (70, 2)


@pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES)
def test_a_fresh_model_predicts_frames(make):
    frame = make(ROWS)
    for regressor in (KernelRegressor(), AdaptiveKernelRegressor()):
        assert len(regressor.predict_many(frame)) == 70
        assert list(regressor.predict_many(frame))[:1] in ([0.0], [pa.scalar(0.0)])
    for classifier in (KernelClassifier(), AdaptiveKernelClassifier()):
        assert len(classifier.predict_many(frame)) == 70
        classifier.predict_proba_many(frame)
    assert len(KernelClassifier(loss=losses.Log()).predict_proba_many(frame)) == 70


@BOTH_CLASSIFIERS
def test_the_index_of_a_pandas_frame_is_kept(classifier):
    model = classifier(seed=1)
    frame = pd.DataFrame(ROWS, index=[f"row{i}" for i in range(70)])
    model.learn_many(frame, pd.Series([i % 2 for i in range(70)], index=frame.index))
    assert model.predict_many(frame).index.equals(frame.index)
    assert model.predict_proba_many(frame).index.equals(frame.index)


@pytest.mark.parametrize("regressor", [KernelRegressor(seed=1, batch_size=4), AdaptiveKernelRegressor(seed=1)])
def test_columns_named_by_numbers(regressor):
    one, many = (regressor.clone() for _ in range(2))
    frame = pd.DataFrame([[0.5, 1.0], [1.5, -1.0], [2.5, 3.0], [0.0, 0.0]])
    many.learn_many(frame, [1.0, 2.0, 3.0, 4.0])
    for row, y in zip(frame.itertuples(index=False), [1.0, 2.0, 3.0, 4.0], strict=True):
        one.learn_one({0: row[0], 1: row[1]}, y)
    assert many.state_digest() == one.state_digest()
