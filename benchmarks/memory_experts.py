"""What a memory of the adaptive estimators costs and brings, by its size and the number of inputs.

    python -m benchmarks.memory_experts [--records N] [--out DIR] [--quick]

Streams of 5, 10, 20 and 50 inputs: classes of moving centers (River's RandomRBFDrift), and a number that five of the
inputs tell (Friedman's function). At each d all models go on by the same records in turns, so that what disturbs the
machine disturbs all of them; CPU time of `advance`, by the median of the calls of the stream's second half.
"""

import statistics
import time
from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np
from river.datasets import synth

from benchmarks.command import asked, at_least
from benchmarks.report import load, publish, table
from benchmarks.streams import Pair
from streamkernel import AdaptiveKernelClassifier, AdaptiveKernelRegressor
from streamkernel.state import to_bytes

SIZES = (0, 500, 2_000, 10_000)
INPUTS = (5, 10, 20, 50)
CALL = 500


def moving_centers(d: int) -> Iterator[Pair]:
    """Four classes with 50 moving centers."""
    yield from synth.RandomRBFDrift(
        seed_model=1,
        seed_sample=1,
        n_classes=4,
        n_features=d,
        n_centroids=50,
        change_speed=0.001,
        n_drift_centroids=50,
    )


def friedman(d: int) -> Iterator[Pair]:
    """Friedman's function of the first five inputs, with noise of deviation 1."""
    rng = np.random.default_rng(1)
    while True:
        X, noise = rng.uniform(size=(CALL, d)), rng.normal(size=CALL)
        a, b, c, e, f = X[:, :5].T
        y = 10 * np.sin(np.pi * a * b) + 20 * (c - 0.5) ** 2 + 10 * e + 5 * f + noise
        yield from ((dict(enumerate(row)), float(target)) for row, target in zip(X.tolist(), y, strict=True))


def measure(kind: type, stream: Iterator[Pair], n_records: int) -> list[tuple[float, float, float]]:
    """Of each size of memory: us a record, the state's size in MB, and what was right, or the mean absolute error."""
    models = [kind(memory=size, seed=1) for size in SIZES]
    took: list[list[float]] = [[] for _ in SIZES]
    scores = [0.0] * len(SIZES)
    for _ in range(n_records // CALL):
        xs, ys = zip(*islice(stream, CALL), strict=True)
        for i, model in enumerate(models):
            before = time.process_time()
            said = model.advance(xs, ys).predictions
            took[i].append((time.process_time() - before) / CALL * 1e6)
            if kind is AdaptiveKernelClassifier:
                scores[i] += sum(one == y for one, y in zip(said, ys, strict=True))
            else:
                scores[i] += sum(abs(one - y) for one, y in zip(said, ys, strict=True))
    return [
        (
            statistics.median(took[i][-(-len(took[i]) // 2) :]),
            len(to_bytes(model.__getstate__())) / 1e6,
            score / n_records,
        )
        for i, (model, score) in enumerate(zip(models, scores, strict=True))
    ]


def rows(named: str, kind: type, stream: Any, n_records: int, inputs: tuple[int, ...]) -> list[list[str]]:
    """Lines of the table."""
    lines = []
    for d in inputs:
        measured = measure(kind, stream(d), n_records)
        for size, (us, megabytes, score) in zip(SIZES, measured, strict=True):
            asked = min(size, 100_000 // d)
            said = f"{score:.2%}" if kind is AdaptiveKernelClassifier else f"{score:.3f}"
            lines.append([f"{named}, d = {d}, memory = {size:,}", f"{asked:,}", f"{us:.0f}", f"{megabytes:.1f}", said])
    return lines


def main() -> None:
    records = {"type": at_least(CALL), "default": 20_000, "help": f"records of a stream, in calls of {CALL} (20,000)"}
    options = asked(__doc__, quick="one d and few records", records=records)
    n_records, inputs = (2 * CALL, (5,)) if options.quick else (options.records // CALL * CALL, INPUTS)
    head = ["records asked", "us a record", "state, MB"]
    classes = rows("centers", AdaptiveKernelClassifier, moving_centers, n_records, inputs)
    numbers = rows("Friedman", AdaptiveKernelRegressor, friedman, n_records, inputs)
    publish(
        options,
        "memory_experts",
        "What a memory costs",
        f"{load()}. {n_records:,} records of every stream, all other arguments at their defaults, one thread. A record "
        f"predicted and learned by calls of `advance` with {CALL} records: CPU time, the median of the calls of the "
        "second half, all models by the same records in turns. The state is as it is pickled at the end. Progressive "
        "validation from the first record on.",
        table(["classes of moving centers", *head, "accuracy"], classes),
        table(["Friedman's function", *head, "MAE"], numbers),
    )


if __name__ == "__main__":
    main()
