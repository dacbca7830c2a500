"""Records per second of the adaptive estimators beside River's models: dict in, predict, then learn.

    python -m benchmarks.adaptive_speed [--records N] [--rounds N] [--out DIR]

Ten numbers a record, all defaults (128 frequencies, all experts), one thread. In each round every model goes on by the
same records, so that what disturbs the machine disturbs all of them; CPU time of the model's own calls.
"""

import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from river import feature_extraction, forest, linear_model, neighbors, preprocessing
from river.datasets import synth

from benchmarks.command import asked
from benchmarks.report import load, publish, table
from streamkernel import AdaptiveKernelClassifier, AdaptiveKernelRegressor

Pair = tuple[dict[Any, Any], Any]
WARM_UP = 3_000


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


def main() -> None:
    options = asked(__doc__, records=1_000, rounds=9)
    needed = WARM_UP + options.records * options.rounds
    hyperplane = list(synth.Hyperplane(seed=1, n_features=10).take(needed))
    friedman = list(synth.Friedman(seed=1).take(needed))
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
    )


if __name__ == "__main__":
    main()
