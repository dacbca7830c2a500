"""Frames of every library that River's mini-batch estimators take."""

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from streamkernel import (
    AdaptiveKernelClassifier,
    AdaptiveKernelRegressor,
    KernelClassifier,
    KernelLeastSquaresClassifier,
    KernelLeastSquaresRegressor,
    KernelRegressor,
    losses,
)

BOTH_CLASSIFIERS = pytest.mark.parametrize("classifier", [KernelClassifier, AdaptiveKernelClassifier])


ROWS = [{"a": i / 3, "b": None if i % 4 == 0 else float(i), "c": "uv"[i % 2], "d": i % 3 == 0} for i in range(70)]


FRAMES = {
    "pandas": lambda rows: pd.DataFrame(rows),
    "pandas-nullable": lambda rows: pd.DataFrame(rows).convert_dtypes(),
    "pandas-pyarrow": lambda rows: pd.DataFrame(rows).convert_dtypes(dtype_backend="pyarrow"),
    "polars": lambda rows: pl.DataFrame(rows),
    "pyarrow": lambda rows: pa.Table.from_pylist(rows),
}


LABELS = {"bool": (False, True), "str": ("no", "yes"), "int": (0, 1)}


CLASSIFIERS = {
    "growing": KernelClassifier(seed=1, batch_size=8),
    "adaptive": AdaptiveKernelClassifier(seed=1, n_features=16, metric_schedule=(30, 50)),
    "least squares": KernelLeastSquaresClassifier(seed=1, n_features=16),
}
#: Each kind of frame with each kind of label and with each classifier.
CASES = [
    (frame, label, classifier)
    for i, frame in enumerate(FRAMES)
    for label, classifier in zip(LABELS, [*CLASSIFIERS, *CLASSIFIERS][i % 3 :], strict=False)
]


@pytest.mark.parametrize(("frame", "label", "classifier"), CASES)
def test_frames_of_every_kind_are_the_loop(frame, label, classifier):
    make, labels, classifier = FRAMES[frame], LABELS[label], CLASSIFIERS[classifier]
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
    for regressor in (KernelRegressor(), AdaptiveKernelRegressor(), KernelLeastSquaresRegressor()):
        assert len(regressor.predict_many(frame)) == 70
        assert list(regressor.predict_many(frame))[:1] in ([0.0], [pa.scalar(0.0)])
    for classifier in (KernelClassifier(), AdaptiveKernelClassifier(), KernelLeastSquaresClassifier()):
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
