"""Distributions of many predictions at once are those of `predict_one`."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from streamkernel import AdaptiveKernelRegressor

X = np.random.default_rng(0).normal(size=(120, 2))


@pytest.mark.parametrize(
    "make", [pd.DataFrame, pl.DataFrame, pa.table, None], ids=["pandas", "polars", "pyarrow", "array"]
)
@pytest.mark.parametrize("n_learnt", [0, 100])
def test_they_come_in_the_frame_they_were_asked_with(make, n_learnt):
    model = AdaptiveKernelRegressor(n_features=16, seed=1)
    model.learn_many(X[:n_learnt], X[:n_learnt, 0] ** 2)
    rows = X if make is None else make({"0": X[:, 0], "1": X[:, 1]})
    xs = [dict(zip("01" if make else (0, 1), row, strict=True)) for row in X.tolist()]
    one = [model.predict_one(x, with_dist=True) for x in xs]
    expected = np.array([[gaussian.mu, gaussian.sigma] for gaussian in one])
    found = model.predict_many(rows, with_dist=True)
    if make is None:
        assert np.array_equal(found, expected)
        return
    assert type(found) is type(rows)
    assert list(found.columns if make is not pa.table else found.column_names) == ["mu", "sigma"]
    for j, name in enumerate(("mu", "sigma")):
        assert np.array_equal(np.asarray(found[name]), expected[:, j])


def test_the_index_of_a_frame_stays():
    model = AdaptiveKernelRegressor(n_features=16, seed=1)
    frame = pd.DataFrame(X, index=[f"row {i}" for i in range(len(X))])
    model.learn_many(frame, X[:, 0])
    assert model.predict_many(frame, with_dist=True).index.equals(frame.index)
    assert list(model.predict_many(frame.head(0), with_dist=True).columns) == ["mu", "sigma"]
