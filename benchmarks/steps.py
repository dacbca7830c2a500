"""Kinds of steps of the papers' machine beside its default: plain, averaged, large, constant; and the hinge loss.

    python -m benchmarks.steps [--data DIR] [--quick] [--out DIR]

Every record is predicted, then learned. Writes steps.md.
"""

from collections.abc import Sequence
from statistics import fmean, pstdev
from typing import Any

import numpy as np
from river.optim.losses import Hinge
from river.optim.schedulers import Constant

from benchmarks import progressive, streams
from benchmarks.board import number
from benchmarks.command import DATA, asked
from benchmarks.report import publish, table
from benchmarks.streams import Pair, Stream
from streamkernel import KernelClassifier, KernelRegressor
from streamkernel.growth import CDSG
from streamkernel.kernels import Gaussian

SETTINGS: dict[str, dict[str, Any]] = {
    "default": {},
    "precondition=False": {"precondition": False},
    "average=True": {"average": True},
    "precondition=False, average=True": {"precondition": False, "average": True},
    "batch_size=256, block_size=256": {"batch_size": 256, "block_size": 256},
    "step=Constant(0.2), precondition=True": {"step": Constant(0.2), "precondition": True},
    "the same with 0.1, batch_size=8": {"step": Constant(0.1), "precondition": True, "batch_size": 8},
}
HINGE: dict[str, dict[str, Any]] = {"default, which is plain": {}, "precondition=True": {"precondition": True}}
CHOSEN = "Phishing", "Bananas", "SEA", "Waveform", "Hyperplane", "RandomRBFDrift", "Friedman", "FriedmanDrift"
OTHERS = "Mixed", "WaterFlow", "Elec2", "a9a"
TWO_CLASSES = "Phishing", "Bananas", "SEA", "Agrawal"


def wave(n_inputs: int, n_records: int, seed: int) -> list[Pair]:
    """Normal inputs, and the sine of twice the first of them with some noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_records, n_inputs))
    y = np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=n_records)
    return [(dict(enumerate(row)), target) for row, target in zip(X.tolist(), y.tolist(), strict=True)]


def variance_left(records: Sequence[Pair], structured: bool, **arguments: Any) -> float:
    """The mean squared error over the second half, as a share of the variance of its targets."""
    xs, ys = zip(*records, strict=True)
    model = KernelRegressor(Gaussian(structured=structured), **arguments)
    half = len(ys) // 2
    errors = np.array(model.advance(xs, ys).predictions)[half:] - ys[half:]
    return float(np.mean(errors**2) / np.var(ys[half:]))


def score(stream: Stream, limit: int | None, **arguments: Any) -> float:
    """The progressive accuracy, or the mean absolute error."""
    estimator = KernelClassifier if stream.n_classes else KernelRegressor
    model = estimator(**{"growth": CDSG(), **arguments})
    return progressive.score(model, stream.records(limit), stream.n_classes > 0)


def waves(seeds: range, sizes: Sequence[tuple[int, int]]) -> str:
    """A row for each number of inputs and of records, and kind of frequencies."""
    rows = []
    for n_inputs, n_records in sizes:
        data = [wave(n_inputs, n_records, seed) for seed in seeds]
        for name, structured in (("independent", False), ("structured", True)):
            cells = []
            for arguments in SETTINGS.values():
                values = [
                    variance_left(one, structured, seed=seed, **arguments)
                    for one, seed in zip(data, seeds, strict=True)
                ]
                cells.append(f"{fmean(values):.3f} ± {pstdev(values):.3f}")
            rows.append([n_inputs, f"{n_records:,}", name, *cells])
    return table(["inputs", "records", "frequencies", *SETTINGS], rows)


def by_setting(
    chosen: Sequence[Stream], settings: dict[str, dict[str, Any]], seeds: range, limit: int | None, **more: Any
) -> str:
    """A row a stream, a column a setting."""
    rows = []
    for stream in chosen:
        measure = "accuracy" if stream.n_classes else "mae"
        cells = []
        for arguments in settings.values():
            values = [score(stream, limit, seed=seed, **arguments, **more) for seed in seeds]
            middle = fmean(values)
            cells.append(f"{number(middle, measure)} ± {number(pstdev(values), measure, middle)}")
        rows.append([stream.name, "accuracy %" if stream.n_classes else "MAE", *cells])
    return table(["stream", "measure", *settings], rows)


def main() -> None:
    options = asked(__doc__, quick="one seed, 1,000 records", data=DATA)
    seeds = range(1, 2 if options.quick else 4)
    limit = 1_000 if options.quick else None
    sizes = [(2, 1_000)] if options.quick else [(2, 2_000), (20, 2_000), (20, 20_000)]
    found = {name: stream for name, stream in streams.catalog(options.data).items() if stream.there}
    tuned, others, two_classes = ([found[n] for n in names if n in found] for names in (CHOSEN, OTHERS, TWO_CLASSES))
    publish(
        options,
        "steps",
        "Kinds of steps of the growing estimators",
        f"Every record is predicted, then learned; mean ± deviation of {len(seeds)} seeds. Streams of the accuracy "
        "benchmark, of the sixteen on which the default was chosen:",
        by_setting(tuned, SETTINGS, seeds, limit),
        "And others of its streams:",
        by_setting(others, SETTINGS, seeds, limit),
        "The sine of one input of several, which are normal, with noise of .1: the mean squared error over the second "
        "half, as a share of the variance. A model that learns nothing has 1.",
        waves(seeds, sizes),
        "The hinge loss, accuracy in per cent:",
        by_setting(two_classes, HINGE, seeds, limit, loss=Hinge()),
    )


if __name__ == "__main__":
    main()
