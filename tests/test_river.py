"""River's ways of putting models together: evaluation, pipelines, multiclass, drift, selection."""

import pickle

import pytest
from river import (
    compose,
    datasets,
    drift,
    evaluate,
    feature_extraction,
    metrics,
    preprocessing,
)

from streamkernel import AdaptiveKernelClassifier, AdaptiveKernelRegressor, KernelClassifier, KernelRegressor

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
