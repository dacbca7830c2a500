"""The Gaussian process in the setting of the DSG paper's section 7.2, against the exact posterior.

    python -m benchmarks.gaussian_process [--quick] [--out DIR]

2,048 records of the paper's function of two inputs, noise variance .1, bandwidth the median distance; then what it
costs beside River's Bayesian regression and scikit-learn's exact process. Writes gaussian_process.md to --out
(benchmarks/results).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from river.linear_model import BayesianLinearRegression
from sklearn.gaussian_process import GaussianProcessRegressor as ExactRegressor
from sklearn.gaussian_process.kernels import RBF

from benchmarks import rounds
from benchmarks.command import asked
from benchmarks.growth import median_distance
from benchmarks.report import publish, table
from streamkernel import GaussianProcessRegressor
from streamkernel.gaussian_process import TestPointFunctions, VarianceEstimator, VarianceOperator
from streamkernel.kernels import Gaussian

Array = np.ndarray[Any, np.dtype[Any]]

NOISE = 0.1
BATCH = 64
#: Steps of the estimators by doubly stochastic gradients after which their errors are taken.
LOOKS = (100, 300, 600, 1000, 1500)
#: Features of each estimator: of the functions of test points, and of each stream of the operator.
POINT_FEATURES, OPERATOR_FEATURES = 2048, 256


@dataclass
class Setting:
    """Records, test points and the exact posterior at these."""

    X: Array
    y: Array
    Z: Array
    bandwidth: float
    mean: Array
    variance: Array


def setting(n: int = 2048, n_test: int = 1024, seed: int = 0) -> Setting:
    """Draw the paper's data, and compute the posterior by a Cholesky factor of the whole kernel matrix."""
    rng = np.random.default_rng(seed)
    X, Z = rng.uniform(-5, 5, (n, 2)), rng.uniform(-5, 5, (n_test, 2))
    radius = np.linalg.norm(X, axis=1)
    y = np.cos(0.5 * np.pi * radius) * np.exp(-0.1 * np.pi * radius) + 0.1 * rng.normal(size=n)
    bandwidth = median_distance(X)
    kernel = Gaussian()
    factor = np.linalg.cholesky(kernel.matrix(X, X, bandwidth) + NOISE * np.eye(n))
    across = np.linalg.solve(factor, kernel.matrix(X, Z, bandwidth))
    mean = across.T @ np.linalg.solve(factor, y)
    return Setting(X, y, Z, bandwidth, mean, 1.0 - np.einsum("ij,ij->j", across, across))


def model(given: Setting, **arguments: Any) -> GaussianProcessRegressor:
    """A Gaussian process on inputs and targets as they are."""
    kernel = Gaussian(given.bandwidth)
    return GaussianProcessRegressor(kernel, NOISE, normalize_y=False, standardize=False, **arguments)


def relative(a: Array, b: Array) -> float:
    """The relative L2 error of a."""
    return float(np.linalg.norm(a - b) / np.linalg.norm(b))


def least_squares(given: Setting, n_features: int, quasi_random: bool, seed: int) -> tuple[float, float, float]:
    """The relative errors of mean and variance, and megabytes."""
    process = model(given, n_features=n_features, quasi_random=quasi_random, seed=seed)
    process.learn_many(given.X, given.y)
    said = process.predict_many(given.Z, with_dist=True)
    errors = relative(said[:, 0], given.mean), relative(said[:, 1] ** 2, given.variance)
    return *errors, process.memory_bytes / 1e6


def batches(given: Setting, steps: int, seed: int) -> Iterator[Array]:
    """The rows of each step, pass after pass in another order."""
    rng = np.random.default_rng(seed)
    per_pass = len(given.X) // BATCH
    for step in range(steps):
        if step % per_pass == 0:
            order = rng.permutation(len(given.X))
        yield order[step % per_pass * BATCH :][:BATCH]


def explained(given: Setting, variance: VarianceEstimator, steps: int, seed: int) -> Iterator[tuple[int, Array]]:
    """The errors of A(x, x) at the test points, step by step."""
    process = model(given, n_features=1, variance=variance, seed=seed)
    for step, rows in enumerate(batches(given, steps, seed), start=1):
        process.learn_many(given.X[rows], given.y[rows])
        if step in LOOKS:
            said = process.predict_many(given.Z, with_dist=True)
            yield step, np.abs(said[:, 1] ** 2 - given.variance)


def points_of(given: Setting) -> TestPointFunctions:
    """The functions of the test points."""
    points = [dict(enumerate(row)) for row in given.Z.tolist()]
    return TestPointFunctions(points, BATCH, 64, POINT_FEATURES, sample_size=len(given.X))


def operator_of(given: Setting) -> VarianceOperator:
    """The operator, at a small budget."""
    return VarianceOperator(BATCH, 64, OPERATOR_FEATURES, sample_size=len(given.X))


def spread(values: Array) -> str:
    """The mean over seeds, with the largest."""
    return f"{values.mean():.1%} ({values.max():.1%})"


#: Records of a call that predicts and learns them one by one.
_A_CALL = 25
COST_HEADER = ["what", "peer", "ours, ms", "peer, ms", "peer over ours"]


def cost_of_records(given: Setting, n_features: int, n_rounds: int) -> list[str]:
    """Return the row of a record that is predicted with its distribution, then learned; the peer gets the columns."""
    X = given.X[:_A_CALL]
    turns = X @ np.random.default_rng(0).normal(size=(X.shape[1], n_features)) / given.bandwidth
    columns = np.hstack([np.cos(turns), np.sin(turns)]) / np.sqrt(n_features)

    def one_by_one(regressor: Any, rows: Array) -> Any:
        records = [(dict(enumerate(row)), target) for row, target in zip(rows.tolist(), given.y.tolist(), strict=False)]

        def call() -> None:
            for x, target in records:
                regressor.predict_one(x, with_dist=True)
                regressor.learn_one(x, target)

        return call

    calls = {
        "ours": one_by_one(model(given, n_features=n_features, seed=1), X),
        "peer": one_by_one(BayesianLinearRegression(alpha=1.0, beta=1 / NOISE), columns),
    }
    what = f"a record, predicted with its distribution and learned, F = {n_features}"
    return cost_row(what, "River's BayesianLinearRegression, given the columns", calls, n_rounds, _A_CALL)


def cost_of_all(given: Setting, n_features: int, n_rounds: int) -> list[str]:
    """Return the row of all records learned by one call, and all test points predicted with deviations."""

    def ours() -> None:
        process = model(given, n_features=n_features, seed=1)
        process.learn_many(given.X, given.y)
        process.predict_many(given.Z, with_dist=True)

    def peer() -> None:
        exact = ExactRegressor(RBF(given.bandwidth), alpha=NOISE, optimizer=None)
        exact.fit(given.X, given.y).predict(given.Z, return_std=True)

    what = f"{len(given.X):,} records learned and {len(given.Z):,} predicted with deviations, F = {n_features}"
    return cost_row(what, "scikit-learn's GaussianProcessRegressor, exact", {"ours": ours, "peer": peer}, n_rounds, 1)


def cost_row(what: str, peer: str, calls: rounds.Calls, n_rounds: int, n: int) -> list[str]:
    """Return a row with the milliseconds of both, a call being of n."""
    ours, peers = rounds.interleaved(calls, n_rounds).values()
    times = [f"{np.median(seconds) * 1e3 / n:,.2f}" for seconds in (ours, peers)]
    return [what, peer, *times, rounds.spread(rounds.over(peers, ours))]


def main() -> None:
    options = asked(__doc__, quick="a small run, to see that it works")
    quick = options.quick
    given = setting(256 if quick else 2048, 32 if quick else 1024)
    sizes = (16, 32) if quick else (64, 128, 256, 512)
    seeds = range(1 if quick else 3)
    rows = []
    for quasi_random in (True, False):
        name = "quasi-random" if quasi_random else "random"
        for F in sizes:
            runs = np.array([least_squares(given, F, quasi_random, seed) for seed in seeds])
            rows.append([name, F, spread(runs[:, 0]), spread(runs[:, 1]), f"{runs[0, 2]:.1f}"])
            print(rows[-1], flush=True)
    steps = LOOKS[0] if quick else LOOKS[-1]
    few = setting(256, 8) if quick else setting(2048, 48)
    by_gradients = []
    for name, variance in (("test-point functions", points_of(few)), ("operator", operator_of(few))):
        for step, errors in explained(few, variance, steps, seed=0):
            by_gradients.append([name, f"{step:,}", f"{errors.mean():.4f}", f"{errors.max():.4f}"])
            print(by_gradients[-1], flush=True)
    n_rounds = 1 if quick else 5
    costs = [cost_of_records(given, 256, n_rounds), cost_of_all(given, sizes[-1], n_rounds)]
    publish(
        options,
        "gaussian_process",
        "The Gaussian process against the exact posterior",
        f"The setting of the DSG paper's section 7.2: {len(given.X):,} records of two inputs, {len(given.Z):,} test "
        "points, noise variance .1, Gaussian kernel, bandwidth the median distance. The prior's variance is 1.",
        f"## Least-squares posterior\n\nOne pass; relative L2 errors at the test points, mean over {len(seeds)} seeds "
        "(the largest in brackets).",
        table(["frequencies", "F", "mean", "variance", "MB"], rows),
        f"## Variance by doubly stochastic gradients\n\nAbsolute error of A(x, x) at {len(few.Z)} test points, B = "
        f"{BATCH}, passes over the same {len(few.X):,} records (`sample_size={len(few.X)}`) in other orders. The "
        f"functions of the test points have at most {POINT_FEATURES:,} features in blocks of 64, the operator "
        f"{OPERATOR_FEATURES} of each stream in blocks of 64: {(2 * OPERATOR_FEATURES) ** 2 * 8 / 1e6:.1f} MB.",
        table(["estimator", "steps", "mean error", "largest error"], by_gradients),
        f"## What it costs\n\nCPU time of all threads, medians of {n_rounds} rounds that take both in turn; the lowest "
        "and highest ratio in brackets. The exact process is solved again whenever a record comes, in time that grows "
        "with the cube of their number; ours has the same cost for each.",
        table(COST_HEADER, costs),
    )


if __name__ == "__main__":
    main()
