"""What two parts of the adaptive estimators bring: progressive validation without each of them, and with it.

    python -m benchmarks.parts [--quick] [--out DIR]

`n_trees=0` leaves trees out. Learning again after a change is left out by never finding a change. The first streams are
those of `benchmarks.accuracy`, the others change; all other arguments are defaults.
"""

import math
from collections.abc import Iterator
from itertools import chain
from statistics import fmean
from typing import Any
from unittest import mock

from river.datasets import synth

from benchmarks import streams
from benchmarks.command import asked
from benchmarks.progressive import score
from benchmarks.report import publish, table
from benchmarks.streams import Pair
from streamkernel import AdaptiveKernelClassifier, AdaptiveKernelRegressor

SEEDS = (1, 2)
QUICK_RECORDS = 400
TREES, CHANGES = "trees", "learning again after a change"


def row(part: str, stream: str, classes: bool, records: list[Pair]) -> list[str]:
    """Return a line of the table: accuracies in per cent with two digits, errors with four that count."""
    kind = AdaptiveKernelClassifier if classes else AdaptiveKernelRegressor

    def mean(**arguments: Any) -> str:
        found = fmean(score(kind(seed=seed, **arguments), records, classes) for seed in SEEDS)
        return f"{100 * found:.2f}" if classes else f"{found:.4g}"

    if part == TREES:
        without = mean(n_trees=0)
    else:
        with mock.patch("streamkernel.adaptive.change.LEAST", math.inf):  # no block of losses counts as a change
            without = mean()
    return [part, stream, "accuracy %" if classes else "MAE", without, mean()]


def rows(limit: int | None) -> Iterator[list[str]]:
    """Yield the lines, measured on the first records of each stream."""
    catalog = {stream.name: stream for stream in streams.built_in()}
    for part, names in ((TREES, ("Agrawal", "Mixed", "Mv", "ChickWeights")), (CHANGES, ("FriedmanDrift", "Shuttle"))):
        for name in names:
            yield row(part, name, catalog[name].n_classes > 0, list(catalog[name].records(limit)))
    moving = {
        "FriedmanDrift, seed 2, changes at 2,000 and 5,000": (synth.FriedmanDrift("gra", (2000, 5000), seed=2), 8_000),
        **{
            f"FriedmanDrift, changes that take {window:,} records": (
                synth.FriedmanDrift("gsg", (1500, 3500), transition_window=window, seed=1),
                5_000,
            )
            for window in (200, 1000)
        },
    }
    for name, (stream, n) in moving.items():
        yield row(CHANGES, name, False, list(stream.take(min(n, limit or n))))
    before, after = (synth.Agrawal(classification_function=number, seed=1) for number in (0, 3))
    halves = chain(before.take((limit or 5_000) // 2), after.take((limit or 5_000) // 2))
    yield row(CHANGES, "Agrawal, half by function 0, half by 3", True, list(halves))


def changes(limit: int | None) -> Iterator[list[str]]:
    """Yield how many changes are found on each of the sixteen streams."""
    for stream in streams.built_in():
        if stream.group == streams.SIXTEEN:
            kind = AdaptiveKernelClassifier if stream.n_classes else AdaptiveKernelRegressor
            model = kind(seed=SEEDS[0])
            model.advance(*map(list, zip(*stream.records(limit), strict=True)))
            yield [stream.name, str(model.n_drifts_detected)]


def main() -> None:
    options = asked(__doc__, quick=f"the first {QUICK_RECORDS} records of each stream")
    limit = QUICK_RECORDS if options.quick else None
    publish(
        options,
        "parts",
        "Parts of the adaptive estimators",
        f"Progressive validation without a part and with it: mean of seeds {SEEDS[0]} and {SEEDS[1]}, all other "
        "arguments defaults. Streams that are not described here are those of [the accuracy benchmark](accuracy.md).",
        table(["part", "stream", "measure", "without", "with"], list(rows(limit))),
        f"## Changes found\n\nOn the sixteen streams, seed {SEEDS[0]}.",
        table(["stream", "changes found"], list(changes(limit))),
    )


if __name__ == "__main__":
    main()
