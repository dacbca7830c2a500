"""Models of every kind of arguments, and streams for them: late inputs, strings, gaps, classes that join, weights."""

import inspect
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st
from river.optim.losses import Absolute, Hinge, Huber
from river.optim.schedulers import InverseScaling

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
from streamkernel.kernels import Gaussian, Laplacian, Matern, Polynomial
from streamkernel.losses import is_smooth
from streamkernel.window import S3GD, Exact

#: The estimators, by what they have in common.
FAMILIES = [
    "growing",
    "mixture",
    "structured",
    "several",
    "adaptive",
    "process",
    "least squares",
    "window",
    "novelty",
    "ratio",
]

GROWTHS = [None, DSG(), UDSG(), UDSG(grow=1, reuse=2), CDSG(cap=2.0), CDSG(cap=3.0)]


TWO_SIDED = [losses.Log(), losses.SquaredHinge(), Hinge()]


NUMERIC = [None, Huber(1.0), Absolute(), losses.EpsilonInsensitive(), losses.Quantile(0.7)]


@dataclass(frozen=True)
class Case:
    """A model and a stream for it."""

    model: Any
    xs: list[dict[Any, Any]]
    ys: list[Any]
    ws: list[float]

    def fresh(self):
        return self.model.clone()


@st.composite
def models(draw, **fixed):
    arguments = {
        "kernel": draw(st.sampled_from([None, None, Gaussian(1.5), Laplacian() + 0.3 * Polynomial(2)])),
        "growth": draw(st.sampled_from(GROWTHS)),
        "block_size": draw(st.sampled_from([1, 3, 8, 32])),
        "batch_size": draw(st.integers(1, 40)),
        "step": draw(st.sampled_from([None, None, InverseScaling(0.5, 0.5)])),
        "regularization": draw(st.sampled_from([1e-6, 0.3])),
        "standardize": draw(st.sampled_from([None, None, False])),
        "max_inputs": draw(st.sampled_from([10_000, 10_000, 9])),
        "cache_bytes": draw(st.sampled_from([2**26, 2000, 0])),
        "dtype": draw(st.sampled_from(["float32", "float64"])),
        "seed": draw(st.integers(0, 2**64 - 1)),
        "precondition": draw(st.sampled_from([None, None, True, False])),
        "blocks_per_step": draw(st.sampled_from([1, 1, 3])),
        "average": draw(st.sampled_from([False, False, True])),
        **fixed,
    }
    # A machine of width-1 blocks that grows at every record is slow in plain Python; its budget is small here.
    arguments["max_features"] = draw(st.sampled_from([40, 128]))
    return arguments


@st.composite
def adaptive_models(draw, **fixed):
    return {
        "kernel": draw(st.sampled_from([None, None, Gaussian(1.5), Matern()])),
        "n_features": draw(st.sampled_from([1, 5, 16, 40])),
        "ridge": draw(st.sampled_from([0.03, 0.1, 2.0])),
        "drift_rates": draw(st.sampled_from([(0.0, 1e-3, 3e-2), (0.1,), (0.0, 1.0)])),
        "metric_schedule": draw(st.sampled_from([(100, 250, 500, 1000), None, (1, 2, 60, 61), (5, 40, 300), (1,)])),
        "buffer_size": draw(st.sampled_from([1000, 1, 30])),
        "standardize": draw(st.sampled_from([None, None, False])),
        "max_inputs": draw(st.sampled_from([1000, 1000, 9])),
        "n_trees": draw(st.sampled_from([6, 2, 0])),
        "tree_window": draw(st.sampled_from([2000, 60])),
        "memory": draw(st.sampled_from([10_000, 40, 0])),
        "lags": draw(st.sampled_from([0, 0, 1, 3])),
        "max_bytes": draw(st.sampled_from([None, None, None, 2**17])),
        "seed": draw(st.integers(0, 2**64 - 1)),
        **fixed,
    }


@st.composite
def least_squares_models(draw, **fixed):
    names = ("kernel", "n_features", "ridge", "drift_rates", "standardize", "max_inputs", "seed")
    given = draw(adaptive_models(**fixed))
    return {name: given[name] for name in (*names, *fixed)}


@st.composite
def process_models(draw):
    points = [{"x0": 0.5}, {"x0": -1.0, "text": "v0", "late3": 2.0}]
    variances = [
        None,
        None,
        VarianceOperator(batch_size=7, block_size=3, max_features=12),
        TestPointFunctions(points, batch_size=5, block_size=4, max_features=8, sample_size=100),
    ]
    return {
        "kernel": draw(st.sampled_from([None, None, Gaussian(1.5), Matern(), Gaussian() + 0.5 * Laplacian(2.0)])),
        "noise": draw(st.sampled_from([0.1, 1e-4, 3.0])),
        "n_features": draw(st.sampled_from([1, 5, 16])),
        "variance": draw(st.sampled_from(variances)),
        "normalize_y": draw(st.booleans()),
        "with_noise": draw(st.booleans()),
        "drift_rate": draw(st.sampled_from([0.0, 0.0, 1e-3])),
        "quasi_random": draw(st.sampled_from([None, False])),
        "standardize": draw(st.sampled_from([None, None, False])),
        "max_inputs": draw(st.sampled_from([1000, 1000, 9])),
        "seed": draw(st.integers(0, 2**64 - 1)),
    }


def _mixture(draw, estimator, **limits):
    """A machine with several heads: none of the arguments of the papers' machine is given."""
    arguments = {
        "max_features": draw(st.sampled_from([40, 300, None])),
        "standardize": draw(st.sampled_from([None, None, False])),
        "max_inputs": draw(st.sampled_from([10_000, 10_000, 9])),
        "seed": draw(st.integers(0, 2**64 - 1)),
    }
    return estimator(**arguments, **limits)


def _growing(draw, kind, **fixed):
    known = inspect.signature(kind).parameters
    return kind(**{name: value for name, value in draw(models(**fixed)).items() if name in known})


def _structured(draw, model):
    """With structured frequencies, and bounds that let many features stand beside each other."""
    most = draw(st.sampled_from([40, 128, 4096]))
    block_size = draw(st.sampled_from([1, 7, 32, 50, 100])) if most == 128 else draw(st.sampled_from([7, 32]))
    kernel = Gaussian(draw(st.sampled_from([None, 1.5])), structured=True)
    return model.clone({"kernel": kernel, "dtype": "float32", "max_features": most, "block_size": block_size})


def _refitted(draw, model):
    window, every = draw(st.sampled_from([7, 60, 300])), draw(st.sampled_from([13, 32, 50, 101]))
    if isinstance(model.loss, losses.Log | type(None)) and draw(st.booleans()):  # few bytes are for records
        return WindowRefit(model, window, every, S3GD(anchors=5, neighbors=2, max_passes=2, seed=1), 9000)
    return WindowRefit(model, window, every, Exact(l2=1e-3, max_passes=3), 2**25)


def _model(draw, family, kind):
    """A model of a family for labels of a kind."""
    if family == "process":
        return GaussianProcessRegressor(**draw(process_models()))
    if family == "novelty":
        nu, precondition = draw(st.sampled_from([0.1, 0.5])), draw(st.sampled_from([None, False]))
        return _growing(draw, KernelNoveltyDetector, nu=nu, precondition=precondition)
    if family == "ratio":
        return _growing(draw, KernelDensityRatio, window=draw(st.sampled_from([2000, 30])))
    limits = {"max_classes": draw(st.sampled_from([1000, 1000, 3]))} if kind == "classes" else {}
    if family == "adaptive" and kind == "numbers":
        return AdaptiveKernelRegressor(**draw(adaptive_models(predicts=draw(st.sampled_from(["mean", "median"])))))
    if family == "adaptive":
        return AdaptiveKernelClassifier(**draw(adaptive_models(lags=draw(st.sampled_from([0, 1])), **limits)))
    if family == "least squares" and kind == "numbers":
        return KernelLeastSquaresRegressor(**draw(least_squares_models()))
    if family == "least squares":
        return KernelLeastSquaresClassifier(**draw(least_squares_models(**limits)))
    if family == "mixture":
        return _mixture(draw, KernelRegressor if kind == "numbers" else KernelClassifier, **limits)
    if family == "several":
        numbers, most = kind == "numbers", draw(st.sampled_from([1000, 2]))
        estimator = KernelMultiTargetRegressor if numbers else KernelMultiLabelClassifier
        most = {"max_targets" if numbers else "max_labels": most}
        if draw(st.booleans()):
            return _mixture(draw, estimator, **most)
        loss = draw(st.sampled_from(NUMERIC if numbers else [None, *TWO_SIDED]))
        return _growing(draw, estimator, loss=loss, **most)
    smooth = family == "window"
    if kind == "classes":
        model = _growing(draw, KernelClassifier, **limits)
    elif kind == "sides":
        loss = draw(st.sampled_from([loss for loss in TWO_SIDED if not smooth or is_smooth(loss)]))
        model = _growing(draw, KernelClassifier, loss=loss)
    else:
        loss = draw(st.sampled_from([loss for loss in NUMERIC if not smooth or loss is None or is_smooth(loss)]))
        model = _growing(draw, KernelRegressor, loss=loss)
    change = {"structured": _structured, "window": _refitted}.get(family)
    return change(draw, model) if change else model


def _several(draw, rng, ys):
    """Targets of which each record has some, later ones too: the others follow from the first."""
    gaps, n = draw(st.sampled_from([0.0, 0.3])), draw(st.integers(1, 5))
    appears = [0, *(int(first) for first in rng.integers(0, len(ys), n - 1))]
    names = ["a", "b", 2, True, ("c", None)][:n]
    for i, y in enumerate(ys):
        values = [y, not y, y, rng.random() < 0.2, True] if isinstance(y, bool) else [y, -y, y + 5, y * y, 3]
        known = zip(names, values, appears, strict=False)
        yield {
            name: None if rng.random() < gaps / 2 else value
            for name, value, first in known
            if i >= first and rng.random() >= gaps / 2
        }


@st.composite
def cases(draw, family, longest=260):
    """Late inputs, strings, booleans, absent values, classes that join, weights, records without a label.

    Or, as records that hold the same numbers throughout have a way of their own, nothing but numbers. Numbers may have
    few values, so that many records are as near as others, and strings may hardly ever come twice.
    """
    n = draw(st.integers(1, longest))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    d = draw(st.integers(1, 12))
    numbers_only = draw(st.sampled_from([False, False, True]))
    rounded = draw(st.sampled_from([False, False, True]))
    late = 0 if numbers_only else draw(st.integers(0, 12))
    n_values = draw(st.integers(1, 20))
    lines_of_an_order = 0 if numbers_only else draw(st.sampled_from([0, 0, 1, 3]))
    missing = 0.0 if numbers_only else draw(st.sampled_from([0.0, 0.2]))
    unlabeled = 0.0 if family == "novelty" else draw(st.sampled_from([0.0, 0.1, 0.5]))
    appears = {f"late{j}": int(rng.integers(0, n)) for j in range(late)}
    xs = []
    for i in range(n):
        numbers = rng.normal(size=d)
        x = {f"x{j}": float(v) for j, v in enumerate(numbers.round() if rounded else numbers)}
        x |= {name: float(rng.normal()) for name, first in appears.items() if i >= first and rng.random() < 0.7}
        if not numbers_only:
            x["text"] = f"v{rng.integers(0, 1 + n_values * i // n)}"
            x["flag"] = bool(rng.random() < 0.3)
        if lines_of_an_order:
            x["order"] = f"o{i // lines_of_an_order}"
        x["whole"] = int(rng.integers(-3, 4))
        xs.append({name: v for name, v in x.items() if rng.random() >= missing})
    one_kind = {"process": "numbers", "novelty": "numbers", "ratio": "sides"}.get(family)
    kind = one_kind or draw(st.sampled_from(["classes", "classes", "sides", "numbers"]))
    if family == "several":
        kind = draw(st.sampled_from(["sides", "numbers"]))
    if kind == "classes":
        n_classes = draw(st.integers(1, 12))
        ys = [f"c{rng.integers(0, k)}" for k in 1 + np.arange(n) * n_classes // n]
    elif kind == "sides":
        names = ("p", "q") if family == "ratio" else draw(st.sampled_from([(False, True), (0, 1), ("a", "b")]))
        ys = [names[int(rng.random() < 0.5)] for _ in range(n)]
    else:
        ys = [float(3 * x.get("x0", 0.0) + rng.normal()) for x in xs]
    if family == "several":
        ys = _several(draw, rng, ys if kind == "numbers" else [y == names[0] for y in ys])
    model = _model(draw, family, kind)
    ys = [None if rng.random() < unlabeled else y for y in ys]
    ws = [float(w) for w in (rng.choice([1.0, 0.0, 0.5, 3.0], n) if draw(st.booleans()) else np.ones(n))]
    return Case(model, xs, ys, ws)
