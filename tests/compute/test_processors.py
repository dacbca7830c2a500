"""Draws are the same bits in every process and on every kind of processor, and stay so in every later version.

Models in checkpoints rest on these bits: another draw is another format of the state. numba compiles for processors
other than this one, in a process of its own.
"""

import os
import subprocess
import sys

import pytest
from llvmlite.binding import get_host_cpu_features

DRAWS = """
import hashlib
import numpy as np
from streamkernel.compute.gaussians import feature_words, gaussians
from streamkernel.compute.structured import Groups, _draw_norms, add_turns

def tell(values):
    print(hashlib.sha256(values.tobytes()).hexdigest())

words = np.empty(5000, np.uint64)
feature_words(np.uint64(2**64 - 3), 77, words)
for dtype in (np.float32, np.float64):
    out = np.empty((11, len(words)), dtype)
    gaussians(words, np.arange(11, dtype=np.uint64) * np.uint64(0x123456789ABCDEF), 1 / (2 * np.pi), out)
    tell(out)

groups = Groups(np.array([0, 16, 32, 64]), np.array([16, 16, 32, 64]))
turns = np.zeros((128, 2048), np.float32)
none_kept = np.zeros((4, 0), np.float32)
add_turns(np.eye(128, dtype=np.float32), groups, np.uint64(2**64 - 3), 1 / (2 * np.pi), none_kept, 2048, 2048, turns)
tell(turns)
"""
GOLDEN = [
    "2649b32f5d0665bf8faea9b85f25d2e879b08fb81fdbcc2fcd84cc106ed91bed",
    "67f6a4957203df24935af26501403cbacd215a9ccafd8534dff79f0de8cf227a",
    "7afc207a7033ec72fbf994b9711c2722e00457fb9ac79fe8464ed678a2858517",
]

# What code for a processor looks like: its widest registers, and whether bits are counted in one instruction.
MARKS = {
    "generic": "xmm",
    "x86-64-v2": "popcnt xmm",
    "haswell": "popcnt xmm ymm",
}
MARK = """
import re

for kernels in ([gaussians], [add_turns, _draw_norms]):
    code = "".join(part for kernel in kernels for part in kernel.inspect_asm().values())
    print(*sorted(set(re.findall("[xyz]mm|popcnt", code))))
"""


def test_the_draws_are_those_of_every_other_version(capsys):
    exec(DRAWS, {})
    assert capsys.readouterr().out.split() == GOLDEN


@pytest.mark.usefixtures("processes")
@pytest.mark.parametrize("processor", ["generic", "haswell", pytest.param("x86-64-v2", marks=pytest.mark.long)])
def test_every_kind_of_processor_draws_the_same(processor, tmp_path):
    if not get_host_cpu_features().get("avx2"):
        pytest.skip("needs an x86-64 processor with AVX2")
    # Without a word on features numba keeps all that this machine has. A fresh cache: nothing compiled for it is taken.
    environment = {"NUMBA_CPU_NAME": processor, "NUMBA_CPU_FEATURES": "", "NUMBA_CACHE_DIR": str(tmp_path)}
    run = subprocess.run(
        [sys.executable, "-c", DRAWS + MARK], capture_output=True, text=True, env={**os.environ, **environment}
    )
    assert not run.returncode, run.stderr
    *hashes, of_gaussians, of_structured = run.stdout.splitlines()
    assert of_gaussians == of_structured == MARKS[processor], "compiled for another processor"
    assert hashes == GOLDEN
