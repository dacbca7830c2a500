"""Records that arrive, against the twin; and that blocks, in which they go through everything, are seen by nobody."""

import numpy as np
import pytest

from streamkernel.adaptive.passing import advance_records
from streamkernel.compute import arrival as kernels
from streamkernel.compute import label_pass, moments, number_pass
from streamkernel.compute.features import SINE
from tests import naive
from tests.compute import passes, test_label_pass, test_number_pass
from tests.compute.passes import INPUTS, TREES, N

F, ROOT, LIMIT, EXTRAS = 4, 1.7, 2.0, 2
SIZE = 50
D, L = 2 * F + 1 + INPUTS, 1 + INPUTS
#: The last input is an indicator.
IS_NUMBER = np.array([True, True, False])
BOTH = pytest.mark.parametrize("standardize", [True, False])


def _scaling(standardize):
    return kernels.Scaling(standardize, LIMIT, IS_NUMBER, np.zeros((INPUTS, moments.SIZE)))


def _feature_map(rng, dtype, n_extras=EXTRAS):
    d = INPUTS + n_extras
    W, scales = rng.normal(size=(d, F)).astype(dtype), rng.uniform(0.5, 2, d).astype(dtype)
    return kernels.FeatureMap(W, scales, ROOT, INPUTS, SINE[np.dtype(dtype)])


def _window(dtype):
    return kernels.Window(np.zeros((SIZE, INPUTS), dtype), np.zeros(SIZE), np.zeros(SIZE), np.zeros(1, np.int64))


def _records(seed=0):
    rng = np.random.default_rng(seed)
    _, values = passes.records(rng, D)
    return rng, values * [1.0, 30.0, 1.0], rng.integers(0, 2, size=(N, EXTRAS)) / 1.0


def _assert_window(window, kept):
    """The last records, wherever the ring has them."""
    assert window.seen.tolist() == [len(kept)]
    for i, (row, target, weight) in list(enumerate(kept))[-SIZE:]:
        np.testing.assert_allclose(window.rows[i % SIZE], row, rtol=1e-9, atol=1e-12)
        assert (window.targets[i % SIZE], window.weights[i % SIZE]) == (target, weight)


def test_remember():
    window, kept = _window(np.float64), []
    rng = np.random.default_rng(0)
    for _ in range(2 * SIZE + 7):
        record = rng.normal(size=INPUTS), rng.normal(), rng.uniform()
        kernels.remember(window, *record)
        naive.remember(kept, *record)
        _assert_window(window, kept)


@BOTH
@pytest.mark.parametrize("learnt", [0.0, 0.8, 1.0])
def test_arrive(standardize, learnt):
    """In float64, of which the twin's Python numbers are."""
    rng, values, extras = _records()
    targets, weights, learnt = rng.normal(size=N), rng.uniform(size=N), rng.random(N) < learnt
    scaling, feature_map, window, kept = _scaling(standardize), _feature_map(rng, np.float64), _window(np.float64), []
    Phi = np.full((N, D), np.nan)
    kernels.arrive(values, extras, targets, weights, learnt, scaling, feature_map, window, Phi)
    exact, observed = naive.arrive(
        *(values, extras, targets, weights, learnt, (standardize, LIMIT, IS_NUMBER, None), feature_map[:4], kept)
    )
    np.testing.assert_allclose(Phi, exact, rtol=1e-9, atol=1e-9)
    _assert_window(window, kept)
    if standardize:
        assert scaling.moments[:, moments.COUNT].tolist() == [
            len(v) * number for v, number in zip(observed, IS_NUMBER, strict=True)
        ]
    else:
        assert not scaling.moments.any()


@BOTH
@pytest.mark.parametrize("cuts", [(1,), (63, 64, 65), tuple(range(1, N))])
def test_any_cut_gives_the_same_bits(standardize, cuts):
    rng, values, extras = _records()
    targets, weights, learnt = rng.normal(size=N), rng.uniform(size=N), rng.random(N) < 0.8
    feature_map, seen = _feature_map(rng, np.float32), []
    for parts in ([np.arange(N)], np.split(np.arange(N), cuts)):
        scaling, window, Phi = _scaling(standardize), _window(np.float32), np.full((N, D), np.nan)
        for part in parts:
            columns = np.empty((len(part), D))
            records = values[part], extras[part], targets[part], weights[part], learnt[part]
            kernels.arrive(*records, scaling, feature_map, window, columns)
            Phi[part] = columns
        seen.append(passes.bits([Phi, *scaling[3:], *window]))
    assert seen[0] == seen[1]


# Arrival and pass, block by block -------------------------------------------------------------------------------------


def _labels(n_trees):
    stream = test_label_pass._stream(D, L, 3, n_trees)
    through, twin = test_label_pass._through, naive.advance_labels
    return stream, test_label_pass.arguments, label_pass.pass_labels, through, twin, -1, (2, n_trees, 3)


def _numbers(n_trees):
    stream = test_number_pass._stream(D, L, n_trees)
    through, twin = test_number_pass._through, naive.advance_numbers
    return stream, test_number_pass.arguments, number_pass.pass_numbers, through, twin, np.nan, (1, n_trees, 1)


EITHER = pytest.mark.parametrize("kind", [_labels, _numbers])


def _advanced(stream, extras, scaling, feature_map, window, arguments, learn, width):
    matrices, others, forest = passes.copied(stream.state)
    out = np.full((len(stream.Phi), width), np.nan)
    labelled = stream.truths.dtype == np.int64
    learnt = stream.truths >= 0 if labelled else ~np.isnan(stream.truths)
    advance_records(
        *(learn, stream.values, extras, *stream[2:4], learnt, scaling, feature_map, window),
        *(arguments(matrices, others, forest), forest, out, -1 if labelled else np.nan),
    )
    return (*matrices, *others, *forest), out


@EITHER
@BOTH
@pytest.mark.parametrize("n_trees", [0, TREES])
def test_blocks_are_seen_by_nobody(kind, standardize, n_trees):
    """All that arrives, and then all that passes, to the bit; a weight of 0 arrives and does not pass."""
    stream, arguments, advance, through, _, nothing, _ = kind(n_trees)
    rng, _, extras = _records(1)
    stream.weights[::9] = 0
    feature_map = _feature_map(rng, np.float32)
    ours, others = ((_scaling(standardize), _window(np.float32)) for _ in range(2))
    Phi = np.empty((N, D))
    learnt = stream.truths >= 0 if nothing == -1 else ~np.isnan(stream.truths)
    kernels.arrive(stream.values, extras, *stream[2:4], learnt, others[0], feature_map, others[1], Phi)
    to_learn = np.where(stream.weights > 0, stream.truths, nothing)
    expected, predictions = through(stream._replace(Phi=Phi, truths=to_learn))
    state, out = _advanced(stream, extras, ours[0], feature_map, ours[1], arguments, advance, predictions.shape[1])
    assert N > 2 * kernels.BLOCK
    assert out.tobytes() == predictions.tobytes()
    assert passes.bits(state) == passes.bits(expected)
    assert passes.bits([*ours[0][3:], *ours[1]]) == passes.bits([*others[0][3:], *others[1]])


@pytest.mark.long  # a minute of compiling; the suite has its parts against their twins, and that it is their sum
@EITHER
@pytest.mark.parametrize("n_trees", [0, TREES])
def test_advance(kind, n_trees):
    """In float64, against the twin."""
    stream, arguments, advance, _, twin, _, ensembles = kind(n_trees)
    rng, _, extras = _records(1)
    stream.weights[::9] = 0
    feature_map, scaling, window, kept = _feature_map(rng, np.float64), _scaling(True), _window(np.float64), []
    ensembles = passes.ensembles_of(*ensembles)
    matrices, others, _ = passes.copied(stream.state)
    observed, (*twins, predictions) = twin(
        *(stream.values, extras, *stream[2:4], (True, LIMIT, IS_NUMBER, None), feature_map[:4], kept),
        *arguments(matrices, others, ensembles),
    )
    state, out = _advanced(stream, extras, scaling, feature_map, window, arguments, advance, np.shape(predictions)[1])
    np.testing.assert_allclose(out, predictions, rtol=1e-8, atol=1e-8)
    passes.assert_as_the_twins(state, twins)
    passes.assert_the_forest_is(state, ensembles)
    _assert_window(window, kept)
    assert scaling.moments[:, moments.COUNT].tolist() == [
        len(v) * number for v, number in zip(observed, IS_NUMBER, strict=True)
    ]
