"""Records per second of the adaptive estimators beside River's models: dict in, predict, then learn.

    python -m benchmarks.adaptive_speed [--records N] [--rounds N] [--latencies N] [--out DIR]

Ten numbers a record, all defaults (128 frequencies, all experts), one thread. In each round every model goes on by the
same records, so that what disturbs the machine disturbs all of them; CPU time of the model's own calls. Then how long
single records take of a stream's first N.
"""

import argparse
import os
import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

# One thread a model: NumPy reads these when it is imported.
os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"))

from river import feature_extraction, forest, linear_model, neighbors, preprocessing
from river.datasets import synth

from benchmarks import latency
from benchmarks.asked import at_least
from benchmarks.report import machine, table, write
from streamkernel import AdaptiveKernelClassifier, AdaptiveKernelRegressor

Pair = tuple[dict[Any, Any], Any]
WARM_UP = 3_000


def one_by_one(model: Any, records: list[Pair]) -> None:
    for x, y in records:
        model.predict_one(x)
        model.learn_one(x, y)


def at_once(model: Any, records: list[Pair]) -> None:
    model.advance([x for x, _ in records], [y for _, y in records])


Line = tuple[str, Any, Callable[[Any, list[Pair]], None]]


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
    """Medians with their range, and how many times as fast ours is, one by one."""
    ours = statistics.median(next(iter(rates.values())))
    return [
        [
            name,
            f"{statistics.median(values):,.0f}",
            f"{min(values):,.0f} to {max(values):,.0f}",
            f"{ours / statistics.median(values):.1f}",
        ]
        for name, values in rates.items()
    ]


def noisy(n_records: int) -> Iterator[tuple[Pair, Pair]]:
    """Friedman's records beside others, whose inputs are noise to their targets."""
    return zip(synth.Friedman(seed=1).take(n_records), synth.Friedman(seed=2).take(n_records), strict=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=at_least(1), default=1_000, help="records of a round (1,000)")
    parser.add_argument("--rounds", type=at_least(1), default=9)
    parser.add_argument("--latencies", type=at_least(1), default=20_000, help="records timed one by one (20,000)")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args()
    needed = WARM_UP + options.records * options.rounds
    hyperplane = list(synth.Hyperplane(seed=1, n_features=10).take(needed))
    friedman = list(synth.Friedman(seed=1).take(needed))
    n = options.latencies
    single = {
        d: (
            list(synth.Hyperplane(seed=1, n_features=d).take(n)),
            [({**x, **{10 + j: v for j, v in z.items()}} if d > 10 else x, y) for (x, y), (z, _) in noisy(n)],
        )
        for d in (10, 20)
    }
    head = ["records/s, median", "lowest to highest", "ours, times as fast"]
    text = f"""# Speed of the adaptive estimators

`python -m benchmarks.adaptive_speed` on {machine()}; load {os.getloadavg()[-1]:.1f} in the last
15 minutes.

Dict in, `predict_one`, then `learn_one` (advance: the same by calls of {options.records:,} records), ten inputs, all
defaults, one thread; {options.rounds} rounds of {options.records:,} records after {WARM_UP:,}, every model in every
round. CPU time of the model's own calls, its StandardScaler included where River's model needs one.

{table(["Hyperplane, 2 classes", *head], rows(measure(classifiers(), hyperplane, options.records, options.rounds)))}

{table(["Friedman", *head], rows(measure(regressors(), friedman, options.records, options.rounds)))}

One record, predicted and learned, from the first of a stream on: the medians of three runs' quantiles. Of 20 inputs
Friedman's second ten are noise.

{table(latency.HEADER, latency.rows(single, 3))}
"""
    write(options.out / "adaptive_speed.md", text)


if __name__ == "__main__":
    main()
