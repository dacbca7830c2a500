"""What a batch step loses against the same records learned one by one, and which settings make up for large batches.

    python -m benchmarks.batch_step [--data DIR] [--quick] [--out DIR]

One pass: every row is predicted before its batch, or it, is learned. Writes batch-step.md.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from river.datasets import synth

from benchmarks import streams
from benchmarks.command import DATA, asked
from benchmarks.report import publish, table
from benchmarks.streams import Pair, Stream
from streamkernel import KernelClassifier, KernelRegressor

SIZES = 256, 2_048, 16_384
SETTINGS: dict[str, dict[str, Any]] = {
    "default": {},
    "blocks_per_step=8": {"blocks_per_step": 8},
    "block_size=256, blocks_per_step=8": {"block_size": 256, "blocks_per_step": 8},
}
N_RECORDS = 65_536
#: Records of a call of `advance`, which learns them one by one.
AT_ONCE = 4_096
FROM_FILES = "Elec2", "a9a"


@dataclass(frozen=True)
class Data:
    """The records of a stream as arrays: of classes the labels, else numbers."""

    name: str
    X: Any
    y: Any
    of_classes: bool

    def losses(self, predictions: Sequence[Any]) -> Any:
        """Of each record 1 where the label is wrong, or the squared error as a share of the variance, in per cent."""
        if self.of_classes:
            return 100.0 * (np.array(predictions, object) != self.y.astype(object))
        return 100.0 * (np.array(predictions) - self.y) ** 2 / np.var(self.y)


@dataclass(frozen=True)
class Pass:
    """What one pass left: the mean loss of all records, and of the second half."""

    whole: float
    half: float
    n_features: int
    seconds: float


def waves(n: int) -> Data:
    """Five normal inputs; the sine of twice the first and the product of two others, with some noise."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, 5))
    return Data("waves", X, np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=n), False)


def of_stream(stream: Stream, n: int) -> Data:
    """The first records of a stream; what a record does not have is 0."""
    xs, ys = zip(*stream.encoded(n), strict=True)
    names = {name: j for j, name in enumerate(dict.fromkeys(name for x in xs for name in x))}
    X = np.zeros((len(xs), len(names)))
    for row, x in zip(X, xs, strict=True):
        row[[names[name] for name in x]] = list(x.values())
    return Data(stream.name, X, np.array(ys), stream.n_classes > 0)


def drawn(name: str, n_classes: int, generator: Any) -> Stream:
    """A generator of `river.datasets.synth` as a stream that does not end before `N_RECORDS`."""

    def rows() -> Any:
        yield from generator.take(N_RECORDS)

    return Stream(name, streams.SIXTEEN, N_RECORDS, n_classes, rows)


def chosen(folder: Path, n: int, quick: bool) -> list[Data]:
    """Return the streams that need no file and, in a whole run, those of files."""
    rbf = synth.RandomRBF(seed_model=1, seed_sample=1, n_classes=4, n_features=10, n_centroids=50)
    found = [drawn("Friedman", 0, synth.Friedman(seed=1)), drawn("RandomRBF", 4, rbf)]
    if not quick:
        found += streams.readable(stream for stream in streams.from_files(folder) if stream.name in FROM_FILES)
    return [waves(n), *(of_stream(stream, n) for stream in found)]


def measured(data: Data, size: int | None, seed: int, **arguments: Any) -> Pass:
    """One pass in batches of a size, or record by record where it is None."""
    model = (KernelClassifier if data.of_classes else KernelRegressor)(seed=seed, **arguments)
    records: list[Pair] = []
    if size is None:
        records = list(zip((dict(enumerate(row)) for row in data.X.tolist()), data.y.tolist(), strict=True))
    predictions: list[Any] = []
    begin = time.perf_counter()
    for start in range(0, len(data.y), size or AT_ONCE):
        part = slice(start, start + (size or AT_ONCE))
        if size is None:
            xs, ys = zip(*records[part], strict=True)
            predictions += model.advance(xs, ys).predictions
        else:
            predictions += model.batch_step(data.X[part], data.y[part]).predictions
    seconds = time.perf_counter() - begin
    losses = data.losses(predictions)
    return Pass(float(losses.mean()), float(losses[len(losses) // 2 :].mean()), model.n_features, seconds)


def compared(data: Data, seeds: range, sizes: Sequence[int]) -> dict[str, list[list[Pass]]]:
    """The passes of each setting and way to learn, one of each seed."""
    print(f"{data.name}: {len(data.y):,} records of {data.X.shape[1]} inputs", flush=True)
    return {
        name: [[measured(data, size, seed, **arguments) for seed in seeds] for size in (None, *sizes)]
        for name, arguments in SETTINGS.items()
    }


#: What each number of a pass is called in its table.
NAMES = {"half": ", second half", "whole": ", all records", "n_features": "features", "seconds": "seconds"}


def rows_of(data: Data, passes: dict[str, list[list[Pass]]], number: str, places: int) -> list[list[str]]:
    """The rows of a stream in the table of one of a pass's numbers."""
    loss = "errors" if data.of_classes else "variance left"
    measure = loss + NAMES[number] if number in ("half", "whole") else NAMES[number]
    return [
        [data.name, measure, name, *(f"{fmean(getattr(one, number) for one in of):,.{places}f}" for of in ways)]
        for name, ways in passes.items()
    ]


def main() -> None:
    options = asked(__doc__, quick="one seed, 1,024 records, smaller batches, no files", data=DATA)
    seeds, n, sizes = (range(1, 2), 1_024, (64, 256)) if options.quick else (range(1, 3), N_RECORDS, SIZES)
    found = [(data, compared(data, seeds, sizes)) for data in chosen(options.data, n, options.quick)]
    head = ["stream", "measure", "setting", "record by record", *(f"batches of {size:,}" for size in sizes)]

    def of_number(number: str, places: int) -> str:
        return table(head, [row for data, passes in found for row in rows_of(data, passes, number, places)])

    publish(
        options,
        "batch-step",
        "Batch steps beside records one by one",
        "One pass of the growing estimators over each stream, in which every record is predicted before it, or its "
        f"batch, is learned; means of {len(seeds)} seed{'s' * (len(seeds) > 1)}. Record by record a step is of 32 "
        "records, in batches of all that are given. What is not said in a setting is the default: blocks of 64, two of "
        "them a step, 4,096 features at most.",
        "The loss over the second half of the records, in per cent: wrong labels, or the mean squared error as a share "
        f"of the variance. {', '.join(f'{data.name} has {len(data.y):,} records' for data, _ in found)}.",
        of_number("half", 2),
        "Over all records. A batch is predicted before anything of it is known, and the first one by a model that "
        "knows nothing (a regressor predicts 0): of large batches that is most of it.",
        of_number("whole", 2),
        "Features at the end:",
        of_number("n_features", 0),
        "Seconds of the pass, on a machine with others at work on it:",
        of_number("seconds", 1),
    )


if __name__ == "__main__":
    main()
