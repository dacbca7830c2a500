"""Compilation: lazy, cached where it can be, and every kernel with its plain twin."""

import importlib
import inspect
import os
import pkgutil
import shutil
import subprocess
import sys
from pathlib import Path

from numba.core.registry import CPUDispatcher

import streamkernel
from streamkernel import compute
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


def test_only_compute_compiles():
    for path in PACKAGE.rglob("*.py"):
        if path.parent.name != "compute":
            assert "numba" not in path.read_text(), path


NOTHING_COMPILED = """
import importlib, pkgutil
from numba.core.registry import CPUDispatcher
import streamkernel
from streamkernel import compute
kernels = [
    value
    for module in pkgutil.iter_modules(compute.__path__)
    for value in vars(importlib.import_module(f"streamkernel.compute.{module.name}")).values()
    if isinstance(value, CPUDispatcher)
]
print(len(kernels), sum(len(kernel.signatures) for kernel in kernels))
"""


def test_nothing_is_compiled_at_import():
    run = subprocess.run([sys.executable, "-c", NOTHING_COMPILED], capture_output=True, text=True, check=True)
    n_kernels, n_compiled = map(int, run.stdout.split())
    assert n_kernels >= 12
    assert n_compiled == 0


LEARN = """
from streamkernel import KernelClassifier
import streamkernel
model = KernelClassifier(batch_size=2, block_size=2, seed=1)
for i in range(6):
    model.learn_one({"a": float(i)}, i % 2 == 0)
print(streamkernel.__file__, model.n_steps)
"""


def test_an_install_without_a_writable_cache_folder_warns_once_and_works(tmp_path):
    """Files where folders would have to be: not even root can cache there."""
    copy = tmp_path / "streamkernel"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    for folder in [copy, *(path for path in copy.rglob("*") if path.is_dir())]:
        (folder / "__pycache__").touch()
    blocked = tmp_path / "file"
    blocked.touch()
    environment = {
        **os.environ,
        "PYTHONPATH": str(tmp_path),
        "HOME": str(blocked),
        "XDG_CACHE_HOME": str(blocked / "cache"),
        "NUMBA_CACHE_DIR": str(blocked / "numba"),
    }
    run = subprocess.run(
        [sys.executable, "-W", "always::RuntimeWarning", "-c", LEARN],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environment,
    )
    assert run.stdout.split() == [str(copy / "__init__.py"), "3"], run.stderr
    assert run.stderr.count("RuntimeWarning") == 1
    assert "set NUMBA_CACHE_DIR to a writable folder" in run.stderr
