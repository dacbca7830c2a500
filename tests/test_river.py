"""River's ways of putting models together: evaluation, pipelines, multiclass, drift, selection."""

import pickle

import pytest
from river import (
    compose,
    datasets,
    drift,
    evaluate,
    feature_extraction,
    linear_model,
    metrics,
    model_selection,
    optim,
    preprocessing,
    utils,
)

from streamkernel import AdaptiveKernelClassifier, AdaptiveKernelRegressor, KernelClassifier, KernelRegressor
from streamkernel.growth import CDSG, DSG
from streamkernel.kernels import Gaussian

BOTH_CLASSIFIERS = pytest.mark.parametrize("classifier", [KernelClassifier, AdaptiveKernelClassifier])


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


@pytest.mark.parametrize("base_model", [KernelClassifier(seed=1, batch_size=8), AdaptiveKernelClassifier(seed=1)])
def test_retrained_on_drift(base_model):
    model = drift.DriftRetrainingClassifier(base_model, drift.binary.DDM())
    rows = [({"a": (i * 7 % 13) / 13}, ((i * 7 % 13) > 6) != (i > 800)) for i in range(1600)]
    assert _score(rows, model, metrics.Accuracy()) > 0.8


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
