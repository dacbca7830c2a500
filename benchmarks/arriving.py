"""What it costs to get records in: a dict to a row of floats, and frames to a model, beside the plain ways.

Not one of the ratios; figures of microseconds a record.
"""

import copy
import math
import operator
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl

from benchmarks.rounds import interleaved, spread
from streamkernel import KernelClassifier
from streamkernel.growth.record_machine import GrowingFastPath
from streamkernel.records.inputs import Inputs

INPUTS = 20
NAMES = [f"x{i}" for i in range(INPUTS)]
COLD = """
import time; start = time.perf_counter()
from streamkernel import KernelClassifier
model = KernelClassifier(seed=1)
for i in range(64):
    model.learn_one({"a": i % 7, "b": -i % 5}, i % 3 == 0)
model.predict_one({"a": 1, "b": 2})
print(time.perf_counter() - start)
"""


def plain_records(n: int) -> list[dict[str, Any]]:
    rows = np.random.default_rng(0).normal(size=(n, INPUTS)).tolist()
    return [dict(zip(NAMES, row, strict=True)) for row in rows]


def mixed_records(n: int) -> list[dict[str, Any]]:
    """Eighteen numbers, of which one in ten is None, and two strings."""
    rng = np.random.default_rng(1)
    records = plain_records(n)
    for x in records:
        for name in rng.choice(NAMES[:-2], 2, replace=False):
            x[name] = None
        x[NAMES[-2]] = rng.choice(["red", "green", "blue"]).item()
        x[NAMES[-1]] = rng.choice(["mon", "tue", "wed", "thu"]).item()
    return records


def by_struct(records: list[dict[str, Any]], buffer: Any) -> None:
    get, pack = operator.itemgetter(*NAMES), struct.Struct(f"{INPUTS}d").pack_into
    data = buffer.data
    for x in records:
        pack(data, 0, *get(x))


def by_list(records: list[dict[str, Any]], buffer: Any) -> None:
    for x in records:
        buffer[:] = [x.get(name) for name in NAMES]


def by_loop(records: list[dict[str, Any]], buffer: Any) -> None:
    for x in records:
        for i, name in enumerate(NAMES):
            buffer[i] = x[name]


def by_case(records: list[dict[str, Any]], buffer: Any, column: dict[Any, int]) -> None:
    """The loop one would write for strings and missing values."""
    for x in records:
        buffer[:] = math.nan
        for name, value in x.items():
            if value is None:
                continue
            if isinstance(value, str):
                buffer[column[name, value]] = 1.0
            else:
                buffer[column[name]] = value


def dicts(rounds: int) -> list[list[str]]:
    """From a dict to contiguous floats."""
    n = 1_000
    plain, mixed = plain_records(n), mixed_records(n)
    # As the machine has it: inputs that are known already.
    inputs, others = Inputs(10_000, True), Inputs(10_000, True)
    inputs.encode(plain, [True] * n)
    others.encode(mixed, [True] * n)
    fast_path = GrowingFastPath(inputs)
    column: dict[Any, int] = {}
    for x in mixed:
        for name, value in x.items():
            column.setdefault((name, value) if isinstance(value, str) else name, len(column))
    row, wide = np.empty(INPUTS), np.empty(len(column))

    def through_lane() -> None:
        for x in plain:
            assert fast_path.takes(x)

    def one_by_one() -> None:
        for x in mixed:
            others.encode([x], [True])

    calls: dict[str, Callable[[], object]] = {
        "20 numbers | ours, a record alone (all checked: type, finite, no other name)": through_lane,
        "20 numbers | ours, 1,000 at once (checked as well)": lambda: inputs.encode(plain, [True] * n),
        "20 numbers | `struct.pack_into(*itemgetter(...)(x))`": lambda: by_struct(plain, row),
        "20 numbers | `[x.get(name) for name in names]` into an array": lambda: by_list(plain, row),
        "20 numbers | a loop over the names": lambda: by_loop(plain, row),
        "18 numbers, some None, 2 strings | ours, a record alone": one_by_one,
        "18 numbers, some None, 2 strings | ours, 1,000 at once": lambda: others.encode(mixed, [True] * n),
        "18 numbers, some None, 2 strings | a loop over the items": lambda: by_case(mixed, wide, column),
    }
    took = interleaved(calls, rounds)
    return [[*name.split(" | "), spread([1e6 * s / n for s in seconds])] for name, seconds in took.items()]


def frames(rounds: int, n: int) -> list[list[str]]:
    """`learn_many` and `predict_many` of n rows against the loop over their dicts."""
    records = plain_records(n)
    y = [math.sin(2 * x["x0"]) + x["x1"] * x["x2"] > 0 for x in records]
    columns = pl.DataFrame(records)
    tables = {"pandas": columns.to_pandas(), "polars": columns, "numpy": columns.to_numpy()}
    kinds: dict[str, Any] = {**tables, "a loop over dicts": records, "`advance` of dicts": records}
    learned: dict[str, KernelClassifier] = {}

    def learn(kind: str) -> None:
        model = learned[kind] = KernelClassifier(max_features=512, seed=1)
        if kind in tables:
            model.learn_many(tables[kind], y)
        elif kind == "`advance` of dicts":
            model.advance(records, y)
        else:
            for x, label in zip(records, y, strict=True):
                model.learn_one(x, label)

    def predict(kind: str) -> object:
        model = learned[kind]
        if kind in tables:
            return model.predict_many(tables[kind])
        if kind == "`advance` of dicts":
            return model.advance(records, [None] * n)
        return [model.predict_one(x) for x in records]

    for kind in kinds:
        learn(kind)
    digests = {kind: copy.deepcopy(model).state_digest() for kind, model in learned.items() if kind != "numpy"}
    assert len(set(digests.values())) == 1, "the ways to learn do not agree"  # an array's names are others
    learning = interleaved({kind: lambda kind=kind: learn(kind) for kind in kinds}, rounds, at_least=0)  # type: ignore[misc]
    predicting = interleaved({kind: lambda kind=kind: predict(kind) for kind in kinds}, rounds, at_least=0)  # type: ignore[misc]
    return [[kind, *(spread([1e6 * s / n for s in took[kind]]) for took in (learning, predicting))] for kind in kinds]


def cold_start(runs: int) -> tuple[list[float], list[float]]:
    """Seconds from a cold import to the first prediction, and of the whole process, with a warm cache; wall clock."""
    inside, whole = [], []
    for run in range(runs + 1):
        before = time.perf_counter()
        done = subprocess.run([sys.executable, "-c", COLD], check=True, capture_output=True, text=True)
        if run:  # the first one warms the cache
            inside.append(float(done.stdout))
            whole.append(time.perf_counter() - before)
    return inside, whole
