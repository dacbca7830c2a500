"""The compiled steps of the growing machine against their twins; choices are compared where rounding has no say.

The general step has the same bits (tests/growth/test_usual_step.py).
"""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamkernel.compute import growing_step as kernels
from streamkernel.compute.features import SINE, Scaling
from streamkernel.compute.moments import SIZE
from tests import naive
from tests.compute.test_check import blocks
from tests.growth.naive import inequality_9

B, F, D, K, ROOM = 4, 8, 3, 3, 20
NAMING = {"checks": True, "by_class": False, "grow": 1, "period": 1, "seed": 5, "most": ROOM}
SIZES = [0.4, 0.3, 0.2, 0.35, 0.1, 0.25, 0.3, 0.3]


def _is_clear(beta, gbar, gamma, variance):
    """Whether rounding has no say in which block is best, or in whether (9) holds."""
    gaps = [np.subtract(*inequality_9(own, gbar, gamma, gamma, variance)) for own in beta]
    return all(abs(a - b) > 1e-9 * gamma**2 for i, a in enumerate([0.0, *gaps]) for b in [0.0, *gaps][:i])


@given(blocks())
def test_checked_block(drawn):
    beta, gbar, gamma, variance, _ = drawn
    block, held = kernels.checked_block(beta, gbar, gamma, gamma**2, variance)
    if _is_clear(beta, gbar, gamma, variance):
        exact, exact_held = naive.checked_block(beta, gbar, gamma, variance)
        assert (block, held) == (exact, pytest.approx(exact_held, rel=1e-6))
    if block >= 0:
        right, left = inequality_9(beta[block], gbar, gamma, gamma, variance)
        assert held == pytest.approx(right - left, rel=1e-9, abs=1e-12 * (left + right))


@given(blocks())
def test_checked_by_class(drawn):
    beta, gbar, gamma, variance, _ = drawn
    clear = all(_is_clear(beta[:, c : c + 1], gbar[c : c + 1], gamma, variance) for c in range(len(gbar)))
    block, held = kernels.checked_by_class(beta, gbar, gamma, gamma**2, variance)
    if clear:
        exact, exact_held = naive.checked_by_class(beta, gbar, gamma, variance)
        assert block == exact
        if block >= 0:
            assert held == pytest.approx(exact_held, rel=1e-6)


def test_a_class_without_a_gradient_may_pass_and_holds_nothing():
    none = np.zeros(12)
    assert kernels.checked_by_class(none[None], none, 1.0, 1.0, 0.0) == (0, 0.0)
    assert kernels.checked_by_class(none[None], none, 1.0, 1.0, 0.1)[0] == -1


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
        rule = _run(1)[3]._replace(checks=False, grow=grow, period=grow + reuse, seed=np.uint64(seed), most=most)
        if most:
            expected = naive.named_block(grow, grow + reuse, seed, most, t, n_blocks)
            assert kernels.named_block(rule, t, n_blocks) == expected


def _run(seed, n=30, preconditioned=False, per_step=1, regularization=0.1, sizes=SIZES, dtype="float64", **naming):
    """What a run is given, of 2 blocks to begin with."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n, D)), rng.integers(0, K, n).astype(float)
    learned, w = rng.random(n) < 0.8, rng.choice([0.0, 0.5, 1.0], n)
    arriving = kernels.Arriving(X, learned, y[:, None], w, np.full((n, K), 7.0))
    W, alpha = (rng.normal(size=(D, ROOM * F)) / 6).astype(dtype), rng.normal(size=(K, 2, ROOM * F)).astype(dtype)
    beta = 0.1 * rng.normal(size=(ROOM, K))
    alpha[:, :, 2 * F :] = beta[2:] = 0
    own = kernels.Solution(W, SINE[W.dtype], alpha, beta)
    gammas = np.array([(size, size**2) for size in sizes]).reshape(-1, 2)
    named = {**NAMING, **naming, "seed": np.uint64(5)}.values()
    rule = kernels.Rule(
        gammas,
        0,
        1.0,
        1e-3,
        *named,
        True,
        preconditioned,
        preconditioned,
        per_step,
        ROOM,
        regularization,
        0.5,
        1e30,
        1e-6,
    )
    P = np.empty((B if preconditioned else 0, 2 * F))
    waiting = np.full((B, D + 1), 7.0, dtype), np.empty((B, 1)), np.empty(B), np.empty((B, K))
    gradients = np.empty((B, K)), np.empty((B, K)), np.empty(K)
    room = kernels.Room(*waiting, *gradients, np.empty((B, 2 * F), dtype), P, np.empty((K, 2 * F)))
    scaling = Scaling(False, 100.0, np.ones(D, np.bool_), np.zeros((D, SIZE)))
    numbers = np.array([1.0, sizes[0], sizes[0] ** 2, 0.0, 0.0, 0.0])
    return arriving, scaling, room, rule, own, np.array([0, 0, 0, -1, 2, 0, 0]), numbers


def _take(run):
    """Take all; the stages at which the run stopped."""
    arriving, _, room, _, own, at, numbers = run
    stage, stops = kernels.ARRIVE, []
    while stage != kernels.END:
        stage = kernels.take_steps(stage, *run)
        stops.append(stage)
        if stage == kernels.PROJECT:
            at[kernels.BLOCK] = np.argmax(own.beta[: at[kernels.N_BLOCKS]] @ room.gbar)
        elif stage == kernels.MOVE:
            total = room.w.sum()
            numbers[kernels.RIDGE] = (room.P**2).sum() / total if total else 0.0
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
    arriving, _, _, rule, own, at, numbers = run
    if not rule.checks:
        own = own._replace(beta=np.zeros((0, 0)))
        run = (*run[:4], own, at, numbers)
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
    for change in ({"sizes": np.zeros((0, 2))}, {"heaviest": 2.0}, {"n_room": 2}):
        run = list(_run(1))
        run[3] = run[3]._replace(**change)
        before = run[4].alpha.copy()
        assert kernels.take_steps(kernels.ARRIVE, *run) == kernels.BEGIN
        assert (run[5][kernels.N_WAITING], run[5][kernels.T]) == (B, 0)
        assert np.array_equal(run[4].alpha, before)


@given(st.integers(0, 99), st.sampled_from([1.0, 2.0]), st.integers(0, 2), st.integers(1, 3), st.integers(0, 4))
def test_begin(seed, heaviest, t, per_step, n_blocks):
    arriving, _, room, rule, _, at, numbers = _run(seed, per_step=per_step)
    room, rule = room._replace(w=2 * arriving.w[:B]), rule._replace(sizes=rule.sizes[:2], heaviest=heaviest, n_room=4)
    at[kernels.T], at[kernels.N_BLOCKS] = t, n_blocks
    begins = kernels.begin(room, rule, at, numbers)
    assert begins == naive.begin(room.w, heaviest, t, 2, n_blocks, per_step, 4)
    if begins:
        assert (numbers[kernels.GAMMA], numbers[kernels.SQUARED]) == (SIZES[t], SIZES[t] ** 2)


@pytest.mark.parametrize("scale", [1.0, 1.01e-6])
@pytest.mark.parametrize("regularization", [0.0, 0.2, 30.0])
def test_shrink(scale, regularization):
    _, _, _, rule, own, at, numbers = _run(2, regularization=regularization)
    numbers[kernels.SCALE] = scale
    factor = max(1 - SIZES[0] * regularization, -1.0)
    exact = naive.shrink(factor, scale, 1e-6, own.alpha.copy(), own.beta.copy())
    assert kernels.shrink(rule, own, at, numbers) == factor
    assert np.allclose(numbers[kernels.SCALE], exact[0], rtol=1e-12)
    assert np.allclose(own.alpha, exact[1], rtol=1e-12)
    assert np.allclose(own.beta[:2], exact[2][:2], rtol=1e-12)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("standardize", [True, False])
def test_take_rows(dtype, standardize):
    arriving, scaling, room, _, own, at, numbers = _run(4, dtype=dtype)
    arriving.values[1, 1], numbers[kernels.SCALE] = np.nan, 0.5
    scaling = scaling._replace(standardize=standardize, limit=4.0)
    kernels.take_rows(arriving, scaling, room, own, at, numbers)
    rows, waiting = naive.take_rows(0, B, arriving.learned)
    assert (at[kernels.ROW], at[kernels.N_WAITING]) == (len(rows), len(waiting))
    given = arriving.values[rows], arriving.learned[rows], standardize, 4.0, scaling.is_number
    X = np.array(naive.scale(*given)[0])
    exact = 0.5 / math.sqrt(F) * naive.add_scores(X, own.W, own.alpha, 0, 2 * F, np.zeros((len(rows), K)))
    assert np.allclose(arriving.scores[rows], exact, atol=2e-4 if dtype == "float32" else 1e-8)
    assert (arriving.scores[len(rows) :] == 7).all()
    assert np.allclose(room.X, np.pad(X[waiting], ((0, 0), (0, 1))), atol=1e-6)
    assert np.array_equal(room.y, arriving.y[waiting])
    assert np.array_equal(room.w, arriving.w[waiting])
    assert np.array_equal(room.scores, arriving.scores[waiting])


@given(st.booleans(), st.booleans(), st.integers(0, 99))
def test_choose(by_class, is_full, seed):
    naming = {"by_class": by_class, "most": 2 if is_full else 9}
    _, _, room, rule, own, at, numbers = _run(seed, **naming)
    rng = np.random.default_rng(seed)
    g, w = rng.normal(size=(B, K)), rng.choice([0.0, 1.0, 2.5], B)
    own.beta[:] = SIZES[0] * rng.uniform(-1, 2, (ROOM, 1)) * (g * w[:, None]).mean(axis=0)
    room.g[:], room.w[:] = g, w
    pulls = kernels.choose(room, rule, own, at, numbers)
    block, margin, gbar = naive.choose(g, w, {**NAMING, **naming}, SIZES[0], 1e-3, own.beta[:2], 0, 2)
    assert pulls == (block is not None)
    if pulls:
        assert at[kernels.BLOCK] == block
        assert numbers[kernels.MARGIN] == pytest.approx(margin, rel=1e-6, nan_ok=True)
    assert np.allclose(room.weighted, g * w[:, None])
    assert np.allclose(room.gbar, gbar)


def test_a_step_in_which_no_record_pulls_only_shrinks():
    run = _run(1)
    run[0].w[:] = 0
    before = run[4].alpha.copy()
    assert _take(run) == [kernels.END]
    assert run[6][kernels.SCALE] == pytest.approx(math.prod(1 - 0.1 * size for size in SIZES[: run[5][kernels.T]]))
    assert np.array_equal(run[4].alpha, before)
    assert run[5][kernels.T] > 2


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("most", [1e30, 0.5])
@pytest.mark.parametrize("keeps_beta", [True, False])
@pytest.mark.parametrize("block", [1, 2])
def test_move(dtype, most, keeps_beta, block):
    _, _, room, rule, own, at, numbers = _run(5, dtype=dtype)
    rule, beta = rule._replace(largest=most, regularization=0.0), own.beta if keeps_beta else np.zeros((0, 0))
    own, at[kernels.BLOCK], numbers[kernels.SCALE] = own._replace(beta=beta), block, 0.5
    rng = np.random.default_rng(2)
    room.weighted[:], room.phi[:] = rng.normal(size=(B, K)), rng.normal(size=(B, 2 * F))
    room.gbar[:] = room.weighted.mean(axis=0)
    G = room.weighted.T @ room.phi / B
    exact = naive.move_block(block, SIZES[0], 0.5, most, G, room.gbar, own.alpha, beta)
    assert kernels.move(room, rule, own, at, numbers)
    for ours, twins in zip((room.G, own.alpha, beta), exact, strict=True):
        assert np.allclose(ours, twins, atol=1e-6)
    assert at[[kernels.N_BLOCKS, kernels.N_REUSED, kernels.NUMBER]].tolist() == ([3, 0, 1] if block == 2 else [2, 1, 1])


def test_a_move_that_is_not_finite_changes_nothing():
    run = _run(1, preconditioned=True)
    assert kernels.take_steps(kernels.ARRIVE, *run) == kernels.MOVE
    run[6][kernels.RIDGE] = np.inf
    before = run[4].alpha.copy(), run[4].beta.copy(), run[6].copy()
    assert kernels.take_steps(kernels.MOVE, *run) == kernels.TOO_LARGE
    for now, then in zip((run[4].alpha, run[4].beta, run[6]), before, strict=True):
        assert np.array_equal(now, then, equal_nan=True)
