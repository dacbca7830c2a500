"""Accuracy in so many bytes: our estimators by `max_bytes`, River's trees as large as fit.

    python -m benchmarks.budget [--data DIR] [--quick] [--streams A,B] [--limit SECONDS] [--out DIR]

Of River's trees and forests each is the largest that fits from the first record to the last by its own account
(`_raw_memory_usage`, after every 500 records): HAT by ever smaller values of `max_size`, which bounds an estimate of
its own, and forests of ever fewer trees.
"""

import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

from river import forest, preprocessing, tree

from benchmarks import streams
from benchmarks.board import number
from benchmarks.command import DATA, NAMES, asked
from benchmarks.progressive import ClassScores, ErrorScores, follow
from benchmarks.report import publish, table
from benchmarks.streams import Stream, of_names
from streamkernel import AdaptiveKernelClassifier, AdaptiveKernelRegressor

BUDGETS = {"128 KiB": 2**17, "512 KiB": 2**19, "2 MiB": 2**21, "8 MiB": 2**23}
STREAMS = ("RandomRBFDrift", "ImageSegments", "LED", "Friedman", "ChickWeights", "Elec2", "House8L", "bike12")
QUICK = ("Phishing", "ChickWeights")
QUICK_RECORDS = 400
BETWEEN = 500  # records between two looks at the memory
SEED = 1

Make = Callable[[], Any]


class Run(NamedTuple):
    """How far a model came, its score, and the most bytes that it took."""

    reached: int
    score: float
    most: int


def run(model: Any, stream: Stream, encoded: bool, budget: int, limit: float, n_records: int | None) -> Run:
    """Predict, then learn, until the end, the limit of CPU seconds, or more bytes than the budget."""
    tally: ClassScores | ErrorScores = ClassScores() if stream.n_classes else ErrorScores()
    source = iter((stream.encoded if encoded else stream.records)(n_records))
    reached, most, seconds = 0, 0, 0.0
    while seconds < limit and most <= budget and (chunk := list(islice(source, BETWEEN))):
        guesses: list[Any] = []
        start = time.process_time()
        follow(model, chunk, stream.n_classes > 0, guesses)
        seconds += time.process_time() - start
        for (_, y), guess in zip(chunk, guesses, strict=True):
            tally.update(y, guess)
        reached += len(chunk)
        most = max(most, model._raw_memory_usage if encoded else model.memory_bytes)
    return Run(reached, tally.scores()["accuracy" if stream.n_classes else "mae"], most)


def trees(budget: int, classes: bool) -> dict[str, list[Make]]:
    """River's trees and forests, each from the largest to the smallest."""

    def hat(share: float) -> Any:
        kind = tree.HoeffdingAdaptiveTreeClassifier if classes else tree.HoeffdingAdaptiveTreeRegressor
        return kind(seed=SEED, max_size=share * budget / 2**20, memory_estimate_period=BETWEEN)

    def arf(n_models: int) -> Any:
        kind = forest.ARFClassifier if classes else forest.ARFRegressor
        return kind(seed=SEED, n_models=n_models)

    def amf(n_estimators: int) -> Any:
        kind = forest.AMFClassifier if classes else forest.AMFRegressor
        return kind(seed=SEED, n_estimators=n_estimators)

    return {
        "HAT": [partial(hat, share) for share in (1, 0.5, 0.25, 0.1, 0.02)],
        "ARF": [partial(arf, n) for n in (10, 5, 2, 1)],
        "AMF": [partial(amf, n) for n in (10, 5, 2, 1)],
    }


def fitting(makes: list[Make], stream: Stream, budget: int, limit: float, n_records: int | None) -> Run | None:
    """The run of the largest model that fits, None if there is none."""
    for make in makes:
        found = run(preprocessing.StandardScaler() | make(), stream, True, budget, limit, n_records)
        if found.most <= budget:
            return found
    return None


def rows(stream: Stream, limit: float, n_records: int | None) -> Iterator[list[str]]:
    """Yield a line for each budget."""
    n = min(stream.n_records, n_records or stream.n_records)
    measure = "accuracy" if stream.n_classes else "mae"
    kind = AdaptiveKernelClassifier if stream.n_classes else AdaptiveKernelRegressor

    def shown(found: Run | None) -> str:
        if found is None:
            return "none fits"
        text = number(found.score, measure)
        return text if found.reached == n else f"({text} at {found.reached:,})"

    for name, budget in BUDGETS.items():
        ours = run(kind(seed=SEED, max_bytes=budget), stream, False, budget, limit, n_records)
        peers = [
            fitting(makes, stream, budget, limit, n_records) for makes in trees(budget, stream.n_classes > 0).values()
        ]
        title = f"{stream.name} ({n:,})"
        yield [title, "accuracy %" if stream.n_classes else "MAE", name, shown(ours), *map(shown, peers)]


def main() -> None:
    options = asked(__doc__, quick=f"{QUICK_RECORDS} records of two streams", data=DATA, streams=NAMES, limit=60.0)
    names = options.streams or (QUICK if options.quick else STREAMS)
    n_records = QUICK_RECORDS if options.quick else None
    chosen = of_names(streams.catalog(options.data).values(), names)
    lines = [line for stream in chosen for line in rows(stream, options.limit, n_records)]
    publish(
        options,
        "budget",
        "Accuracy in so many bytes",
        f"Progressive validation, seed {SEED}. Ours is told `max_bytes`, and its bytes are `memory_bytes`; those of "
        "River's models, after a StandardScaler, are `_raw_memory_usage`, looked at after every "
        f"{BETWEEN} records. Each of River's is the largest that fits from the first record to the last: HAT by ever "
        'smaller values of `max_size`, ARF and AMF of 10, 5, 2 or 1 trees; "none fits" where the smallest of these '
        f"takes more. In brackets what was reached in {options.limit:g} CPU seconds.",
        table(["stream (records)", "measure", "budget", "AdaptiveKernel", "HAT", "ARF", "AMF"], lines),
    )


if __name__ == "__main__":
    main()
