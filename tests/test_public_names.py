"""The names of the packages: which are public, and that each class has one of its own."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.sources import sources

ROOT = Path(__file__).parent.parent


def test_a_class_name_occurs_once():
    places = {}
    for path, source in {**sources(ROOT / "streamkernel"), **sources(ROOT / "connectors")}.items():
        for name in source.classes:
            places.setdefault(name, []).append(path.relative_to(ROOT).as_posix())
    assert {name: where for name, where in places.items() if len(where) > 1} == {}


def test_the_public_names():
    import streamkernel
    import streamkernel.growth
    import streamkernel.kernels

    adaptive, growing = {"AdaptiveKernelClassifier", "AdaptiveKernelRegressor"}, {"KernelClassifier", "KernelRegressor"}
    others = {"GaussianProcessRegressor", "KernelDensityRatio", "KernelNoveltyDetector", "WindowRefit"}
    several = {"KernelMultiLabelClassifier", "KernelMultiTargetRegressor"}
    by_batches = {"KernelLeastSquaresClassifier", "KernelLeastSquaresRegressor"}
    assert set(streamkernel.__all__) == adaptive | growing | several | by_batches | others
    assert {"CDSG", "DSG", "UDSG", "OneClassStep"} <= set(streamkernel.growth.__all__)
    assert {"Gaussian"} <= set(streamkernel.kernels.__all__)
    for module in (streamkernel, streamkernel.growth, streamkernel.kernels):
        assert all(hasattr(module, name) for name in module.__all__)


@pytest.mark.usefixtures("processes")
def test_estimators_are_imported_once_one_is_asked_for():
    program = """
import sys, streamkernel
assert not {"numpy", "numba", "river"} & sys.modules.keys()
assert set(streamkernel.__all__) <= set(dir(streamkernel))
assert not hasattr(streamkernel, "Nothing")
from streamkernel import *
assert KernelClassifier is streamkernel.KernelClassifier
"""
    subprocess.run([sys.executable, "-c", program], check=True)
