"""Compilation: lazy, linked as one module, and every kernel with its plain twin."""

import gc
import importlib
import inspect
import os
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest
from numba.core import compiler
from numba.core.compiler import Flags
from numba.core.errors import TypingError
from numba.core.registry import CPUDispatcher

import streamkernel
from streamkernel import compute
from streamkernel.compute.linking import QuickFlags
from tests import naive

PACKAGE = Path(streamkernel.__file__).parent


def _kernels():
    for module in pkgutil.iter_modules(compute.__path__):
        for name, value in vars(importlib.import_module(f"{compute.__name__}.{module.name}")).items():
            if isinstance(value, CPUDispatcher):
                yield name, value


def test_every_kernel_has_its_twin():
    names = {name for name, _ in _kernels()}
    assert len(names) >= 12
    assert names - {name for name, value in vars(naive).items() if inspect.isfunction(value)} == set()


def test_what_runs_for_long_lets_other_threads_run():
    released = {name for name, kernel in _kernels() if kernel.targetoptions.get("nogil")}
    assert {"nearest", "variance_reduced_steps", "semi_stochastic_rounds"} <= released
    assert {"pass_labels", "pass_numbers"} <= released  # of a block of records
    assert {"advance_rows", "advance_columns", "advance_sparse", "advance_factorized"} <= released


def test_only_compute_compiles():
    for path in PACKAGE.rglob("*.py"):
        if path.parent.name != "compute":
            assert "numba" not in path.read_text(), path


NOTHING_COMPILED = """
import importlib, pkgutil
from numba.core.registry import CPUDispatcher
import streamkernel
from streamkernel import compute
from streamkernel.compute import jit
kernels = [
    value
    for module in pkgutil.iter_modules(compute.__path__)
    for value in vars(importlib.import_module(f"streamkernel.compute.{module.name}")).values()
    if isinstance(value, CPUDispatcher)
]
print(len(kernels), sum(len(kernel.signatures) for kernel in kernels))
"""


@pytest.mark.usefixtures("processes")
def test_nothing_is_compiled_at_import():
    run = subprocess.run([sys.executable, "-c", NOTHING_COMPILED], capture_output=True, text=True, check=True)
    n_kernels, n_compiled = map(int, run.stdout.split())
    assert n_kernels >= 12
    assert n_compiled == 0


# As if numba had no class attribute for its libraries: only its own code finds them, at an object.
WITHOUT_INSIDES = """
from numba.core import codegen

def numbas_own(codegen_, name):
    if name == "_library_class":
        return codegen.JITCodeLibrary
    raise AttributeError(name)

del codegen.JITCPUCodegen._library_class
codegen.JITCPUCodegen.__getattr__ = numbas_own
"""
NESTED = """
import numpy as np
from streamkernel.compute import jit
from streamkernel.compute.experts import softmax_rows
scores, p = np.random.default_rng(1).normal(size=(5, 3)), np.empty((5, 3))
softmax_rows(scores, p)
print(jit._LINKING is not None, p.tobytes().hex())
"""


@pytest.mark.usefixtures("processes")
def test_where_numbas_insides_are_others_the_results_are_the_same(tmp_path):
    runs = [
        subprocess.run(
            [sys.executable, "-c", begin + NESTED],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONPATH": str(PACKAGE.parent), "NUMBA_CACHE_DIR": str(tmp_path / str(len(begin)))},
        ).stdout.split()
        for begin in ("", WITHOUT_INSIDES)
    ]
    (links, linked), (links_not, plain) = runs
    assert (links, links_not) == ("True", "False")
    assert plain == linked


@pytest.fixture
def collected():
    """Python's thresholds of garbage collection, which are put back."""
    before = gc.get_threshold()
    yield before
    gc.set_threshold(*before)


@pytest.fixture
def compilations(monkeypatch):
    """The first of these thresholds, and numba's class of options, at each compilation."""
    seen = []

    def observed(*args, compile_extra=compiler.compile_extra, **kws):
        seen.append((gc.get_threshold()[0], compiler.Flags))
        return compile_extra(*args, **kws)

    monkeypatch.setattr(compiler, "compile_extra", observed)
    return seen


def test_a_compilation_that_fails_leaves_numba_and_python_as_they_were(imported, collected, compilations):
    flags = compiler.Flags
    with pytest.raises(TypingError):
        imported()(None)
    assert compilations[0][1] is QuickFlags
    assert compiler.Flags is flags is not QuickFlags
    assert gc.get_threshold() == collected


SETTINGS = [
    {},
    {"no_cfunc_wrapper": True},
    {"no_cfunc_wrapper": True, "enable_pyobject": False},  # the latter as it is where nothing is set
    {"no_cfunc_wrapper": False},
    {"no_cfunc_wrapper": True, "fastmath": {"nsz"}},
    {"no_cfunc_wrapper": True, "fastmath": {"nsz"}, "error_model": "numpy"},
]


def _set(kind, settings):
    flags = kind()
    for name, value in settings.items():
        setattr(flags, name, value)
    return flags


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("others", SETTINGS)
def test_they_are_equal_where_numbas_are(settings, others):
    mine, other = _set(QuickFlags, settings), _set(QuickFlags, others)
    # Nothing set is no wrapper for C.
    defaults = {"no_cfunc_wrapper": True}
    numbas, numbas_other = _set(Flags, defaults | settings), _set(Flags, defaults | others)
    equal = numbas == numbas_other
    assert (mine == other, mine == numbas_other, numbas_other == mine) == (equal, equal, equal)
    assert (hash(mine) == hash(other)) >= equal
    assert hash(mine) == hash(numbas)
    assert {numbas: 1}.get(other) == {mine: 1}.get(numbas_other) == (1 if equal else None)
