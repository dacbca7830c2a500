"""Records that arrive, against the twin; and that blocks, in which they go through everything, are seen by nobody."""

import numpy as np
import pytest

from streamkernel.adaptive.experts import Arrivals, advance_records
from streamkernel.compute import features as kernels
from streamkernel.compute import label_pass, moments, number_pass
from streamkernel.compute.features import SINE
from tests import naive
from tests.compute import passes, test_label_pass, test_number_pass
from tests.compute.passes import INPUTS, MEMORY, TREES, N

F, ROOT, LIMIT, EXTRAS = 4, 1.7, 2.0, 2
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


def _records(seed=0):
    rng = np.random.default_rng(seed)
    _, _, values = passes.records(rng, D)
    return rng, values * [1.0, 30.0, 1.0], rng.integers(0, 2, size=(N, EXTRAS)) / 1.0


@BOTH
@pytest.mark.parametrize("learned", [0.0, 0.8, 1.0])
def test_arrive(standardize, learned):
    """In float64, of which the twin's Python numbers are."""
    rng, values, extras = _records()
    learned = rng.random(N) < learned
    scaling, feature_map = _scaling(standardize), _feature_map(rng, np.float64)
    X, Phi = np.full((N, INPUTS + EXTRAS), np.nan), np.full((N, D), np.nan)
    kernels.arrive(values, extras, learned, scaling, feature_map, X, Phi)
    scaled, exact, observed = naive.arrive(
        values, extras, learned, (standardize, LIMIT, IS_NUMBER, None), feature_map[:4]
    )
    np.testing.assert_allclose(X, scaled, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(Phi, exact, rtol=1e-9, atol=1e-9)
    if standardize:
        assert scaling.moments[:, moments.COUNT].tolist() == [
            len(v) * number for v, number in zip(observed, IS_NUMBER, strict=True)
        ]
    else:
        assert scaling.moments[:, moments.COUNT].tolist() == (~np.isnan(values[learned])).sum(axis=0).tolist()


# Arrival and pass, block by block -------------------------------------------------------------------------------------


def _labels(n_trees, memory, dtype):
    stream = test_label_pass._stream(D, L, 3, n_trees, memory, int(memory > 0), dtype)
    through, twin = test_label_pass._through, naive.advance_labels
    return stream, test_label_pass.arguments, label_pass.pass_labels, through, twin, -1, (2, n_trees, 3)


def _numbers(n_trees, memory, dtype):
    stream = test_number_pass._stream(D, L, n_trees, memory, int(memory > 0), dtype)
    through, twin = test_number_pass._through, naive.advance_numbers
    return stream, test_number_pass.arguments, number_pass.pass_numbers, through, twin, np.nan, (1, n_trees, 1)


EITHER = pytest.mark.parametrize("kind", [_labels, _numbers])


def _advanced(stream, extras, scaling, feature_map, arguments, learn, width):
    matrices, others, memory, forest = passes.copied(stream.state)
    out = np.full((len(stream.Phi), width), np.nan)
    labeled = stream.truths.dtype == np.int64
    learned = stream.truths >= 0 if labeled else ~np.isnan(stream.truths)
    records = Arrivals(stream.values, extras, learned, *stream[3:5], stream.past, scaling, feature_map)
    given = passes.plain(*arguments(matrices, others, memory, forest))
    advance_records(learn, records, given, out, -1 if labeled else np.nan)
    return (*matrices, *others, *memory, *forest), out


@EITHER
@BOTH
@pytest.mark.parametrize(("n_trees", "memory"), [(0, MEMORY), (TREES, 0), (TREES, MEMORY)])
def test_blocks_are_seen_by_nobody(kind, standardize, n_trees, memory):
    """All that arrives, and then all that passes, to the bit; a weight of 0 arrives and does not pass."""
    stream, arguments, advance, through, _, nothing, _ = kind(n_trees, memory, np.float32)
    rng, _, extras = _records(1)
    stream.weights[::9] = 0
    feature_map = _feature_map(rng, np.float32)
    ours, others = _scaling(standardize), _scaling(standardize)
    X, Phi = np.empty((N, INPUTS + EXTRAS), np.float32), np.empty((N, D))
    learned = stream.truths >= 0 if nothing == -1 else ~np.isnan(stream.truths)
    kernels.arrive(stream.values, extras, learned, others, feature_map, X, Phi)
    to_learn = np.where(stream.weights > 0, stream.truths, nothing)
    expected, predictions = through(stream._replace(Phi=Phi, X=X, truths=to_learn))
    state, out = _advanced(stream, extras, ours, feature_map, arguments, advance, predictions.shape[1])
    assert N > 2 * kernels.BLOCK
    assert out.tobytes() == predictions.tobytes()
    assert passes.bits(state) == passes.bits(expected)
    assert passes.bits(ours[3:]) == passes.bits(others[3:])


def _head(d, F, n_linear, K=1):
    rng = np.random.default_rng(d + F)
    W, scales = rng.normal(size=(d, F)) / 4, rng.uniform(0.3, 2, d)
    return rng.normal(size=(6, d)), rng.normal(size=(K, 2 * F + 1 + n_linear)), W, scales, ROOT, n_linear


@pytest.mark.parametrize(("d", "F", "n_linear"), [(1, 1, 0), (1, 4, 1), (3, 8, 3), (5, 2, 4), (9, 13, 0)])
class TestSlopes:
    def test_slopes(self, d, F, n_linear):
        X, (coefficients,), *how = _head(d, F, n_linear)
        for phi in naive.adaptive_columns(X, *how):
            out = np.full(d, np.nan)
            kernels.slopes(phi, coefficients, *how, np.full(F, np.nan), out)
            np.testing.assert_allclose(out, naive.slopes(phi, coefficients, *how), rtol=1e-10, atol=1e-10)

    def test_finite_differences(self, d, F, n_linear):
        X, (coefficients,), *how = _head(d, F, n_linear)
        out, h = np.empty(d), 1e-5
        for x, phi in zip(X, naive.adaptive_columns(X, *how), strict=True):
            kernels.slopes(phi, coefficients, *how, np.empty(F), out)
            up, down = (naive.adaptive_columns(x + sign * h * np.eye(d), *how) @ coefficients for sign in (1, -1))
            np.testing.assert_allclose(out, (up - down) / (2 * h), rtol=1e-7, atol=1e-7)

    @pytest.mark.parametrize("K", [1, 3])
    def test_squared_slopes(self, d, F, n_linear, K):
        X, coefficients, *how = _head(d, F, n_linear, K)
        Phi, out = naive.adaptive_columns(X, *how), np.full(d, np.nan)
        kernels.squared_slopes(Phi, coefficients, *how, out)
        np.testing.assert_allclose(out, naive.squared_slopes(Phi, coefficients, *how), rtol=1e-10, atol=1e-10)


def test_no_record_no_slope():
    _, coefficients, *how = _head(3, 4, 3)
    out = np.full(3, np.nan)
    kernels.squared_slopes(np.zeros((0, 12)), coefficients, *how, out)
    assert out.tolist() == [0, 0, 0]
