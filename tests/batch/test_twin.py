"""A batch step is its plain twin, number for number: every growth, loss and kind of kernel."""

from types import SimpleNamespace

import numpy as np
import pytest
from river.optim.losses import Hinge, Huber, Squared
from river.optim.schedulers import InverseScaling

from streamkernel import KernelClassifier, KernelDensityRatio, KernelNoveltyDetector, KernelRegressor, losses
from streamkernel.estimators.base import machine_of
from streamkernel.growth import CDSG, DSG, UDSG
from streamkernel.kernels import Gaussian, Laplacian, Polynomial
from tests.growth import naive
from tests.naive import batch_losses
from tests.naive.batch_step import Twin

SIZES = [24, 15, 36, 1, 20, 28]
NU = 0.01
GIVEN = {"block_size": 6, "max_features": None, "regularization": NU, "dtype": "float64", "seed": 3}
NO_KEYS = np.zeros(0, np.uint64)
#: Estimator, its loss, and of the loss: the derivative, L and M.
KINDS = {
    "squared": (KernelRegressor, Squared(), batch_losses.squared, 2.0, None),
    "huber": (KernelRegressor, Huber(1.0), batch_losses.huber, 1.0, 1.0),
    "quantile": (KernelRegressor, losses.Quantile(0.9), batch_losses.quantile, 1.0, 1.0),
    "hinge": (KernelClassifier, Hinge(), batch_losses.hinge, 1.0, 1.0),
    "softmax": (KernelClassifier, None, batch_losses.softmax, 0.5, 2**0.5),
    "novelty": (KernelNoveltyDetector, None, None, 1.0, 1.0),
    "ratio": (KernelDensityRatio, None, None, 10.0, None),
}


def _stream(kind, seed=5):
    rng = np.random.default_rng(seed)
    n = sum(SIZES)
    X = rng.normal(size=(n, 3)) * [1.0, 2.0, 0.5] + [0.0, 1.0, 0.0]
    f = np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=n)
    if kind in ("hinge", "ratio"):
        y = f > 0
    elif kind == "novelty":
        y = np.ones(n, np.bool_)
    else:
        y = np.digitize(f, [-0.5, 0.5]) if kind == "softmax" else 4 * f + 1
    return X, y, rng.choice([0.0, 0.5, 1.0, 3.0], n)


def _model(kind, **given):
    estimator, loss = KINDS[kind][:2]
    own = {"novelty": {"nu": 0.2}, "ratio": {"p": True, "q": False, "window": 90}}.get(kind, {"loss": loss})
    arguments = {"kernel": Gaussian(1.1), **GIVEN, **own, **given}
    if kind == "novelty":
        del arguments["regularization"]
    return estimator(**arguments)


def _features(model):
    machine, keys, drawn = machine_of(model), machine_of(model).inputs.columns.keys, {}

    def of_gaussian(block, x):
        if block not in drawn:
            drawn[block] = naive.frequencies(machine, block)
        return naive.phi(x, drawn[block])

    def of_any(block, x):
        if (block, x.tobytes()) not in drawn:
            row = x[None].astype(machine.expansion.dtype)
            drawn[block, x.tobytes()] = machine.expansion.features(block, row, keys)[0].astype(np.float64)
        return drawn[block, x.tobytes()]

    own = type(machine.expansion.kernel) in (Gaussian, Laplacian) and not machine.expansion.kernel.structured
    return of_gaussian if own else of_any


def _twin(kind, model):
    machine, (_, _, derivative, L, M) = machine_of(model), KINDS[kind]
    updates, scale = machine.updates, machine.feature_scale
    scheduled = model.step is not None or kind == "novelty"

    def gamma(t, n):
        if kind == "novelty":
            return 1 / (0.2 * (t + 10) + 1)
        if model.step is not None:
            return model.step.get(t)
        if updates.preconditioned:
            return min(0.049 * n**0.5, 0.3 if M is None else 0.7) / (1 + t / 500)
        return 1 / (1 / model.gamma_0 + L * scale.kappa * (1 / n - 1 / model.batch_size)) / (1 + t / 200)

    loss = {"novelty": lambda: batch_losses.Threshold(0.2), "ratio": lambda: batch_losses.Ratio(5.0, 90)}.get(
        kind, lambda: batch_losses.Plain(derivative)
    )()
    return Twin(
        _features(model),
        3 if kind == "softmax" else 1,
        loss,
        L,
        M,
        model.growth or CDSG(),
        gamma,
        updates.regularization,
        updates.preconditioned,
        updates.blocks_per_step,
        model.max_features,
        seed=3,
        F=machine_of(model).expansion.block_size,
        kappa=scale.kappa,
        noise=((scale.kappa + scale.feature_bound) / scale.feature_bound) ** 2,
        bounded=scale.is_bounded,
        scheduled=scheduled,
    )


def _scaled(values, known):
    """Values by the mean and deviation of those known."""
    return (values - known.mean(axis=0)) / known.std(axis=0)


def _encoded(model, X, y, part, known):
    order = [int(name) for name in model.input_names]
    rows = np.clip(_scaled(X[part], X[known]), -4, 4) if machine_of(model).inputs.standardize else X[part]
    is_number = isinstance(model, KernelRegressor)
    return rows[:, order], _scaled(y[part], y[known]) if is_number else y[part].astype(float)


def _predicted(kind, scores, numbers):
    """What is shown of scores before a step: `numbers` are those known before, none before the first."""
    scores = np.array(scores)
    if kind == "softmax":
        return [dict(enumerate(batch_losses.softmax_into(row, 1.0))) if len(numbers) else {} for row in scores]
    if kind == "hinge":
        return [{False: 1 - p, True: p} for p in (1 / (1 + np.exp(-scores[:, 0]))).tolist()]
    return (numbers.mean() + numbers.std() * scores[:, 0]).tolist() if len(numbers) else [0.0] * len(scores)


def _assert_state(model, twin, size, tolerance):
    expansion, history = machine_of(model).expansion, machine_of(model).history
    alphas = np.array([alpha.T for alpha in twin.alphas]).reshape(expansion.alpha.shape)
    most = np.abs(alphas).max(initial=0.0)
    np.testing.assert_allclose(expansion.scale * expansion.alpha, alphas, rtol=0, atol=tolerance * most)
    if history.keeps_beta and twin.betas:
        np.testing.assert_allclose(
            history.beta, np.array(twin.betas), rtol=0, atol=tolerance * np.abs(twin.betas).max()
        )
    assert (model.n_steps, model.n_reused, model.last_batch_size) == (twin.t, twin.reused, size)


def assert_twin(kind, tolerance=1e-9, **given):
    """Batches of several sizes, each scaled by the moments of those before it, and its own until there is a block."""
    X, y, w = _stream(kind)
    model, twin, start = _model(kind, **given), None, 0
    for size in SIZES:
        part = slice(start, start + size)
        weights = w[part] if size > 1 else np.array([2.0])
        begun = model.n_grown > 0
        found = model.batch_step(X[part], y[part], weights)
        twin = twin or _twin(kind, model)
        rows, ys = _encoded(model, X, y, part, slice(0, start if begun else start + size))
        scores = twin.scores(rows, twin.mean if model.average and twin.t else None)
        if kind in ("squared", "huber", "quantile", "softmax", "hinge"):
            for one, other in zip(
                found.probabilities or found.predictions, _predicted(kind, scores, y[:start]), strict=True
            ):
                assert one == pytest.approx(other, rel=tolerance, abs=10 * tolerance)
        twin.step(rows, ys, weights)
        start += size
        _assert_state(model, twin, size, tolerance)
    given = rows.astype(model.dtype, order="C")
    shown = machine_of(model).solution.scores(given, machine_of(model).inputs.columns.keys, NO_KEYS)
    expected = twin.scores(rows, twin.mean if model.average else None)
    np.testing.assert_allclose(shown, expected, rtol=0, atol=tolerance * max(1, np.abs(expected).max()))
    return model, twin


GROWTHS = [DSG(), UDSG(1, 2), CDSG(), CDSG(cap=2.0), CDSG(cap=4.0)]
BOTH = pytest.mark.parametrize("precondition", [True, False], ids=["preconditioned", "plain"])


@BOTH
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "novelty"])
def test_every_loss(kind, precondition):
    model, twin = assert_twin(kind, precondition=precondition, growth=CDSG(), blocks_per_step=2, max_features=18)
    assert model.n_features == 18
    assert model.n_reused > 0
    if kind == "ratio":
        state, loss = model.__getstate__(), twin.loss
        for name, expected in (("counts", loss.counts), ("sizes", loss.sizes), ("means", loss.means)):
            np.testing.assert_allclose(state[f"sample_{name}"], expected, rtol=1e-9)


@pytest.mark.parametrize("growth", GROWTHS, ids=repr)
def test_the_threshold_of_novelties(growth):
    model, twin = assert_twin("novelty", growth=growth, max_features=18)
    assert model.threshold == pytest.approx(twin.loss.tau, rel=1e-9)
    assert (model.n_flagged, model.n_flagged > 0) == (twin.loss.flagged, True)


@BOTH
@pytest.mark.parametrize(("kind", "blocks"), [("softmax", 3), ("huber", 1)])
@pytest.mark.parametrize("growth", GROWTHS, ids=repr)
def test_every_growth(growth, kind, blocks, precondition):
    model, _ = assert_twin(kind, precondition=precondition, growth=growth, blocks_per_step=blocks)
    assert model.n_grown + model.n_reused == blocks * len(SIZES)


@BOTH
@pytest.mark.parametrize("kernel", [Laplacian(1.2), Gaussian(1.0) + 0.3 * Polynomial(2), Polynomial(2)], ids=repr)
def test_every_kernel(kernel, precondition):
    for kind in ("softmax", "squared"):
        assert_twin(kind, kernel=kernel, precondition=precondition, blocks_per_step=2, max_features=24)


@BOTH
def test_structured_frequencies_in_single_precision(precondition):
    kernel = Gaussian(1.1, structured=True)
    for growth in GROWTHS:
        assert_twin("huber", 2e-5, kernel=kernel, dtype="float32", precondition=precondition, growth=growth)


@BOTH
@pytest.mark.parametrize("step", [None, InverseScaling(0.9, 0.5)], ids=["default", "schedule"])
def test_the_averaged_solution_and_schedules(step, precondition):
    for kind in ("softmax", "squared", "hinge"):
        given = {"average": True, "step": step, "precondition": precondition, "blocks_per_step": 2}
        assert_twin(kind, max_features=24, standardize=False, **given)


def test_plain_steps_are_those_of_the_size_of_their_batch():
    X, y, _ = _stream("huber")
    model = _model("huber", precondition=False, standardize=False)
    model.batch_step(X[:100], y[:100])
    largest = np.linalg.eigvalsh(Gaussian().matrix(X[:100], X[:100], 1.1) / 100).max()
    assert model.gamma_0 == pytest.approx(1 / (largest + 1 / 6 + 1 / model.batch_size), rel=1e-4)
    choice = machine_of(model).updates.choice
    for n in (1, 100, model.batch_size):
        step = choice.step_size(SimpleNamespace(size=n))
        assert step == pytest.approx(1 / (largest + 1 / 6 + 1 / n) / (1 + 1 / 200), rel=1e-4)


def test_rows_of_no_weight_move_no_coefficient():
    X, y, _ = _stream("softmax")
    model = _model("softmax", growth=DSG())
    model.batch_step(X[:50], y[:50])
    before = machine_of(model).expansion.alpha
    model.batch_step(X[50:80], y[50:80], [0.0] * 30)
    np.testing.assert_array_equal(machine_of(model).expansion.alpha, before)
    assert (model.n_steps, model.n_records, model.n_grown) == (2, 80, 2)
