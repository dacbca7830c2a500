"""The models and records of the golden states.

    python -m tests.golden.estimators FOLDER [NAME...]

writes the states of this version and what their models predict for some records. A change that keeps the version must
read the files as they are: make only the files of new models, by name.
"""

import gzip
import json
import math
import sys
from functools import partial
from pathlib import Path

import numpy as np

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
)
from streamkernel.gaussian_process import TestPointFunctions, VarianceOperator
from streamkernel.growth import UDSG
from streamkernel.kernels import DotProduct, Gaussian, Matern, Polynomial
from streamkernel.state import to_bytes
from streamkernel.window import S3GD, Exact

_ADAPTIVE = {"n_features": 8, "n_trees": 1, "tree_window": 60, "buffer_size": 40, "metric_schedule": (100, 250)}
_GROWING = {"block_size": 8, "batch_size": 16, "max_features": 64}


def _refitted(inner, seed, **given):
    return WindowRefit(inner(**_GROWING, seed=seed), window=150, every=100, **given)


#: Name -> the model, and how many records it has learned: of the growing ones also before their bandwidth is fixed.
MODELS = {
    "adaptive_classifier": (AdaptiveKernelClassifier, _ADAPTIVE, 310),
    "adaptive_regressor": (AdaptiveKernelRegressor, _ADAPTIVE, 310),
    "classifier": (KernelClassifier, _GROWING, 310),
    "classifier_early": (KernelClassifier, _GROWING, 150),
    "regressor": (KernelRegressor, _GROWING, 310),
    "regressor_early": (KernelRegressor, _GROWING, 150),
    # Without any of the arguments of the papers' machine.
    "classifier_mixture": (KernelClassifier, {"max_features": 64}, 310),
    "regressor_mixture": (KernelRegressor, {"max_features": 64}, 310),
    "regressor_mixture_early": (KernelRegressor, {"max_features": 64}, 150),
    # Preconditioned steps, averages, kernels beside the Gaussian, the Gaussian process.
    "classifier_preconditioned": (KernelClassifier, {**_GROWING, "average": True}, 310),
    "regressor_sum": (
        KernelRegressor,
        {**_GROWING, "kernel": Gaussian() + 0.5 * DotProduct(), "growth": UDSG(), "blocks_per_step": 3},
        310,
    ),
    "regressor_process": (GaussianProcessRegressor, {"n_features": 6, "kernel": Gaussian() + 0.5 * Matern()}, 310),
    "regressor_process_early": (GaussianProcessRegressor, {"n_features": 6, "quasi_random": False}, 150),
    "regressor_process_operator": (
        GaussianProcessRegressor,
        {"n_features": 4, "variance": VarianceOperator(16, 4, 12), "with_noise": True},
        310,
    ),
    "regressor_process_points": (
        GaussianProcessRegressor,
        {
            "n_features": 4,
            "variance": TestPointFunctions([{"a": 0.5, "b": 100.0, "late": 5.0}, {"word": "x"}], 16, 4, 8),
        },
        150,
    ),
    "regressor_polynomial": (KernelRegressor, {**_GROWING, "kernel": Polynomial(2), "precondition": False}, 310),
    "novelty": (KernelNoveltyDetector, _GROWING, 310),
    "novelty_early": (KernelNoveltyDetector, _GROWING, 150),
    "classifier_refit": (partial(_refitted, KernelClassifier), {"solver": Exact(l2=1e-2)}, 310),
    "classifier_refit_early": (partial(_refitted, KernelClassifier), {"solver": S3GD(anchors=20)}, 150),
    "regressor_refit": (partial(_refitted, KernelRegressor), {"solver": Exact(l2=1e-2)}, 310),
    # Lags, a metric in the making, and a bound on the bytes.
    "regressor_lags": (AdaptiveKernelRegressor, {**_ADAPTIVE, "lags": 3}, 310),
    "classifier_lags": (AdaptiveKernelClassifier, {**_ADAPTIVE, "lags": 1}, 310),
    "regressor_relearning": (AdaptiveKernelRegressor, {**_ADAPTIVE, "buffer_size": 200}, 252),
    "classifier_bytes": (AdaptiveKernelClassifier, {"max_bytes": 2**14}, 310),  # without a memory
    "regressor_bytes": (AdaptiveKernelRegressor, {"max_bytes": 2**17, "lags": 3}, 310),
    # Saved before the first record.
    "regressor_fresh": (AdaptiveKernelRegressor, _ADAPTIVE, 0),
    "regressor_bytes_fresh": (AdaptiveKernelRegressor, {"max_bytes": 2**17, "lags": 3}, 0),
    "classifier_bytes_fresh": (AdaptiveKernelClassifier, {"max_bytes": 2**17}, 0),
    "classifier_least_squares": (KernelLeastSquaresClassifier, {"n_features": 8}, 310),
    "regressor_least_squares": (KernelLeastSquaresRegressor, {"n_features": 8}, 310),
    "regressor_least_squares_fresh": (KernelLeastSquaresRegressor, {"n_features": 8}, 0),
    "several_numbers": (KernelMultiTargetRegressor, _GROWING, 310),
    "several_numbers_early": (KernelMultiTargetRegressor, _GROWING, 150),
    "several_numbers_mixture": (KernelMultiTargetRegressor, {"max_features": 64}, 310),
    "several_labels": (KernelMultiLabelClassifier, _GROWING, 310),
    "density_ratio": (KernelDensityRatio, {**_GROWING, "p": "y", "q": "n", "window": 100}, 310),
}


def fresh(name):
    """A model that has learned nothing."""
    kind, arguments, _ = MODELS[name]
    return kind(**arguments, seed=7)


def records(name, start, stop):
    """Some of the records that it learns: numbers, a word, gaps, a late input; a label or a number."""
    rng = np.random.default_rng(11)
    table = rng.normal(size=(stop, 3)) * [1.0, 20.0, 0.1] + [0.0, 100.0, 5.0]
    for i, (a, b, c) in enumerate(table.tolist()):
        x = {"a": a, "b": b, "word": "xyz"[i % 3], **({"late": c} if i > 120 else {})}
        if i % 7 == 0:
            x["b"] = None
        value = math.sin(2 * a) + b / 20
        if i >= start and name.startswith("several"):  # a target that comes late, and is missing now and then
            numbers = {"wave": value * 3 + 50, **({"late": a * b} if i > 40 and i % 5 else {})}
            yield x, numbers if "numbers" in name else {label: y > 55 for label, y in numbers.items()}
        elif i >= start:
            yield x, value * 3 + 50 if name.startswith(("regressor", "adaptive_regressor")) else "ny"[value > 5]


def learn(model, x, y):
    """Learn a record, with its label or number where the model takes one."""
    if isinstance(model, KernelNoveltyDetector):
        model.learn_one(x)
    else:
        model.learn_one(x, y)


def predictions(model, name):
    """Predictions of records that the model has not learned: probabilities, numbers (with deviations) or scores."""
    xs = [x for x, _ in records(name, 400, 405)]
    if isinstance(model, KernelNoveltyDetector):
        return [model.score_one(x) for x in xs]
    if isinstance(model, GaussianProcessRegressor):
        return [{"mu": one.mu, "sigma": one.sigma} for one in (model.predict_one(x, with_dist=True) for x in xs)]
    if isinstance(model, KernelMultiLabelClassifier):
        return [{label: p[True] for label, p in model.predict_proba_one(x).items()} for x in xs]
    return [model.predict_proba_one(x) if hasattr(model, "predict_proba_one") else model.predict_one(x) for x in xs]


if __name__ == "__main__":
    folder, *names = Path(sys.argv[1]), *sys.argv[2:]
    folder.mkdir(parents=True, exist_ok=True)
    said = folder / "said.json"
    answers = json.loads(said.read_text()) if said.exists() else {}
    for name in names or MODELS:
        model = fresh(name)
        for x, y in records(name, 0, MODELS[name][2]):
            learn(model, x, y)
        (folder / f"{name}.bin.gz").write_bytes(gzip.compress(to_bytes(model.__getstate__()), mtime=0))
        answers[name] = predictions(model, name)
    said.write_text(json.dumps(answers, indent=1) + "\n")
