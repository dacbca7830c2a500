"""The compiled run over usual steps against its twins; the general step has the same bits (tests/growth)."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamkernel.compute import growing_run as kernels
from streamkernel.compute.features import SINE, Scaling
from streamkernel.compute.moments import SIZE
from tests import naive

B, F, D, K, ROOM = 4, 8, 3, 3, 20
NAMING = {"checks": True, "by_class": False, "grow": 1, "period": 1, "seed": 5, "most": ROOM}
SIZES = [0.4, 0.3, 0.2, 0.35, 0.1, 0.25, 0.3, 0.3]


@given(st.integers(1, 12), st.integers(0, 2**32), st.sampled_from([0.0, 1e-17, 1e-14, 1.0]))
def test_surely_closest(n_outputs, seed, apart):
    rng = np.random.default_rng(seed)
    beta, gbar = rng.normal(size=(5, n_outputs)), rng.normal(size=n_outputs)
    beta[3] = beta[naive.surely_closest(beta, gbar)[0]] * (1 + apart)
    best, gap = naive.surely_closest(beta, gbar)
    found = kernels.surely_closest(beta, gbar)
    assert found in (-1, best)
    assert found == best or gap < 1e-14 * n_outputs
    assert found == -1 or gap > 4e-16
    assert found == -1 or found == np.argmax(beta @ gbar)


def test_of_equal_products_none_is_surely_the_largest():
    assert kernels.surely_closest(np.zeros((2, 3)), np.ones(3)) == -1
    assert kernels.surely_closest(np.array([[1.0], [np.nan]]), np.ones(1)) == -1
    assert kernels.surely_closest(np.zeros((1, 3)), np.ones(3)) == 0


@given(st.integers(1, 3), st.integers(0, 3), st.integers(0, 2**64 - 1), st.integers(0, 2**40), st.integers(0, 2**31))
def test_named_block(grow, reuse, seed, t, n_blocks):
    for most in (n_blocks, n_blocks + 1):
        naming = kernels.Naming(False, False, grow, grow + reuse, np.uint64(seed), most)
        if most:
            assert kernels.named_block(naming, t, n_blocks) == naive.named_block(
                grow, grow + reuse, seed, most, t, n_blocks
            )


def _run(seed, n=30, preconditioned=False, per_step=1, regularization=0.1, sizes=SIZES, **naming):
    """What a run is given, of 2 blocks to begin with."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n, D)), rng.integers(0, K, n).astype(float)
    learned, w = rng.random(n) < 0.8, rng.choice([0.0, 0.5, 1.0], n)
    arriving = kernels.Arriving(X, learned, y[:, None], w, np.full((n, K), 7.0))
    waiting = kernels.Waiting(np.full((B, D + 1), 7.0), np.empty((B, 1)), np.empty(B), np.empty((B, K)))
    W, alpha, beta = rng.normal(size=(D, ROOM * F)) / 6, rng.normal(size=(K, 2, ROOM * F)), rng.normal(size=(ROOM, K))
    alpha[:, :, 2 * F :] = beta[2:] = 0
    own = kernels.Coefficients(W, SINE[W.dtype], alpha, 0.1 * beta)
    named = kernels.Naming(**{**NAMING, **naming, "seed": np.uint64(5)})
    gammas = np.array([(size, size**2) for size in sizes]).reshape(-1, 2)
    flags = 0.5, True, preconditioned, preconditioned, per_step, ROOM, 1e30, 1e-6
    rule = kernels.Rule(named, gammas, 0, 1.0, 1e-3, regularization, *flags)
    P = np.empty((B if preconditioned else 0, 2 * F))
    work = kernels.Workspace(
        np.empty((B, K)), np.empty((B, K)), np.empty(K), np.empty((B, 2 * F)), P, np.empty((K, 2 * F))
    )
    scaling = Scaling(False, 100.0, np.ones(D, np.bool_), np.zeros((D, SIZE)))
    return arriving, scaling, waiting, rule, own, work, np.array([0, 0, 0, -1, 2, 0, 0]), np.array([1.0, 0.0, 0.0, 0.0])


def _take(run):
    """Take all; the stages at which the run stopped."""
    arriving, _, waiting, _, own, work, at, numbers = run
    stage, stops = kernels.ARRIVE, []
    while stage != kernels.END:
        stage = kernels.take_steps(stage, *run)
        stops.append(stage)
        if stage == kernels.PROJECT:
            at[kernels.BLOCK] = np.argmax(own.beta[: at[kernels.N_BLOCKS]] @ work.gbar)
        elif stage == kernels.MOVE:
            total = waiting.w.sum()
            numbers[kernels.RIDGE] = (work.P**2).sum() / total if total else 0.0
        assert stage in (kernels.PROJECT, kernels.MOVE, kernels.REST, kernels.END)
        assert len(stops) < 99
    assert at[kernels.ROW] == len(arriving.w)
    return stops


@pytest.mark.parametrize("per_step", [1, 2])
@pytest.mark.parametrize("preconditioned", [False, True])
@pytest.mark.parametrize(
    "naming",
    [{}, {"most": 2}, {"by_class": True}, {"checks": False, "most": 4}, {"checks": False, "period": 2}],
    ids=["checked", "full", "by class", "drawn", "in turns"],
)
@pytest.mark.parametrize("regularization", [0.1, 30.0])
def test_take_steps(naming, preconditioned, per_step, regularization):
    run = _run(3, preconditioned=preconditioned, per_step=per_step, regularization=regularization, **naming)
    arriving, _, _, rule, own, _, at, numbers = run
    if not rule.naming.checks:
        own = run[4]._replace(beta=np.zeros((0, 0)))
        run = (*run[:4], own, *run[5:])
    model = own.alpha.copy(), own.beta.copy(), 1.0, 2, 0, 0.0
    rows = arriving.values, arriving.learned, arriving.y[:, 0], arriving.w, B, own.W, F
    last = 0.5 if preconditioned else None, per_step
    scores, alpha, beta, scale, *counts = naive.take_steps(
        *rows, model, {**NAMING, **naming}, SIZES, 1e-3, regularization, *last
    )
    stops = _take(run)
    assert np.allclose(arriving.scores, scores)
    assert np.allclose(own.alpha, alpha)
    assert np.allclose(own.beta, beta)
    assert np.allclose(numbers[kernels.SCALE], scale)
    assert np.allclose([at[kernels.N_BLOCKS], at[kernels.N_REUSED], numbers[kernels.LAST_MARGIN]], counts)
    assert (kernels.MOVE in stops) == preconditioned


def test_a_run_stops_before_a_step_of_which_it_does_not_know_all():
    for change in ({"gammas": np.zeros((0, 2))}, {"heaviest": 2.0}, {"room": 2}):
        run = list(_run(1))
        run[3] = run[3]._replace(**change)
        before = run[4].alpha.copy()
        assert kernels.take_steps(kernels.ARRIVE, *run) == kernels.BEGIN
        assert (run[6][kernels.N_WAITING], run[6][kernels.T]) == (B, 0)
        assert np.array_equal(run[4].alpha, before)


@given(st.integers(0, 99), st.sampled_from([1.0, 2.0]), st.integers(0, 2), st.integers(1, 3), st.integers(0, 4))
def test_has_rule(seed, heaviest, t, per_step, n_blocks):
    run = _run(seed, per_step=per_step, sizes=SIZES[:1])
    w, at, rule = 2 * run[0].w[:B], run[6], run[3]._replace(heaviest=heaviest, room=4)
    at[kernels.T], at[kernels.N_BLOCKS] = t, n_blocks
    expected = naive.has_rule(w, heaviest, t, 1, n_blocks, per_step, 4)
    assert kernels.has_rule(run[2]._replace(w=w), rule, at) == expected


@pytest.mark.parametrize("scale", [1.0, 1.01e-6])
@pytest.mark.parametrize("regularization", [0.0, 0.2, 30.0])
def test_shrink(scale, regularization):
    _, _, _, rule, own, _, at, numbers = _run(2, regularization=regularization)
    numbers[kernels.SCALE] = scale
    factor = max(1 - SIZES[0] * regularization, -1.0)
    exact = naive.shrink(factor, scale, 1e-6, own.alpha.copy(), own.beta.copy())
    assert kernels.shrink(rule, own, at, numbers) == factor
    assert np.allclose(numbers[kernels.SCALE], exact[0], rtol=1e-12)
    assert np.allclose(own.alpha, exact[1], rtol=1e-12)
    assert np.allclose(own.beta[:2], exact[2][:2], rtol=1e-12)


def test_take_rows():
    arriving, scaling, waiting, _, own, _, at, _ = _run(4)
    kernels.take_rows(arriving, scaling, waiting, own, F, at, 0.5)
    rows, own_rows = naive.take_rows(0, B, arriving.learned)
    assert (at[kernels.ROW], at[kernels.N_WAITING]) == (len(rows), len(own_rows))
    assert np.array_equal(waiting.X, np.pad(arriving.values[own_rows], ((0, 0), (0, 1))))
    assert np.array_equal(waiting.y, arriving.y[own_rows])
    assert np.array_equal(waiting.w, arriving.w[own_rows])
    assert np.array_equal(waiting.scores, arriving.scores[own_rows])
    exact = naive.add_scores(arriving.values[rows], own.W, own.alpha, 0, 2 * F, np.zeros((len(rows), K)))
    assert np.allclose(arriving.scores[rows], 0.5 / math.sqrt(F) * exact)
    assert (arriving.scores[len(rows) :] == 7).all()


def test_a_move_that_is_not_finite_changes_nothing():
    run = _run(1, preconditioned=True)
    assert kernels.take_steps(kernels.ARRIVE, *run) == kernels.MOVE
    run[7][kernels.RIDGE] = np.inf
    before = run[4].alpha.copy(), run[4].beta.copy(), run[7].copy()
    assert kernels.take_steps(kernels.MOVE, *run) == kernels.TOO_LARGE
    for now, then in zip((run[4].alpha, run[4].beta, run[7]), before, strict=True):
        assert np.array_equal(now, then, equal_nan=True)
