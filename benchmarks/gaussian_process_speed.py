"""What the Gaussian process costs beside its peers: River's Bayesian regression, scikit-learn's exact process."""

from typing import Any

import numpy as np
from river.linear_model import BayesianLinearRegression
from sklearn.gaussian_process import GaussianProcessRegressor as ExactRegressor
from sklearn.gaussian_process.kernels import RBF

from benchmarks import rounds
from streamkernel import GaussianProcessRegressor
from streamkernel.kernels import Gaussian

Array = np.ndarray[Any, np.dtype[Any]]

#: Records of a call that predicts and learns them one by one.
_A_CALL = 25
HEADER = ["what", "peer", "ours, ms", "peer, ms", "peer over ours"]


def _ours(bandwidth: float, noise: float, n_features: int) -> GaussianProcessRegressor:
    kernel = Gaussian(bandwidth)
    return GaussianProcessRegressor(kernel, noise, n_features, normalize_y=False, standardize=False, seed=1)


def of_records(X: Array, y: Array, bandwidth: float, noise: float, n_features: int, n_rounds: int) -> list[str]:
    """The row of a record that is predicted with its distribution and then learned, River's model given the columns."""
    X = X[:_A_CALL]
    turns = X @ np.random.default_rng(0).normal(size=(X.shape[1], n_features)) / bandwidth
    columns = np.hstack([np.cos(turns), np.sin(turns)]) / np.sqrt(n_features)

    def one_by_one(regressor: Any, rows: Array) -> Any:
        records = [(dict(enumerate(row)), target) for row, target in zip(rows.tolist(), y.tolist(), strict=False)]

        def call() -> None:
            for x, target in records:
                regressor.predict_one(x, with_dist=True)
                regressor.learn_one(x, target)

        return call

    calls = {
        "ours": one_by_one(_ours(bandwidth, noise, n_features), X),
        "peer": one_by_one(BayesianLinearRegression(alpha=1.0, beta=1 / noise), columns),
    }
    took = {name: np.array(each) / _A_CALL for name, each in rounds.interleaved(calls, n_rounds).items()}
    what = f"a record, predicted with its distribution and learned, F = {n_features}"
    return _row(what, "River's BayesianLinearRegression, given the columns", took)


def of_all(X: Array, y: Array, Z: Array, bandwidth: float, noise: float, n_features: int, n_rounds: int) -> list[str]:
    """The row of all records learned by one call, and all of Z predicted with deviations."""

    def ours() -> None:
        process = _ours(bandwidth, noise, n_features)
        process.learn_many(X, y)
        process.predict_many(Z, with_dist=True)

    def peer() -> None:
        ExactRegressor(RBF(bandwidth), alpha=noise, optimizer=None).fit(X, y).predict(Z, return_std=True)

    took = {name: np.array(each) for name, each in rounds.interleaved({"ours": ours, "peer": peer}, n_rounds).items()}
    what = f"{len(X):,} records learned and {len(Z):,} predicted with deviations, F = {n_features}"
    return _row(what, "scikit-learn's GaussianProcessRegressor, exact", took)


def _row(what: str, peer: str, took: dict[str, Array]) -> list[str]:
    ratios = rounds.over(took["peer"].tolist(), took["ours"].tolist())
    ours, peers = (f"{np.median(took[name]) * 1e3:,.2f}" for name in ("ours", "peer"))
    return [what, peer, ours, peers, rounds.spread(ratios)]
