"""Batch steps on Spark: one core beside two, what the model costs to send, and a cost model beside what is measured.

    python -m benchmarks.spark [--rounds N] [--batches N] [--quick] [--out DIR]

It needs the extra `spark` and Java. Each run is a process of its own with a session on `local[1]` or `local[2]`, one
thread of BLAS for each worker; the first ten batches, in which Java compiles most of what it runs and caches fill, are
left out.
"""

import argparse
import json
import os
import pickle
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from benchmarks.command import asked
from benchmarks.report import publish, table
from benchmarks.rounds import spread
from streamkernel import KernelClassifier
from streamkernel.estimators.base import machine_of
from streamkernel.growth import DSG

#: Rows of a micro-batch and features of the model.
SIZES = ((100_000, 8_192), (100_000, 32_768), (400_000, 8_192))
QUICK_SIZES = ((2_000, 256),)
#: By which the model of costs is fitted: the overhead of jobs, that of rows, and that of features.
FEW, LEAST = 1_000, 128
N_INPUTS, PARTITIONS, BLOCKS = 20, 4, 2
WARM = 10


class Batches(NamedTuple):
    """Seconds of batches, of sending the model, and the bytes of the model."""

    seconds: list[float]
    sending: list[float]
    n_bytes: int


Runs = dict[tuple[int, int], list[Batches]]


def data(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """n rows of standard normal inputs and two classes that no line parts."""
    X = np.random.default_rng(seed).normal(size=(n, N_INPUTS))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] > 0


def grown(n_features: int) -> KernelClassifier:
    """A model of so many features, which goes on by two blocks a step."""
    model = KernelClassifier(growth=DSG(), max_features=n_features, seed=1)
    updates, X_y = machine_of(model).updates, data(2_048, 0)
    while model.n_features < n_features:
        updates.blocks_per_step = min(64, (n_features - model.n_features) // 64)
        model.batch_step(*X_y)
    updates.blocks_per_step = BLOCKS
    return model


def child(given: dict[str, Any]) -> Batches:
    """Learn batches on one master, in this process."""
    import pyarrow as pa
    from pyspark.sql import SparkSession

    from streamkernel.spark import learn_batch_of
    from streamkernel.spark.executors import Broadcast
    from streamkernel.spark.rows import _SentModel

    spark = (
        SparkSession.builder.master(given["master"])
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "2g")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.execution.arrow.maxRecordsPerBatch", "10000")
        .config("spark.sql.files.minPartitionNum", PARTITIONS)  # a file each
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    model = pickle.loads(Path(given["model"]).read_bytes())
    df = spark.read.parquet(given["rows"]).persist()  # not shuffled, as a micro-batch of a source is not
    df.count()
    seconds, sending, n_bytes = [], [], 0

    def received(batches: Any) -> Any:
        for _ in batches:
            pass
        begun = time.perf_counter()
        sent.get()
        yield pa.record_batch({"s": [time.perf_counter() - begun]})

    for _ in range(WARM + given["batches"]):
        begun = time.perf_counter()
        learn_batch_of(df, model, "y")
        seconds.append(time.perf_counter() - begun)
        begun = time.perf_counter()
        sent = Broadcast(spark, _SentModel(model, len))  # type: ignore[arg-type]  # no function is called here
        made, n_bytes = time.perf_counter() - begun, sent.size
        fetched = spark.range(PARTITIONS).repartition(PARTITIONS).mapInArrow(received, "s double").collect()
        sending.append(made + max(row.s for row in fetched))
        sent.forget()
    spark.stop()
    return Batches(seconds[WARM:], sending[WARM:], n_bytes)


def run(master: str, rows: Path, model: Path, batches: int) -> Batches:
    """Learn batches on one master, in a process of its own."""
    given = json.dumps({"master": master, "rows": str(rows), "model": str(model), "batches": batches})
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYSPARK_PYTHON": sys.executable}
    environment |= {"SPARK_LOCAL_IP": "127.0.0.1"}
    command = [sys.executable, "-m", "benchmarks.spark", "--child", given]
    printed = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout
    return Batches(*json.loads(printed.splitlines()[-1]))


class Costs(NamedTuple):
    """Seconds: of a batch without rows, of a row beside its features, of a row and a feature that is scored."""

    batch: float
    row: float
    feature: float

    def seconds(self, n_rows: int, n_features: int, n_cores: int) -> float:
        """What a batch takes."""
        return self.batch + n_rows * (self.row + n_features * self.feature) / n_cores


def fitted(runs: dict[tuple[int, int], float]) -> Costs:
    """The costs by three runs on one core: of few rows, of few features, and of the first size."""
    few, least, first = runs[FEW, LEAST], runs[SIZES[0][0], LEAST], runs[SIZES[0]]
    m, F = SIZES[0]
    feature = (first - least) / (m * (F - LEAST))
    row = (least - few) / (m - FEW) - LEAST * feature
    return Costs(few - FEW * (row + LEAST * feature), row, feature)


def main() -> None:
    child_given = {"help": argparse.SUPPRESS}
    options = asked(__doc__, quick="one round of one small size", rounds=3, batches=5, child=child_given)
    if options.child is not None:
        print(json.dumps(child(json.loads(options.child))))
        return
    sizes, rounds = (QUICK_SIZES, 1) if options.quick else (SIZES, options.rounds)
    with tempfile.TemporaryDirectory() as folder:
        rows, models = files(Path(folder), sizes)
        one: Runs = {size: [] for size in sizes}
        two: Runs = {size: [] for size in sizes}
        for _ in range(rounds):
            for n, F in sizes:
                one[n, F].append(run("local[1]", rows[n], models[F], options.batches))
                two[n, F].append(run("local[2]", rows[n], models[F], options.batches))
        parts = [scaling(sizes, one, two)]
        if not options.quick:
            base = {size: median(runs_of(one[size])) for size in sizes}
            for n in (FEW, SIZES[0][0]):
                base[n, LEAST] = median(run("local[1]", rows[n], models[LEAST], options.batches).seconds)
            parts.append(costs(fitted(base), one, two))
    publish(options, "spark", "Batch steps on Spark", *parts)


def files(folder: Path, sizes: tuple[tuple[int, int], ...]) -> tuple[dict[int, Path], dict[int, Path]]:
    """Rows as folders of Parquet files, one a partition, by their number, and models by that of their features."""
    import pyarrow as pa
    from pyarrow.dataset import write_dataset

    rows, models = {}, {}
    for n in {FEW, *(n for n, _ in sizes)}:
        X, y = data(n, 1)
        columns = {f"x{j}": X[:, j] for j in range(N_INPUTS)}
        rows[n] = folder / f"{n}.parquet"
        a_file = {"max_rows_per_file": n // PARTITIONS, "max_rows_per_group": n // PARTITIONS}
        write_dataset(pa.table({**columns, "y": y}), rows[n], format="parquet", **a_file)
    for F in {LEAST, *(F for _, F in sizes)}:
        models[F] = folder / f"{F}.model"
        models[F].write_bytes(pickle.dumps(grown(F)))
    return rows, models


def runs_of(runs: list[Batches]) -> list[float]:
    """The seconds of all batches of some runs."""
    return [seconds for one in runs for seconds in one.seconds]


def scaling(sizes: tuple[tuple[int, int], ...], one: Runs, two: Runs) -> str:
    """The table of one core and two, and of the model that is sent."""
    lines = []
    for size in sizes:
        ratios = [median(a.seconds) / median(b.seconds) for a, b in zip(one[size], two[size], strict=True)]
        sending = median(s for runs in two[size] for s in runs.sending)
        seconds = median(runs_of(two[size]))
        lines.append(
            [
                f"{size[0]:,}",
                f"{size[1]:,}",
                f"{median(runs_of(one[size])):.2f}",
                f"{seconds:.2f}",
                spread(ratios),
                f"{two[size][0].n_bytes / 1e6:.2f}",
                f"{1000 * sending:.1f}",
                f"{100 * sending / seconds:.2f}%",
            ]
        )
    text = (
        f"Rows of {N_INPUTS} inputs in {PARTITIONS} partitions, cached; a softmax of two classes, {BLOCKS} "
        "preconditioned blocks of 64 features a step, DSG at `max_features`. Seconds of a batch, medians, without the "
        f"first {WARM}; the ratio is "
        "of the medians of runs one after the other, the median of the rounds with their least and most. Sending a "
        "model is to serialize and broadcast it, and to restore it on the slowest executor; its share is of the batch "
        "on two cores."
    )
    head = ["rows", "features", "one core, s", "two cores, s", "faster by", "model, MB", "sending, ms", "share"]
    return f"{text}\n\n{table(head, lines)}"


def costs(model: Costs, one: Runs, two: Runs) -> str:
    """The table of what the cost model says beside what was measured."""
    lines = []
    for size in SIZES:
        for n_cores, runs in ((1, one), (2, two)):
            said, was = model.seconds(*size, n_cores), median(runs_of(runs[size]))
            fit = ", fitted" if n_cores == 1 and size == SIZES[0] else ""
            lines.append(
                [f"{size[0]:,}", f"{size[1]:,}", f"{n_cores}{fit}", f"{said:.2f}", f"{was:.2f}", f"{said / was:.2f}"]
            )
    text = (
        "A batch of m rows on p cores with F features takes c + m (r + F s) / p seconds, with "
        f"c = {model.batch:.2f} s, r = {1e6 * model.row:.1f} us and s = {1e9 * model.feature:.2f} ns, fitted on one "
        f"core to {FEW:,} rows and {SIZES[0][0]:,} rows of {LEAST} features, and to the first size below. Beside what "
        "was measured:"
    )
    head = ["rows", "features", "cores", "cost model, s", "measured, s", "ratio"]
    far = [
        [f"{n:,}", f"{F:,}", f"{p:,}", f"{model.seconds(n, F, p):,.0f}", f"{n / model.seconds(n, F, p):,.0f}"]
        for n, F, p in ((10**6, 10**5, 64), (10**6, 10**6, 64), (10**7, 10**6, 1_000))
    ]
    beyond = "What it says of sizes that were not measured, with as many partitions as cores:"
    far_head = ["rows", "features", "cores", "a batch, s", "records a second"]
    return f"{text}\n\n{table(head, lines)}\n\n{beyond}\n\n{table(far_head, far)}"


if __name__ == "__main__":
    main()
