"""Every estimator with every kernel that it takes, and one clear sentence for each that it does not take."""

import copy
import pickle
import re
from pathlib import Path

import numpy as np
import pytest

from streamkernel import (
    AdaptiveKernelClassifier,
    AdaptiveKernelRegressor,
    GaussianProcessRegressor,
    KernelClassifier,
    KernelDensityRatio,
    KernelNoveltyDetector,
    KernelRegressor,
    kernels,
)
from streamkernel.gaussian_process.features import ProcessFeatures, can_be_quasi_random
from streamkernel.kernels.spectral import SpectralMixture
from tests.kernels.cases import CASES

PAGE = Path(__file__).parents[2] / "docs" / "estimators" / "choosing.md"
OF_OTHERS = {"Sum", "Product", "Scaled", "SpectralMixture", "Mahalanobis"}
OF_TABLE_1 = sorted(set(kernels.__all__) - {"Kernel", "FourierKernel"} - OF_OTHERS)
BOUNDED = [name for name, (kernel, _) in CASES.items() if kernel.kappa is not None and kernel.feature_bound is not None]


def test_every_kernel_has_its_cases_and_a_doctest():
    assert len(OF_TABLE_1) == 15
    # One of named inputs has its cases in test_mahalanobis.py.
    own = set(kernels.__all__) - {"Kernel", "FourierKernel", "Mahalanobis"}
    assert {type(kernel).__name__ for kernel, _ in CASES.values()} >= own
    for name in set(kernels.__all__) - {"Kernel", "FourierKernel"}:
        assert ">>> " in getattr(kernels, name).__doc__, name


@pytest.mark.parametrize("name", CASES)
def test_a_kernel_is_copied_by_pickle_clone_and_the_call_that_it_is_shown_as(name):
    kernel, X = CASES[name]
    shown = eval(repr(kernel), {**vars(kernels), "SpectralMixture": SpectralMixture})
    K = kernel.matrix(X, X, 1.3)
    for made in (pickle.loads(pickle.dumps(kernel)), copy.deepcopy(kernel), kernel.clone(), shown):
        assert repr(made) == str(made) == repr(kernel)
        assert np.array_equal(made.matrix(X, X, 1.3), K)
        for stated in ("bandwidth", "n_parts", "domain", "kappa", "feature_bound", "standardizes", "shift_invariant"):
            assert getattr(made, stated) == getattr(kernel, stated)
    model = KernelRegressor(kernel=kernel, seed=1)
    assert repr(model.clone()) == repr(model)


@pytest.mark.parametrize("name", BOUNDED)
def test_the_features_of_a_gaussian_process_are_near_the_kernel(name):
    """In F of a process's own columns, quasi-random where they can be."""
    kernel, X = CASES[name]
    K = kernel.matrix(X, X, kernel.bandwidth) / kernel.kappa
    keys = np.random.default_rng(3).integers(0, 2**64, X.shape[1], dtype=np.uint64)
    for quasi_random in {False, can_be_quasi_random(kernel)}:
        errors = []
        for seed in range(5):
            phi = ProcessFeatures(kernel, 1024, quasi_random, seed).of(X, keys, keys[:0])
            errors.append(np.linalg.norm(phi @ phi.T - K) / np.linalg.norm(K))
        assert np.mean(errors) < 0.15


def _rows():
    """Kernel, the estimators that take it, whether inputs are standardized, and what they may be; by the page."""
    table = PAGE.read_text().split("## Which kernel", 1)[1].split("\n## ", 1)[0]
    for cells in re.findall(r"^\| `(.+?)` \| (.*) \|$", table, re.MULTILINE):
        yield cells[0], [cell.strip() for cell in cells[1].split(" | ")]


def test_the_page_says_what_the_code_accepts():
    """Its rows, tried: the adaptive estimators, the Gaussian process, standardized inputs, their domain."""
    seen = set()
    for written, (_, adaptive, process, inputs) in _rows():
        kernel = eval(written, vars(kernels))
        seen.add(type(kernel).__name__)
        for estimators, accepted in (
            ((AdaptiveKernelClassifier, AdaptiveKernelRegressor), adaptive),
            ((GaussianProcessRegressor,), process),
        ):
            for estimator in estimators:
                assert accepted in {"yes", "no"}
                if accepted == "yes":
                    estimator(kernel=kernel)
                else:
                    with pytest.raises(
                        ValueError, match=r"needs kernels|structured frequencies work only|which names its inputs"
                    ):
                        estimator(kernel=kernel)
        for growing in (KernelClassifier, KernelRegressor, KernelNoveltyDetector):
            growing(kernel=kernel)
        KernelDensityRatio(kernel=kernel, p=1, q=0)
        domain = kernel.domain
        bound = "any" if domain is None else "above -c" if domain.is_open else "from 0 up"
        assert inputs == f"{bound}, {'standardized' if kernel.standardizes else 'unscaled'}", written
    assert seen >= set(OF_TABLE_1) | {"Sum", "Product", "Scaled", "Mahalanobis"}
