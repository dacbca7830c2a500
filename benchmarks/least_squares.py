"""Least squares by batches: what a batch step loses against records one by one, and what the adaptive estimators add.

    python -m benchmarks.least_squares [--data DIR] [--streams A,B] [--seeds N ...] [--quick] [--out DIR]

Every record is predicted before it is learned; a batch before any of its records is. Scored are the records after the
first 2,048, so that each batch size has learned something by then.
"""

import time
from collections.abc import Callable, Sequence
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np

from benchmarks import streams
from benchmarks.board import number
from benchmarks.command import DATA, NAMES, asked, at_least
from benchmarks.report import publish, table
from benchmarks.streams import Pair, Stream, of_names
from streamkernel import (
    AdaptiveKernelClassifier,
    AdaptiveKernelRegressor,
    KernelLeastSquaresClassifier,
    KernelLeastSquaresRegressor,
)

SIZES = (2048, 256, 64)
SEEDS = (1, 2, 3)
STREAMS = (
    *("Bananas", "Agrawal", "SEA", "LED", "RandomRBFDrift", "Hyperplane", "Waveform", "Friedman", "FriedmanDrift"),
    *("Planes2D", "Mv"),
)
QUICK = ("SEA", "Friedman")
#: Records that are not scored, and those of a quick run, with theirs.
UNSCORED, QUICK_RECORDS, QUICK_UNSCORED = 2048, 600, 256
ONE, ADAPTIVE = "one by one", "adaptive"


class Run(NamedTuple):
    """The score of a model, accuracy as a share or the mean absolute error, and microseconds a record."""

    score: float
    microseconds: float


def in_batches(model: Any, xs: Sequence[dict[Any, Any]], ys: Sequence[Any], size: int) -> list[Any]:
    """What is predicted of records that are learned batch by batch."""
    X, predictions = np.array([[x[name] for name in xs[0]] for x in xs]), []
    for start in range(0, len(ys), size):
        part = slice(start, start + size)
        predictions += model.batch_step(X[part], ys[part]).predictions
    return predictions


def one_by_one(model: Any, xs: Sequence[dict[Any, Any]], ys: Sequence[Any]) -> list[Any]:
    """What is predicted of records that are learned one after the other."""
    predictions: list[Any] = model.advance(xs, ys).predictions
    return predictions


def models(regression: bool, sizes: Sequence[int]) -> dict[str, tuple[Callable[..., Any], Callable[..., list[Any]]]]:
    """By name: a model's class and how it learns."""
    batch = KernelLeastSquaresRegressor if regression else KernelLeastSquaresClassifier
    ways: dict[str, Any] = {
        f"batches of {size:,}": (batch, lambda model, xs, ys, size=size: in_batches(model, xs, ys, size))
        for size in sizes
    }
    adaptive = AdaptiveKernelRegressor if regression else AdaptiveKernelClassifier
    return {**ways, ONE: (batch, one_by_one), ADAPTIVE: (adaptive, one_by_one)}


def run(pairs: Sequence[Pair], kind: Callable[..., Any], learn: Callable[..., list[Any]], seed: int, skip: int) -> Run:
    """Predict and learn a stream, and score it after its first records."""
    xs, ys = map(list, zip(*pairs, strict=True))
    model = kind(seed=seed)
    began = time.perf_counter()
    predictions = learn(model, xs, ys)
    seconds = time.perf_counter() - began
    both = list(zip(predictions, ys, strict=True))[skip:]
    by_label = hasattr(model, "predict_proba_one")
    score = fmean(p == y if by_label else abs(p - y) for p, y in both)
    return Run(score, 1e6 * seconds / len(ys))


def measured(stream: Stream, seeds: Sequence[int], quick: bool) -> dict[str, list[Run]]:
    """The runs of every model on a stream, one a seed."""
    pairs = list(stream.encoded(QUICK_RECORDS if quick else None))
    sizes = [size // 8 for size in SIZES] if quick else SIZES
    found: dict[str, list[Run]] = {}
    for name, (kind, learn) in models(not stream.n_classes, sizes).items():
        run(pairs[: sizes[-1]], kind, learn, 0, 0)  # compiles
        skip = QUICK_UNSCORED if quick else UNSCORED
        found[name] = [run(pairs, kind, learn, seed, skip) for seed in seeds]
    return found


def main() -> None:
    seeds_given = {"nargs": "+", "type": at_least(0), "default": SEEDS, "metavar": "N"}
    options = asked(__doc__, quick="short streams, one seed", data=DATA, streams=NAMES, seeds=seeds_given)
    names = options.streams or (QUICK if options.quick else STREAMS)
    seeds = options.seeds[:1] if options.quick else options.seeds
    chosen = of_names(streams.catalog(options.data).values(), names)
    found = {stream: measured(stream, seeds, options.quick) for stream in chosen}
    columns = list(next(iter(found.values())))
    scores, times = [], []
    for stream, runs in found.items():
        measure = "accuracy" if stream.n_classes else "error"
        scores.append([stream.name, *(number(fmean(r.score for r in runs[name]), measure) for name in columns)])
        times.append([stream.name, *(f"{fmean(r.microseconds for r in runs[name]):,.0f}" for name in columns)])
    publish(
        options,
        "least_squares",
        "Least squares by batches",
        "`KernelLeastSquaresClassifier` and `KernelLeastSquaresRegressor` by defaults, by batches and by records one "
        f"by one, and the adaptive estimators, in file order; mean of the seeds {', '.join(map(str, seeds))}. Every "
        "record is predicted before it is learned, a batch before any of its records. Scored are the records after "
        f"the first {QUICK_UNSCORED if options.quick else UNSCORED:,}.",
        "## Accuracy in per cent, or mean absolute error",
        table(["stream", *columns], scores),
        "## Microseconds a record, predicted and learned",
        table(["stream", *(f"us, {name}" for name in columns)], times),
    )


if __name__ == "__main__":
    main()
