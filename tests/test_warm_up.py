"""First use: one warning says what is waited for, and after a warm-up nothing is left to compile."""

import importlib
import os
import pkgutil
import random
import subprocess
import sys

import pytest
from kafka.record.memory_records import MemoryRecords
from numba.core.registry import CPUDispatcher

from streamkernel import (
    AdaptiveKernelClassifier,
    AdaptiveKernelRegressor,
    KernelClassifier,
    KernelDensityRatio,
    KernelMultiLabelClassifier,
    KernelMultiTargetRegressor,
    KernelNoveltyDetector,
    KernelRegressor,
    WindowRefit,
    compute,
)
from streamkernel.connectors.compiled import compile_connectors
from streamkernel.connectors.kafka.base.messages import Messages
from streamkernel.connectors.kafka.writing.batches import batched
from streamkernel.daemon.cli import main
from streamkernel.growth import DSG, UDSG
from streamkernel.kernels import (
    ChiSquared,
    ExponentialSemigroup,
    Gaussian,
    Laplacian,
    Polynomial,
    SkewedIntersection,
)
from streamkernel.window import DSPDC, S3GD, SVRG, Exact


def _compiled():
    """Every kernel's signatures that this process has compiled or loaded."""
    modules = [importlib.import_module(f"{compute.__name__}.{m.name}") for m in pkgutil.iter_modules(compute.__path__)]
    kernels = {value for module in modules for value in vars(module).values() if isinstance(value, CPUDispatcher)}
    return {f"{kernel.__name__}{signature}" for kernel in kernels for signature in kernel.signatures}


def test_after_the_command_warmed_up_nothing_is_left_to_compile(capsys):
    assert main(["warm-up"]) == 0
    assert capsys.readouterr().out == ""
    before = _compiled()
    rng = random.Random(2)
    xs = [
        {"a": rng.random(), 7: i % 5, f"late{i // 90}": True, "text": "pqr"[i % 3], "gap": None if i % 9 else 1.0}
        for i in range(260)
    ]
    for model, ys in (
        (AdaptiveKernelClassifier(n_features=16), [f"class {i % 3}" for i in range(260)]),
        (AdaptiveKernelRegressor(n_trees=0), [x["a"] for x in xs]),
        (KernelClassifier(growth=DSG(), batch_size=8), [i % 3 == 0 for i in range(260)]),
        (KernelClassifier(precondition=False, average=True), [i % 4 for i in range(260)]),
        (KernelClassifier(block_size=4, batch_size=32, blocks_per_step=3), [i % 4 for i in range(260)]),
        (KernelRegressor(growth=UDSG(), dtype="float64"), [x["a"] for x in xs]),
        (KernelRegressor(kernel=Gaussian(2.0, structured=True)), [x["a"] for x in xs]),
        (KernelRegressor(kernel=Laplacian() + Polynomial(3) * ChiSquared()), [x["a"] for x in xs]),
        (KernelClassifier(kernel=SkewedIntersection() + ExponentialSemigroup()), [i % 3 for i in range(260)]),
        *(
            (WindowRefit(KernelRegressor(max_features=64), 200, 240, solver), [x["a"] for x in xs])
            for solver in (DSPDC(), Exact(), S3GD(anchors=20), SVRG())
        ),
        (KernelMultiTargetRegressor(), [{"a": x["a"], **({"late": 1} if i > 99 else {})} for i, x in enumerate(xs)]),
        (KernelMultiLabelClassifier(dtype="float64"), [{"a": i % 3 == 0, "b": i % 2 == 0} for i in range(260)]),
        (KernelDensityRatio(p=True, q=False), [i % 3 == 0 for i in range(260)]),
        (KernelDensityRatio(p=True, q=False, dtype="float64", average=True), [i % 3 == 0 for i in range(260)]),
    ):
        for x, y in zip(xs[:120], ys[:120], strict=True):
            model.predict_one(x)
            model.learn_one(x, y)
        model.advance(xs[120:], ys[120:], [0.5] * 140)
        model.clone(include_attributes=True).predict_one(xs[0])
    for detector in (KernelNoveltyDetector(batch_size=8), KernelNoveltyDetector(growth=UDSG(), dtype="float64")):
        for x in xs[:120]:
            detector.score_one(x)
            detector.learn_one(x)
        detector.advance(xs[120:], None, [0.5] * 140)
        detector.clone(include_attributes=True).score_one(xs[0])
    assert _compiled() - before == set()


FIRST = """
import numpy as np
from streamkernel.compute.gaussians import counted, mix64
counted(np.uint32(1), np.uint32(2))
mix64(np.uint64(1))
"""


@pytest.mark.usefixtures("processes")
def test_one_warning_says_what_is_waited_for_and_that_it_is_kept(tmp_path):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    said = [
        subprocess.run(
            [sys.executable, "-c", FIRST], env=environment, capture_output=True, text=True, check=True
        ).stderr.splitlines()
        for _ in range(2)
    ]
    assert len(said[0]) == 1
    assert "compiling for this machine" in said[0][0]
    assert f"the result is kept in {tmp_path}" in said[0][0]
    assert said[1] == []


def test_after_that_a_batch_of_kafka_compiles_nothing():
    compile_connectors()
    before = _compiled()
    [batch] = batched([(b"key", b"{}", b"", 0), (None, b"{}", b"", 0)], [5, 6], 2**20, None)
    read = MemoryRecords(batch.buffer()).next_batch()
    data = memoryview(read._buffer)[read.HEADER_STRUCT.size :]
    messages = Messages.in_batch(data, 0, 5, 2)
    assert [(one.key, one.value, one.timestamp) for one in messages] == [(b"key", b"{}", 5), (None, b"{}", 6)]
    assert _compiled() - before == set()
