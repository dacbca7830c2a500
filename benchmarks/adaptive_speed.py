"""Records per second of the adaptive estimators beside River's models: dict in, predict, then learn.

    python -m benchmarks.adaptive_speed [--records N] [--rounds N] [--latencies N] [--out DIR]

Ten numbers a record, all defaults (128 frequencies, all experts), one thread. In each round every model goes on by the
same records, so that what disturbs the machine disturbs all of them; CPU time of the model's own calls. Then how long
single records take of a stream's first N.
"""

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from river import feature_extraction, forest, linear_model, neighbors, preprocessing
from river.datasets import synth

from benchmarks.command import asked
from benchmarks.report import load, publish, table
from streamkernel import AdaptiveKernelClassifier, AdaptiveKernelRegressor

Pair = tuple[dict[Any, Any], Any]
WARM_UP = 3_000
LATENCIES = ["us a record, its thread's CPU time (by the clock)", "median", "99%", "99.9%", "worst"]
QUANTILES = (0.5, 0.99, 0.999, 1.0)


def one_by_one(model: Any, records: Sequence[Pair]) -> None:
    for x, y in records:
        model.predict_one(x)
        model.learn_one(x, y)


def at_once(model: Any, records: Sequence[Pair]) -> None:
    model.advance([x for x, _ in records], [y for _, y in records])


Line = tuple[str, Any, Callable[[Any, Sequence[Pair]], None]]


def classifiers() -> list[Line]:
    scaled = preprocessing.StandardScaler
    sampler = partial(feature_extraction.RBFSampler, seed=1)
    return [
        ("AdaptiveKernelClassifier", AdaptiveKernelClassifier(seed=1), one_by_one),
        ("AdaptiveKernelClassifier, advance", AdaptiveKernelClassifier(seed=1), at_once),
        ("LogisticRegression", scaled() | linear_model.LogisticRegression(), one_by_one),
        ("RBFSampler, LogisticRegression", scaled() | sampler() | linear_model.LogisticRegression(), one_by_one),
        ("ARFClassifier", scaled() | forest.ARFClassifier(seed=1), one_by_one),
        ("AMFClassifier", scaled() | forest.AMFClassifier(seed=1), one_by_one),
        ("KNNClassifier", scaled() | neighbors.KNNClassifier(), one_by_one),
    ]


def regressors() -> list[Line]:
    scaled = preprocessing.StandardScaler
    return [
        ("AdaptiveKernelRegressor", AdaptiveKernelRegressor(seed=1), one_by_one),
        ("AdaptiveKernelRegressor, advance", AdaptiveKernelRegressor(seed=1), at_once),
        ("LinearRegression", scaled() | linear_model.LinearRegression(), one_by_one),
        ("ARFRegressor", scaled() | forest.ARFRegressor(seed=1), one_by_one),
        ("AMFRegressor", scaled() | forest.AMFRegressor(seed=1), one_by_one),
        ("KNNRegressor", scaled() | neighbors.KNNRegressor(), one_by_one),
    ]


def measure(lines: list[Line], stream: list[Pair], n_records: int, rounds: int) -> dict[str, list[float]]:
    """Records/s of every model in every round, after a warm-up."""
    for _, model, go in lines:
        go(model, stream[:WARM_UP])
    rates: dict[str, list[float]] = {name: [] for name, _, _ in lines}
    for number in range(rounds):
        start = WARM_UP + number * n_records
        records = stream[start : start + n_records]
        for name, model, go in lines:
            before = time.process_time()
            go(model, records)
            rates[name].append(n_records / (time.process_time() - before))
    return rates


def rows(rates: dict[str, list[float]]) -> list[list[str]]:
    """Return medians with their range, and how many times as fast ours is, one by one."""
    ours = statistics.median(next(iter(rates.values())))
    lines = []
    for name, values in rates.items():
        middle = statistics.median(values)
        lines.append([name, f"{middle:,.0f}", f"{min(values):,.0f} to {max(values):,.0f}", f"{ours / middle:.1f}"])
    return lines


def noisy(n_records: int) -> Iterator[tuple[Pair, Pair]]:
    """Yield Friedman's records, and records with inputs that are noise to their targets."""
    return zip(synth.Friedman(seed=1).take(n_records), synth.Friedman(seed=2).take(n_records), strict=True)


def streams(d: int, n: int) -> tuple[list[Pair], list[Pair]]:
    """Return streams of classes and of numbers with `d` inputs; in the second, inputs past ten are noise."""
    numbers = [({**x, **{10 + j: v for j, v in z.items()}} if d > 10 else x, y) for (x, y), (z, _) in noisy(n)]
    return list(synth.Hyperplane(seed=1, n_features=d).take(n)), numbers


def times(model: Any, records: Sequence[Pair]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return seconds of each record, of the thread's CPU time and by the clock, (n, 2)."""
    taken = np.empty((len(records), 2))
    for i, (x, y) in enumerate(records):
        cpu, clock = time.thread_time_ns(), time.perf_counter_ns()
        model.predict_one(x)
        model.learn_one(x, y)
        taken[i] = time.thread_time_ns() - cpu, time.perf_counter_ns() - clock
    return taken / 1e9


def latencies(kind: type, d: int, records: Sequence[Pair]) -> list[str]:
    """Return a line of the table: of each quantile the median of three runs, after one that compiles."""
    times(kind(seed=1), records[:500])
    found = [np.quantile(times(kind(seed=1), records), QUANTILES, axis=0) * 1e6 for _ in range(3)]
    cells = [f"{cpu:,.0f} ({clock:,.0f})" for cpu, clock in np.median(found, axis=0)]
    return [f"{kind.__name__}, {d} inputs, {len(records):,} records", *cells]


def main() -> None:
    options = asked(__doc__, records=1_000, rounds=9, latencies=20_000)
    needed = WARM_UP + options.records * options.rounds
    hyperplane = list(synth.Hyperplane(seed=1, n_features=10).take(needed))
    friedman = list(synth.Friedman(seed=1).take(needed))
    kinds = AdaptiveKernelClassifier, AdaptiveKernelRegressor
    single = [
        latencies(kind, d, records)
        for d in (10, 20)
        for kind, records in zip(kinds, streams(d, options.latencies), strict=True)
    ]
    head = ["records/s, median", "lowest to highest", "ours, times as fast"]
    publish(
        options,
        "adaptive_speed",
        "Speed of the adaptive estimators",
        f"{load()}. Dict in, `predict_one`, then `learn_one` (advance: the same by calls of {options.records:,} "
        f"records), ten inputs, all defaults, one thread; {options.rounds} rounds of {options.records:,} records "
        f"after {WARM_UP:,}, every model in every round. CPU time of the model's own calls, its StandardScaler "
        "included where River's model needs one.",
        table(
            ["Hyperplane, 2 classes", *head], rows(measure(classifiers(), hyperplane, options.records, options.rounds))
        ),
        table(["Friedman", *head], rows(measure(regressors(), friedman, options.records, options.rounds))),
        "One record, predicted and learned, from the first of a stream on: the medians of three runs' quantiles. Of 20 "
        "inputs Friedman's second ten are noise.",
        table(LATENCIES, single),
    )


if __name__ == "__main__":
    main()
