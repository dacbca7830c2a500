"""A function of no model, for what compiles and what is cached."""

import importlib
import sys

import pytest

KERNEL = """
from streamkernel.compute.jit import jit

@jit
def twice(value):
    return value + value
"""


@pytest.fixture
def imported(tmp_path, monkeypatch):
    """Import the kernel as a process of its own would: nothing is compiled, all is in the cache."""
    (tmp_path / "kernel.py").write_text(KERNEL)
    monkeypatch.syspath_prepend(tmp_path)

    def anew():
        sys.modules.pop("kernel", None)
        return importlib.import_module("kernel").twice

    yield anew
    sys.modules.pop("kernel", None)
