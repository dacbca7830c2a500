"""Models of any size, restored from a record instead of learned, and what they take of a process's memory.

    python -m benchmarks.footprint '{"m": 1000000, "d": 784}'

Prints the bytes as JSON. A process of its own for each model, because freed memory of one would serve the next; a small
model of the same kind does everything first, so that imports and compiled code do not count.
"""

import gc
import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"))

import numpy as np

from streamkernel import KernelClassifier, KernelRegressor
from streamkernel.kernels import Gaussian

BATCH, BLOCK = 32, 64  # the papers' machine by default
Model = KernelClassifier | KernelRegressor


def regressor(m: int, d: int, kernel: Gaussian, cache_bytes: int = 2**26) -> KernelRegressor:
    """A model of m features for the inputs 0 to d - 1, with random coefficients."""
    model = KernelRegressor(kernel, block_size=BLOCK, max_features=m, cache_bytes=cache_bytes, seed=1)
    model.learn_many(*_rows(BATCH, d, 1))
    model.__setstate__(sized(model, m))
    return model


def classifier(m: int, d: int, n_classes: int, kernel: Gaussian) -> KernelClassifier:
    """The same of K classes."""
    model = KernelClassifier(kernel, block_size=BLOCK, max_features=m, seed=1)
    model.learn_many(*_rows(math.ceil(n_classes / BATCH) * BATCH, d, n_classes))
    model.__setstate__(sized(model, m))
    return model


def sized(model: Model, m: int) -> dict[str, Any]:
    """The state of a model with m features and small random coefficients instead of its own, no block touched yet."""
    record = model.__getstate__()
    rng = np.random.default_rng(m)
    n_blocks = m // BLOCK
    _, K, width = record["alpha"].shape
    record["alpha"] = rng.standard_normal((n_blocks, K, width), np.float32)
    record["alpha"] *= np.float32(0.1 / math.sqrt(n_blocks))  # f(x) of about .1
    record["beta"] = np.zeros((n_blocks, K))
    record["n_grown"] = n_blocks
    return record


def _rows(n: int, d: int, n_classes: int) -> tuple[Any, list[Any]]:
    rng = np.random.default_rng(d)
    return rng.normal(size=(n, d)), [i % n_classes if n_classes > 1 else float(i) for i in range(n)]


def _kilobytes(field: str) -> int:
    status = Path("/proc/self/status").read_text()
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith(field)))


class Peak:
    """Bytes that were resident at most since the last look, above those at the beginning (Linux)."""

    def __init__(self) -> None:
        gc.collect()
        self._reset()
        self._before = _kilobytes("VmRSS")

    def look(self) -> int:
        most = 1024 * (_kilobytes("VmHWM") - self._before)
        gc.collect()
        self._reset()
        return most

    def _reset(self) -> None:
        Path("/proc/self/clear_refs").write_text("5")


def footprint(m: int, d: int, structured: bool = False, cache_bytes: int = 2**26, rows: int = 64) -> dict[str, int]:
    """Bytes of a regressor, restored: its own account, and peaks above the process without it."""
    kernel = Gaussian(math.sqrt(d), structured)
    X, y = _rows(rows + BATCH, d, 1)

    def work(model: KernelRegressor) -> None:
        model.predict_many(X[:rows])
        model.learn_many(X[rows:], y[rows:])

    model = KernelRegressor(kernel, block_size=BLOCK, max_features=m, cache_bytes=cache_bytes, seed=1)
    model.learn_many(X[:BATCH], y[:BATCH])
    few = sized(model, min(m, BLOCK))
    model.__setstate__(few)
    work(model)
    model.__setstate__(few)
    peak = Peak()
    record = sized(model, m)
    model.__setstate__(record)
    coefficients = int(record["alpha"].nbytes)
    del record
    restoring = peak.look()
    work(model)
    return {
        "coefficients": coefficients,
        "account": model.memory_bytes,
        "restoring": restoring,
        "working": peak.look(),
    }


def measured(**arguments: Any) -> dict[str, int]:
    """The same in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.footprint", json.dumps(arguments)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, int] = json.loads(done.stdout)
    return found


if __name__ == "__main__":
    json.dump(footprint(**json.loads(sys.argv[1])), sys.stdout)
