"""The kernel of a learned metric: its features and its matrix, unknown inputs, and models that use it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamkernel import AdaptiveKernelClassifier, GaussianProcessRegressor, KernelClassifier
from streamkernel.expansion.expansion import Expansion
from streamkernel.kernels import Cauchy, DotProduct, Gaussian, Laplacian, Mahalanobis, SkewedChiSquared
from streamkernel.state import key_of, tag

NAMES = ["a", "b", 3, ("c", True)]


def _metric(seed, d=4, rank=4):
    A = np.random.default_rng(seed).normal(size=(rank, d))
    return (A.T @ A).tolist()


def _keys(names):
    return np.array([key_of(["number", tag(name)]) for name in names], np.uint64)


@pytest.mark.parametrize("rank", [4, 2, 1])
@pytest.mark.parametrize("kernel", [Gaussian(2.0), Laplacian(3.0), Gaussian(2.0) * Cauchy(4.0)])
def test_features_approach_the_matrix_of_mapped_rows(kernel, rank):
    whole = Mahalanobis(NAMES, _metric(1, rank=rank), kernel)
    X = np.random.default_rng(2).normal(size=(12, 4)) / 2
    K = whole.matrix(X, X, kernel.bandwidth)
    inner, rows = whole.on_rows(X, _keys(NAMES))
    assert inner is kernel
    assert pytest.approx(kernel.matrix(rows, rows, kernel.bandwidth), abs=1e-12) == K
    if isinstance(kernel, Gaussian):
        M = np.array(whole.metric)
        for i in range(12):
            for j in range(12):
                apart = X[i] - X[j]
                assert K[i, j] == pytest.approx(np.exp(-(apart @ M @ apart) / 8), abs=1e-9)
    estimates = np.array([list(_estimates(whole, X, seed)) for seed in range(8)])
    one = np.sqrt(np.mean(np.square(estimates - K)))
    many = np.sqrt(np.mean(np.square(estimates.mean(axis=1) - K)))
    assert one / many == pytest.approx(4, rel=0.25)
    assert many < 0.01


def _estimates(kernel, X, seed):
    """Phi Phi^T of each of 16 blocks."""
    expansion = Expansion(kernel, 256, np.dtype("float64"), 0, seed)
    expansion.begin(X, 1.0)
    for block in range(16):
        phi = expansion.features(block, X, _keys(NAMES))
        yield phi @ phi.T


@settings(max_examples=20)
@given(st.permutations(range(7)), st.integers(0, 2**32), st.sampled_from([np.float32, np.float64]))
def test_frequencies_follow_from_names_and_of_unknown_inputs_are_zero(order, seed, dtype):
    kernel = Mahalanobis(NAMES, _metric(3), Gaussian(1.5))
    words = np.random.default_rng(seed).integers(0, 2**64, 8, dtype=np.uint64)
    W, wider = np.full((4, 8), np.nan, dtype), np.full((7, 8), np.nan, dtype)
    kernel.frequencies(words, _keys(NAMES), 1.5, W)
    names = [*NAMES, "unknown", "other", 0]
    kernel.frequencies(words, _keys([names[i] for i in order]), 1.5, wider)
    for place, i in enumerate(order):
        assert wider[place].tobytes() == (W[i].tobytes() if i < 4 else np.zeros(8, dtype).tobytes())
    few = np.full((2, 8), np.nan, dtype)
    kernel.frequencies(words[3:], _keys(NAMES[2:]), 1.5, few[:, 3:])
    assert few[:, 3:].tobytes() == np.ascontiguousarray(W[2:, 3:]).tobytes()
    rows = np.random.default_rng(seed).normal(size=(3, 7))
    _, mapped = kernel.on_rows(rows, _keys([names[i] for i in order]))
    _, alone = kernel.on_rows(rows[:, [order.index(i) for i in range(4)]], _keys(NAMES))
    assert mapped == pytest.approx(alone, rel=1e-12, abs=1e-12)


def _stream(n, seed=7, noise=30.0):
    """Two classes by two inputs, beside four of noise that are far larger."""
    rng = np.random.default_rng(seed)
    for _ in range(n):
        u, v, *rest = rng.normal(size=6)
        x = {"u": u, "v": v, **{f"noise {i}": noise * value for i, value in enumerate(rest)}}
        yield x, bool(u * v > 0)


def _accuracy(model, n=800):
    hits = 0
    for x, y in _stream(n):
        hits += model.predict_one(x) == y
        model.learn_one(x, y)
    return hits / n


def test_a_classifier_learns_by_the_metric_what_noise_hides_from_it():
    metric = [[1.0, 0.2], [0.2, 1.0]]
    plain = KernelClassifier(kernel=Gaussian(1.0), standardize=False, seed=1)
    knowing = KernelClassifier(kernel=Mahalanobis(["u", "v"], metric, Gaussian(1.0)), seed=1)
    assert _accuracy(plain) < 0.6
    assert _accuracy(knowing) > 0.85


def test_a_bandwidth_is_taken_from_distances_of_the_metric():
    model = KernelClassifier(kernel=Mahalanobis(["u", "v"], [[100.0, 0.0], [0.0, 100.0]]), batch_size=8, seed=1)
    for x, y in _stream(250, noise=1e9):
        model.learn_one(x, y)
    # .7 times the median distance of two standard normals in two dimensions, times 10.
    assert model.bandwidth == pytest.approx(0.7 * 10 * np.sqrt(2) * 1.177, rel=0.1)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Mahalanobis([], []), "inputs must be a list of 1 to 256 names"),
        (lambda: Mahalanobis("ab", np.eye(2)), "inputs must be a list of 1 to 256 names, got 'ab'"),
        (lambda: Mahalanobis(["a", "a"], np.eye(2)), "inputs must be different names"),
        (lambda: Mahalanobis(["a"], np.eye(2)), "metric must be 1 rows of 1 numbers"),
        (lambda: Mahalanobis(["a"], [["x"]]), "metric must be 1 rows of 1 numbers"),
        (lambda: Mahalanobis(["a"], [[np.nan]]), "metric must be 1 rows of 1 numbers"),
        (lambda: Mahalanobis(["a", "b"], [[1.0, 2.0], [0.0, 1.0]]), r"metric must be symmetric: give \(M \+ M.T\) / 2"),
        (
            lambda: Mahalanobis(["a", "b"], [[1.0, 2.0], [2.0, 1.0]]),
            "metric must be positive semi-definite, its least eigenvalue is -1",
        ),
        (lambda: Mahalanobis(["a"], [[1.0]], DotProduct()), "kernel must be one whose features are cosines of indep"),
        (lambda: Mahalanobis(["a"], [[1.0]], SkewedChiSquared()), "kernel must be one whose features are cosines"),
        (lambda: Mahalanobis(["a"], [[1.0]], Gaussian(structured=True)), "kernel must be one whose features are cosin"),
        (lambda: Mahalanobis(["a"], [[1.0]], Mahalanobis(["a"], [[1.0]])), "kernel must be one whose features"),
        (
            lambda: 2 * Mahalanobis(["a"], [[1.0]]),
            "kernel is a Mahalanobis, which a sum, product or multiple cannot contain",
        ),
        (
            lambda: AdaptiveKernelClassifier(kernel=Mahalanobis(["a"], [[1.0]])),
            "AdaptiveKernelClassifier does not accept Mahalanobis, which names its inputs: use KernelClassifier or",
        ),
        (
            lambda: GaussianProcessRegressor(kernel=Mahalanobis(["a"], [[1.0]])),
            "GaussianProcessRegressor does not accept Mahalanobis",
        ),
        (lambda: Mahalanobis(["a"], [[1.0]]).matrix(np.ones((2, 2)), np.ones((2, 2)), 1.0), "rows must have a column"),
    ],
)
def test_what_cannot_be_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
