"""Compiled code as other processors than this one would have it: numba compiles for them, in a process of its own."""

import os
import subprocess
import sys

import pytest
from llvmlite.binding import get_host_cpu_features

# What code for a processor looks like: its widest registers, and whether bits are counted in one instruction.
_MARKS = {
    "generic": ["xmm"],
    "x86-64-v2": ["popcnt", "xmm"],
    "haswell": ["popcnt", "xmm", "ymm"],
}
OTHERS = pytest.mark.parametrize("processor", ["generic", "haswell", pytest.param("x86-64-v2", marks=pytest.mark.long)])

_PREAMBLE = """
import hashlib, re
import numpy as np

def tell(*arrays):
    print(hashlib.sha256(b"".join(array.tobytes() for array in arrays)).hexdigest())

def mark(*kernels):
    code = "".join(part for kernel in kernels for part in kernel.inspect_asm().values())
    print(*sorted(set(re.findall("[xyz]mm|popcnt", code))))
"""


def told(script, **environment):
    """The lines that a script prints, which may `tell` arrays by their hashes."""
    run = subprocess.run(
        [sys.executable, "-c", _PREAMBLE + script],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
    )
    assert not run.returncode, run.stderr
    return run.stdout.splitlines()


def told_as(processor, script, kernels, cache):
    """The same as if this were another processor, by the code of some kernels shown to be compiled for it."""
    if not get_host_cpu_features().get("avx2"):
        pytest.skip("needs an x86-64 processor with AVX2")
    # Without a word on features numba keeps all that this machine has. A fresh cache: nothing compiled for it is taken.
    environment = {"NUMBA_CPU_NAME": processor, "NUMBA_CPU_FEATURES": "", "NUMBA_CACHE_DIR": str(cache)}
    *lines, marks = told(f"{script}\nmark({kernels})", **environment)
    assert marks.split() == _MARKS[processor], f"compiled for another processor: {marks}"
    return lines
