"""The batch step of least squares: against plain formulas, in any parts, and beside records one by one."""

import pickle

import numpy as np
import polars as pl
import pytest

from streamkernel import KernelLeastSquaresClassifier, KernelLeastSquaresRegressor
from streamkernel.batch.chunk import BatchChunk
from streamkernel.batch.least_squares import score_least_squares
from streamkernel.batch.least_squares_experts import LINEAR_DRIFTS, LOG_TEMPERATURES
from streamkernel.batch.rows import ScoredBatch
from streamkernel.compute.experts import DISCOUNT
from streamkernel.estimators.base import machine_of
from streamkernel.records.frames import Frame
from tests.batch.least_squares_rows import MODELS, batches, chunk_of, learn_in_chunks, stream
from tests.laws.cuts import frame_of
from tests.naive import symmetric

KINDS = {"classifier": KernelLeastSquaresClassifier, "regressor": KernelLeastSquaresRegressor}
EVERY = pytest.mark.parametrize("name", MODELS)
RIDGE = 0.2
#: What is taken of a sample, or counted.
EXACT = ("columns", "labels", "input_moments", "target_moments", "n_ignored_inputs", "n_records", "n_steps")


def _rows(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) * [1.0, 5.0, 0.1] + [0.0, 3.0, 1.0]
    return X, np.sin(X[:, 0]) + X[:, 1], rng.choice([0.0, 0.5, 1.0, 2.0], n)


def _columns(model, X):
    """The columns of rows, scaled as of now."""
    return machine_of(model)._columns_of(X[:, [int(name) for name in model.input_names]])


def _assert_close(P, W, expected_P, expected_W):
    np.testing.assert_allclose(symmetric(P), expected_P, rtol=1e-7, atol=1e-11)
    np.testing.assert_allclose(W, expected_W, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("drifts", [(0.0,), (0.0, 1e-3, 0.03)])
@pytest.mark.parametrize("kind", [KernelLeastSquaresClassifier, KernelLeastSquaresRegressor])
def test_a_plain_twin(kind, drifts):
    """Heads and linear experts by inverses, losses and temperatures by loops."""
    numbers = kind is KernelLeastSquaresRegressor
    model = kind(n_features=6, ridge=RIDGE, drift_rates=drifts, seed=1)
    X, y, w = _rows(900)
    labels = np.digitize(y, [2.0, 4.0])
    model.batch_step(X[:300], y[:300] if numbers else labels[:300], w[:300])  # more than 200: units stay
    machine, experts = machine_of(model), machine_of(model).experts
    all_drifts = [*drifts, *LINEAR_DRIFTS]
    P = [symmetric(one) for one in (*experts.heads_P, *experts.linear_P)]
    W = [one.copy() for one in (*experts.heads_W, *experts.linear_W)]
    losses, tried = experts.losses.tolist(), experts.tried_losses.tolist()
    for start in (300, 500, 777):
        part = slice(start, {300: 500, 500: 777, 777: 900}[start])
        Phi = _columns(model, X[part])
        truths = machine.targets.as_of_now(y[part])[:, None] if numbers else np.eye(3)[labels[part]] - 1 / 3
        columns = [Phi] * len(drifts) + [Phi[:, 12:]] * 2
        scores = [own @ mine.T for own, mine in zip(columns, W, strict=True)]
        in_use = [0 if numbers else int(np.argmin(own)) for own in tried]
        rows = [r for r in range(len(Phi)) if w[part][r] > 0]
        mean_tried = np.zeros((len(W), 1 if numbers else len(LOG_TEMPERATURES)))
        for r in rows:
            if numbers:
                capped = np.array([min((truths[r, 0] - own[r, 0]) ** 2, 4.0) for own in scores])
                mean_tried[:, 0] += 0.4 * capped / (capped.mean() + 0.05) / len(rows)
                continue
            for j, own in enumerate(scores):
                for s, log_temperature in enumerate(LOG_TEMPERATURES):
                    e = np.exp(np.exp(log_temperature) * (own[r] - own[r].max()))
                    p = e[labels[part][r]] / e.sum()
                    mean_tried[j, s] -= np.log(0.999 * p + 0.001 / 3) / len(rows)
        expected = machine_of(model).experts.mixture(np.stack(scores, axis=1))
        found = model.batch_step(X[part], (y if numbers else labels)[part], w[part])
        for j, drift in enumerate(all_drifts):
            G = (columns[j].T * w[part]) @ columns[j]
            R = ((truths - scores[j]).T * w[part]) @ columns[j]
            P[j] = np.linalg.inv(np.linalg.inv(P[j]) + G)
            W[j] = W[j] + R @ P[j]
            P[j][np.diag_indices_from(P[j])] = np.minimum(np.diag(P[j]) + len(rows) * drift, 1 / RIDGE)
            for _ in rows:
                losses[j] = DISCOUNT * losses[j] + mean_tried[j, in_use[j]]
                tried[j] = [DISCOUNT * was + now for was, now in zip(tried[j], mean_tried[j], strict=True)]
        for j, (own_P, own_W) in enumerate(
            zip((*experts.heads_P, *experts.linear_P), (*experts.heads_W, *experts.linear_W), strict=True)
        ):
            _assert_close(own_P, own_W, P[j], W[j])
        np.testing.assert_allclose(experts.losses, losses, rtol=1e-9)
        np.testing.assert_allclose(experts.tried_losses, tried, rtol=1e-9)
        if numbers:
            np.testing.assert_allclose(found.losses, (truths[:, 0] - expected[:, 0]) ** 2, rtol=1e-6, atol=1e-12)
        else:
            order = [model.classes.index(k) for k in range(3)]
            assert order == [0, 1, 2]
            np.testing.assert_allclose([[*p.values()] for p in found.probabilities], expected, rtol=1e-6)


@pytest.mark.parametrize("order", ["as they come", "one class after the other"])
def test_without_drift_coefficients_are_those_of_ridge_regression_on_all_records(order):
    """Of inputs that are not scaled, and classes, also of those that come late."""
    X, y, w = _rows(700)
    labels = np.digitize(y, [2.0, 4.0])
    if order == "one class after the other":
        places = np.argsort(labels, kind="stable")
        X, labels = X[places], labels[places]
    model = KernelLeastSquaresClassifier(n_features=6, ridge=RIDGE, drift_rates=(0.0,), standardize=False, seed=1)
    firsts = [int(np.flatnonzero(labels == label)[0]) for label in (1, 2)]
    cuts = sorted({20, 21, 22, 300, *firsts, *(place + 1 for place in firsts)})  # some of them of rank one
    for part in np.split(np.arange(700), cuts):
        model.batch_step(X[part], labels[part], w[part])
    Phi, experts = _columns(model, X), machine_of(model).experts
    A = (Phi.T * w) @ Phi + RIDGE * np.eye(Phi.shape[1])
    truths = np.eye(3)[labels][:, model.classes] - 1 / 3
    expected = np.linalg.solve(A, (Phi.T * w) @ truths).T
    np.testing.assert_allclose(experts.heads_W[0], expected, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(symmetric(experts.heads_P[0]), np.linalg.inv(A), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("kind", [KernelLeastSquaresClassifier, KernelLeastSquaresRegressor])
def test_after_the_first_batch_experts_are_weighed_by_halves_of_its_sample(kind):
    """What one half teaches is judged by the other: a linear expert is heard where noise hides all but a line."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(400, 2))
    numbers = kind is KernelLeastSquaresRegressor
    for y, linear in ((X[:, 0] + 2 * rng.normal(size=400), True), (np.sin(2 * X[:, 0]) + 0.01, False)):
        model = kind(n_features=40, ridge=RIDGE, seed=1)
        model.batch_step(X, y if numbers else y > 0)
        weights = model.expert_weights
        assert (sum(weight for name, weight in weights.items() if "linear" in name) > 2 / 5) == linear
        # The same by hand, of one head.
        machine, experts = machine_of(model), machine_of(model).experts
        sample = _sample_of(model, X, y if numbers else y > 0)
        Phi, targets = machine._columns_of(sample.values), machine._encoded(sample.targets)
        truths = experts.truths(targets, experts.n_outputs)
        odd, even = Phi[1::2], Phi[::2]
        W = np.linalg.solve(even.T @ even + RIDGE * np.eye(Phi.shape[1]), even.T @ truths[::2]).T
        columns = even[:, 80:]
        V = np.linalg.solve(columns.T @ columns + RIDGE * np.eye(3), columns.T @ truths[::2]).T
        scores = np.stack([odd @ W.T] * 3 + [odd[:, 80:] @ V.T] * 2, axis=1)
        mean = experts.tried(targets[1::2], scores) / 200
        np.testing.assert_allclose(experts.losses, mean.min(axis=1) * (1 - DISCOUNT**400) / (1 - DISCOUNT), rtol=0.03)


def _sample_of(model, X, y):
    """The sample of the rows of a batch."""
    chunk = BatchChunk(Frame(X), list(y), None)
    return ScoredBatch.of(machine_of(model), score_least_squares(machine_of(model), chunk)).sample


def _assert_near(state, other, tolerance=1e-7):
    assert state.keys() == other.keys()
    for field, value in state.items():
        if isinstance(value, np.ndarray) and field not in EXACT:
            np.testing.assert_allclose(value, other[field], rtol=0, atol=tolerance * np.abs(value).max(initial=1e-30))
        elif isinstance(value, np.ndarray):
            np.testing.assert_array_equal(value, other[field], err_msg=field)
        else:
            assert value == other[field], field


@EVERY
@pytest.mark.parametrize(("n_chunks", "shuffled"), [(3, False), (53, True)])
def test_any_chunks_give_the_same_step(name, n_chunks, shuffled):
    """New inputs, values and labels come in the middle, some rows have no label, some no weight; some chunks no row."""
    one, other = MODELS[name].clone(), MODELS[name].clone()
    rng = np.random.default_rng(5) if shuffled else None
    for xs, ys, ws in batches(*stream(name, 156), 52):
        learn_in_chunks(one, xs, ys, ws, 1)
        learn_in_chunks(other, xs, ys, ws, n_chunks, rng)
        _assert_near(one.__getstate__(), other.__getstate__())
    assert len(one.input_names) == 7


@EVERY
def test_a_batch_of_one_row_is_what_a_record_is(name):
    one, other = MODELS[name].clone(), MODELS[name].clone()
    xs, ys, ws = stream(name, 120)
    for x, y, w in zip(xs, ys, ws, strict=True):
        found = one.batch_step(frame_of(pl.DataFrame, [x]), [y], [w])
        expected = other.advance([x], [y], [w])
        np.testing.assert_allclose(found.losses, expected.losses, rtol=1e-6, atol=1e-9)
        if name == "classifier":
            assert found.probabilities[0] == pytest.approx(expected.probabilities[0], abs=1e-6)
        else:
            assert found.predictions == pytest.approx(expected.predictions, rel=1e-6)
    _assert_near(one.__getstate__(), other.__getstate__(), 1e-6)


@EVERY
def test_predictions_are_made_before_the_step(name):
    model = MODELS[name].clone()
    xs, ys, ws = stream(name, 400)
    model.batch_step(frame_of(pl.DataFrame, xs[:200]), ys[:200], ws[:200])
    known = list(model.classes) if name == "classifier" else None
    twin = model.clone(include_attributes=True)
    rows = [{"a": x["a"], "b": x["b"]} for x in xs[200:300]]  # nothing new among them
    found = model.batch_step(frame_of(pl.DataFrame, rows), ys[200:300])
    many = twin.predict_many(frame_of(pl.DataFrame, rows)).to_list()
    if name == "regressor":
        assert found.predictions == pytest.approx(many)
    else:
        assert found.predictions == many
    assert np.isnan(found.losses).tolist() == [y is None for y in ys[200:300]]
    if name == "classifier":
        assert known == ["n", "y"]
        found = model.batch_step(frame_of(pl.DataFrame, xs[300:]), ys[300:])
        assert model.classes == ["n", "y", "z"]
        assert all(sum(p.values()) == pytest.approx(1) for p in found.probabilities)
        # That one is new is known to its loss alone.
        assert {len(p) for p in found.probabilities} == {2 + ("z" in ys[200:300])}
        assert np.isfinite(found.losses[[y is not None for y in ys[300:]]]).all()


@EVERY
def test_what_is_sent_out_to_score_rows_is_small_and_scores_them_alike(name):
    """Pickled, as to another process; where nothing was learned yet, too."""
    model = KINDS[name](seed=1)
    xs, ys, ws = stream(name, 200)
    for part in (slice(50), slice(50, 200)):
        machine, chunk = machine_of(model), chunk_of(xs[part], ys[part], ws[part])
        sent = pickle.dumps(machine.to_send())
        found, expected = score_least_squares(pickle.loads(sent), chunk), score_least_squares(machine, chunk)
        np.testing.assert_array_equal(found.result.predictions, expected.result.predictions)
        for field, value in vars(expected.sums).items():
            np.testing.assert_array_equal(getattr(found.sums, field), value, err_msg=field)
        model.batch_step(frame_of(pl.DataFrame, xs[part]), ys[part], ws[part])
    assert len(sent) < 40_000 < model.memory_bytes / 40


@EVERY
@pytest.mark.filterwarnings("ignore:inputs past max_inputs", "ignore:classes past max_classes")
def test_a_batch_counts_what_it_leaves_out(name):
    model = MODELS[name].clone({"max_inputs": 2})
    model.batch_step(np.ones((5, 4)), [1, 1, 1, 1, None])
    assert len(model.input_names) == 2
    assert model.n_ignored_inputs == 8
    if name == "regressor":
        model.batch_step(np.ones((1, 4)), [1e200])
        assert model.n_clipped_targets == 1
    else:
        model = MODELS[name].clone({"max_classes": 2})
        model.batch_step(np.ones((6, 1)), ["a", "b", "c", "a", "b", "c"])
        assert (model.classes, model.n_ignored_labels, model.n_records) == (["a", "b"], 2, 4)
