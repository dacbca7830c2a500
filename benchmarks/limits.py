"""What the machine can do at most: the numbers that every other figure is to be read beside."""

from collections.abc import Callable

import numpy as np

from benchmarks.rounds import interleaved, spread
from streamkernel.compute.features import SINE, cos_sin
from streamkernel.compute.gaussians import gaussians

FLOAT = np.dtype("float32")
#: Floats of two arrays that are read at a time.
IN_DRAM, IN_L2 = 2**27, 2**18
DRAWN = (100, 512)
TURNS = 2**15


def measure(rounds: int) -> list[list[str]]:
    """A row each: the limit and its spread."""
    rng = np.random.default_rng(0)
    calls: dict[str, Callable[[], object]] = {}
    amount: dict[str, float] = {}

    def add(name: str, per_call: float, call: Callable[[], object]) -> None:
        calls[name], amount[name] = call, per_call

    def product(n: int, d: int, m: int) -> Callable[[], object]:
        A, B = rng.normal(size=(n, d)).astype(FLOAT), rng.normal(size=(d, m)).astype(FLOAT)
        C = np.empty((n, m), FLOAT)
        return lambda: np.matmul(A, B, out=C)

    def reading(n: int) -> Callable[[], object]:
        a, b = np.ones(n // 2, FLOAT), np.ones(n // 2, FLOAT)
        return lambda: np.dot(a, b)

    add("sgemm, 256 x 64 x 512, GFLOP/s", 2 * 256 * 64 * 512 / 1e9, product(256, 64, 512))
    add("sgemm, 1024 x 1024 x 1024, GFLOP/s", 2 * 1024**3 / 1e9, product(1024, 1024, 1024))
    add("memory read from DRAM (`sdot` of 512 MB), GB/s", IN_DRAM * 4 / 1e9, reading(IN_DRAM))
    add("memory read from L2 (`sdot` of 1 MB), GB/s", IN_L2 * 4 / 1e9, reading(IN_L2))

    words, keys = (rng.integers(2**63, size=size).astype(np.uint64) for size in reversed(DRAWN))
    drawn = np.empty(DRAWN, FLOAT)
    add("one Gaussian drawn, ns", -drawn.size / 1e9, lambda: gaussians(words, keys, 1.0, drawn))

    turns = rng.normal(size=TURNS).astype(FLOAT)
    cosines, sines = np.empty(TURNS, FLOAT), np.empty(TURNS, FLOAT)
    add("cosine and sine of a feature, ns", -TURNS / 1e9, lambda: cos_sin(turns, SINE[FLOAT], cosines, sines))
    radians = turns * 6
    add("the same by numpy, ns", -TURNS / 1e9, lambda: (np.cos(radians, cosines), np.sin(radians, sines)))
    nothing = np.empty(0, FLOAT)
    add("a compiled call with four arrays, us", -1 / 1e6, lambda: cos_sin(nothing, SINE[FLOAT], nothing, nothing))

    rows = []
    for name, seconds in interleaved(calls, rounds).items():
        n = amount[name]
        rows.append([name, spread([s / -n if n < 0 else n / s for s in seconds])])
    return rows
