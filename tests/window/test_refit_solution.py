"""The coefficients after a refit: against ridge and logistic regression on the same features, of any solver."""

import math

import numpy as np
import pytest
from river.optim.losses import Huber
from scipy import special

from streamkernel import KernelClassifier, KernelRegressor, WindowRefit
from streamkernel.estimators.base import machine_of
from streamkernel.kernels import Gaussian, Polynomial
from streamkernel.losses import Log, SquaredHinge
from streamkernel.window import DSPDC, S3GD, Exact

INNER = {"max_features": 48, "block_size": 16, "batch_size": 16, "dtype": "float64", "seed": 1}


def stream(n=330, seed=5):
    """Numbers, of which one comes late and some are missing; a string."""
    rng = np.random.default_rng(seed)
    xs = []
    for i, (a, b) in enumerate(rng.normal(size=(n, 2)).tolist()):
        xs.append({"a": a, "b": b, "text": "uvw"[i * i % 3], **({"late": a * b} if i > 200 else {})})
        if i % 7 == 0:
            del xs[-1]["b"]
    return xs


def numbers(xs):
    return [5 + 3 * math.sin(2 * x["a"]) + x.get("b", 1.0) for x in xs]


def features(model, xs):
    """The features of records, divided by the root of the number of blocks, by the machine as it stands."""
    machine = machine_of(model)
    values = np.array([[x.get(name, np.nan) for name in ("a", "b", "late")] for x in xs])
    order = [
        next(i for i, name in enumerate(("a", "b", "late")) if name == n) if n in ("a", "b", "late") else -1
        for n in model.input_names
    ]
    columns = [
        values[:, k] if k >= 0 else np.array([1.0 if f"text={x['text']}" == n else np.nan for x in xs])
        for k, n in zip(order, model.input_names, strict=True)
    ]
    X = machine.inputs.scaler.as_of_now(np.stack(columns, axis=1)).astype(machine.expansion.dtype)
    blocks = range(machine.expansion.n_blocks)
    A = np.concatenate([machine.expansion.features(k, X, machine.inputs.columns.keys) for k in blocks], axis=1)
    return A.astype(float) / math.sqrt(machine.expansion.n_blocks)


def coefficients(model):
    """The coefficients of those features, shape (K, p)."""
    expansion = machine_of(model).expansion
    alpha = expansion.alpha.astype(float) * expansion.scale * math.sqrt(expansion.n_blocks)
    return alpha.transpose(1, 0, 2).reshape(expansion.n_outputs, -1)


def test_of_the_squared_loss_it_is_ridge_regression():
    xs, l2 = stream(), 1e-3
    ys, ws = numbers(xs), [1.0, 0.5, 3.0] * (len(xs) // 3)
    model = WindowRefit(KernelRegressor(**INNER), window=120, every=1000, solver=Exact(l2=l2))
    model.advance(xs, ys, ws)
    before = coefficients(model)
    assert model.refit()
    A, w = features(model, xs[-120:]), np.array(ws[-120:])
    w /= w.mean()
    y = machine_of(model).targets.as_of_now(np.array(ys[-120:]))
    C = A.T @ (A * w[:, None]) / 120 + l2 * np.eye(A.shape[1])
    expected = np.linalg.solve(C, A.T @ (w * y) / 120)
    np.testing.assert_allclose(coefficients(model)[0], expected, rtol=1e-6, atol=1e-8)
    assert not np.allclose(before[0], expected, atol=1e-2)


@pytest.mark.parametrize(
    "solver",
    [
        DSPDC(l2=1e-2, max_passes=400, tol=1e-12, primal=None, seed=1),
        S3GD(l2=1e-2, max_passes=400, tol=1e-12, anchors=30, seed=1),
    ],
)
@pytest.mark.parametrize("task", ["squared", "log", "squared_hinge", "softmax of two"])
def test_other_solvers_come_to_the_same(solver, task):
    xs = stream()
    loss = {"squared": None, "log": Log(), "squared_hinge": SquaredHinge(), "softmax of two": None}[task]
    ys = numbers(xs) if task == "squared" else [y > 5 for y in numbers(xs)]
    kind = KernelRegressor if task == "squared" else KernelClassifier
    # Of two outputs, whose squares add up, twice the weight is that of one.
    exact = Exact(l2=2e-2 if task == "softmax of two" else 1e-2, tol=1e-8, max_passes=2000)
    models = []
    for one in (exact, solver):
        models.append(WindowRefit(kind(loss=loss, **INNER), window=200, every=1000, solver=one))
        models[-1].advance(xs, ys)
        models[-1].refit()
    first, second = map(coefficients, models)
    if task == "softmax of two":
        first, second = first[1] - first[0], second[1] - second[0]
    np.testing.assert_allclose(second, first, atol=2e-4)


def test_the_softmax_of_three_classes_is_at_its_optimum():
    xs, l2 = stream(), 1e-2
    ys = [f"class {int(y > 4) + int(y > 6)}" for y in numbers(xs)]
    model = WindowRefit(
        KernelClassifier(**INNER),
        window=330,
        every=1000,
        solver=Exact(l2=l2, tol=1e-9, max_passes=3000),
    )
    model.advance(xs, ys)
    model.refit()
    A, x = features(model, xs), coefficients(model)
    p = special.softmax(A @ x.T, axis=1)
    for i, y in enumerate(ys):
        p[i, model.classes.index(y)] -= 1
    gradient = p.T @ A / len(xs) + l2 * x
    assert np.abs(gradient).max() < 1e-7


@pytest.mark.parametrize(
    "inner",
    [
        KernelRegressor(loss=Huber(1.0), **INNER),
        KernelRegressor(**{**INNER, "dtype": "float32"}, kernel=Gaussian(structured=True)),
        KernelRegressor(**INNER, kernel=Gaussian(2.0) + 0.5 * Polynomial(2)),
        KernelRegressor(**INNER, precondition=False),
    ],
    ids=["huber", "structured", "sum", "plain steps"],
)
def test_every_kind_of_model_is_better_for_it(inner):
    xs = stream()
    ys = numbers(xs)
    model = WindowRefit(inner.clone(), window=330, every=1000)
    model.advance(xs, ys)

    def error():
        return np.mean([abs(model.predict_one(x) - y) for x, y in zip(xs, ys, strict=True)])

    before = error()
    assert model.refit()
    assert error() < 0.6 * before


def test_the_newest_records_are_solved_where_features_are_too_many():
    xs = stream()
    matrix_of_100 = 100 * 8 * 2 * 48
    model = WindowRefit(
        KernelRegressor(**INNER), 300, 1000, S3GD(anchors=10, max_passes=2, seed=1), max_bytes=matrix_of_100
    )
    model.advance(xs, numbers(xs))
    model.refit()
    assert (model.n_window, model.last_refit.n_records) == (300, 100)
