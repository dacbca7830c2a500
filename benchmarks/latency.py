"""How long one record keeps a model: predicted and learned, from the first record on, trees and metrics included."""

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from streamkernel import AdaptiveKernelClassifier, AdaptiveKernelRegressor

Pair = tuple[dict[Any, Any], Any]
HEADER = ["us a record, its thread's CPU time (by the clock)", "median", "99%", "99.9%", "worst"]
#: Quantiles of the table.
QUANTILES = (0.5, 0.99, 0.999, 1.0)


def times(model: Any, records: Sequence[Pair]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Seconds of each record, of the thread's CPU time and by the clock, (n, 2)."""
    taken = np.empty((len(records), 2))
    for i, (x, y) in enumerate(records):
        cpu, clock = time.thread_time_ns(), time.perf_counter_ns()
        model.predict_one(x)
        model.learn_one(x, y)
        taken[i] = time.thread_time_ns() - cpu, time.perf_counter_ns() - clock
    return taken / 1e9


def row(name: str, make: Callable[[], Any], records: Sequence[Pair], repeats: int) -> list[str]:
    """A line of the table: of each quantile the median of the repeats, after one that compiles."""
    times(make(), records[:500])
    found = [np.quantile(times(make(), records), QUANTILES, axis=0) * 1e6 for _ in range(repeats)]
    return [name, *(f"{cpu:,.0f} ({clock:,.0f})" for cpu, clock in np.median(found, axis=0))]


def rows(streams: dict[int, tuple[list[Pair], list[Pair]]], repeats: int) -> list[list[str]]:
    """Both estimators on streams of classes and of numbers, by their inputs."""
    return [
        row(f"{kind.__name__}, {d} inputs, {len(records):,} records", partial(kind, seed=1), records, repeats)
        for d, both in streams.items()
        for kind, records in zip((AdaptiveKernelClassifier, AdaptiveKernelRegressor), both, strict=True)
    ]
