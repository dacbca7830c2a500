"""Arguments out of their range: one clear ValueError each, which names it; states that do not fit."""

import math

import numpy as np
import pytest

from streamkernel import GaussianProcessRegressor
from streamkernel.gaussian_process import TestPointFunctions, VarianceOperator
from streamkernel.kernels import ArcCosine, DotProduct, FourierKernel, Gaussian, Polynomial, SkewedChiSquared
from streamkernel.state import excerpt

_NOISE = "noise must be a finite number of at least 1e-06 times the largest k(x, x), which is 1, got"
WRONG = [
    (
        {"kernel": "gaussian"},
        "kernel must be None or a Kernel such as streamkernel.kernels.Gaussian(), got 'gaussian'",
    ),
    (
        {"kernel": Gaussian(structured=True)},
        "structured frequencies work only in KernelClassifier and KernelRegressor: use",
    ),
    *(
        (
            {"kernel": kernel},
            "GaussianProcessRegressor needs kernels with bounded features (Gaussian, Laplacian, Cauchy",
        )
        for kernel in (DotProduct(), Polynomial(), ArcCosine(1), Gaussian() + DotProduct())
    ),
    *(
        ({"noise": value}, f"{_NOISE} {excerpt(value)}")
        for value in (0, -0.1, 1e-7, math.nan, math.inf, 10**400, True, None, "1")
    ),
    ({"kernel": 1e-20 * Gaussian(), "noise": 1e290}, _NOISE.replace("is 1,", "is 1e-20,")),
    ({"kernel": 100.0 * Gaussian(), "noise": 1e-5}, _NOISE.replace("is 1,", "is 100,")),
    *(
        ({name: value}, f"{name} must be a whole number of at least 1, got {value!r}")
        for name in ("n_features", "max_inputs")
        for value in (0, -3, 1.5, True, None)
    ),
    (
        {"variance": "operator"},
        "variance must be None or a VarianceEstimator such as "
        "streamkernel.gaussian_process.VarianceOperator(), got 'operator'",
    ),
    *(
        ({name: value}, f"{name} must be True or False, got {value!r}")
        for name in ("normalize_y", "with_noise")
        for value in (None, 1)
    ),
    *(
        ({"drift_rate": value}, f"drift_rate must be a number from 0 to 1, got {value!r}")
        for value in (-1, 2, math.nan)
    ),
    ({"quasi_random": 1}, "quasi_random must be True, False or None, got 1"),
    ({"standardize": "no"}, "standardize must be True, False or None, got 'no'"),
    ({"kernel": SkewedChiSquared(1.0), "standardize": True}, "standardize=True shifts inputs below -1, which"),
    (
        {"kernel": SkewedChiSquared(1.0), "quasi_random": True},
        "quasi_random must be False or None with SkewedChiSquared",
    ),
    ({"seed": 1.0}, "seed must be a whole number or None, got 1.0"),
    ({"seed": True}, "seed must be a whole number or None, got True"),
]


def test_out_of_range(subtests):
    for arguments, message in WRONG:
        with subtests.test(arguments=arguments, message=message):
            with pytest.raises(ValueError) as error:  # noqa: PT011 - compared as text below
                GaussianProcessRegressor(**arguments)
            assert str(error.value).startswith(message)
            assert "\n" not in str(error.value)


@pytest.mark.parametrize("kind", [VarianceOperator, lambda **given: TestPointFunctions([{"a": 1.0}], **given)])
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"batch_size": 0}, "batch_size must be a whole number of at least 1, got 0"),
        ({"block_size": 2.0}, "block_size must be a whole number of at least 1, got 2.0"),
        ({"block_size": 32, "max_features": 31}, "max_features must be a whole number of at least 32, got 31"),
        ({"sample_size": 0}, "sample_size must be a whole number of at least 1, got 0"),
        ({"sample_size": True}, "sample_size must be a whole number of at least 1, got True"),
    ],
    ids=str,
)
def test_out_of_range_of_the_variance(kind, arguments, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        kind(**arguments)


@pytest.mark.parametrize(
    ("points", "message"),
    [
        ([], r"points must be a list of 1 to 4096 dicts of inputs by name, got \[\]"),
        ({"a": 1.0}, "points must be a list of 1 to 4096 dicts of inputs by name, got {'a': 1.0}"),
        ([1.0], r"points must be a list of 1 to 4096 dicts of inputs by name, got \[1.0\]"),
        ([{}] * 4097, "points must be a list of 1 to 4096 dicts of inputs by name, got 4097 points"),
        ([{"a": math.inf}], "points must be records: input 'a' is infinite"),
        ([{"a": [1]}], "points must be records: input 'a' is of type list"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_points_that_are_none(points, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        TestPointFunctions(points)


def test_points_outside_the_kernels_domain_are_refused_at_once():
    points = TestPointFunctions([{"a": 0.0}, {"a": -5.0}])
    with pytest.raises(ValueError, match=r"^points .*'a' is -5"):
        GaussianProcessRegressor(SkewedChiSquared(1.0), variance=points)


class Own(FourierKernel):
    """A Gaussian kernel of a user's."""

    def __init__(self):
        self.bandwidth = 1.0

    def matrix(self, X, Y, bandwidth):
        return Gaussian().matrix(X, Y, bandwidth)

    def frequencies(self, words, keys, bandwidth, out):
        Gaussian().frequencies(words, keys, bandwidth, out)


def test_a_kernel_of_ones_own_is_drawn():
    models = [
        GaussianProcessRegressor(Own(), seed=1),
        GaussianProcessRegressor(Gaussian(1.0), quasi_random=False, seed=1),
    ]
    for model in models:
        for i in range(20):
            model.learn_one({"a": i / 10}, float(i % 3))
    assert models[0].predict_one({"a": 0.7}) == models[1].predict_one({"a": 0.7})
    with pytest.raises(ValueError, match="quasi_random must be False or None"):
        GaussianProcessRegressor(Own(), quasi_random=True)
    with pytest.raises(NotImplementedError, match=r"^Own .*uniform numbers"):
        Own().frequencies_at(np.ones((1, 1, 1)), np.zeros(1, np.uint64), 1.0, np.ones((1, 1)))


class Wider(Gaussian):
    """Has other frequencies than its parent, which only it knows."""

    def frequencies(self, words, keys, bandwidth, out):
        super().frequencies(words, keys, 2 * bandwidth, out)


def test_quasi_random_frequencies_are_never_those_of_a_parent():
    assert (Gaussian().n_uniforms, Wider().n_uniforms, (Gaussian() * Gaussian()).n_uniforms) == (1, 0, 2)
    for kernel in (Wider(1.0), Gaussian(1.0) * Wider(1.0), Gaussian(1.0) + Wider(1.0)):
        with pytest.raises(ValueError, match="quasi_random must be False or None"):
            GaussianProcessRegressor(kernel, quasi_random=True)
