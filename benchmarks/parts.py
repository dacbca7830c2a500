"""What two parts of the adaptive estimators bring: progressive validation without each of them, and with it.

    python -m benchmarks.parts [--quick] [--out DIR]

Trees are left out by `n_trees=0`; learning again after a change, by never finding one. The first streams are those of
`benchmarks.accuracy`, the others have changes in them; all other arguments are defaults.
"""

import argparse
import math
from collections.abc import Iterator
from contextlib import AbstractContextManager
from itertools import chain
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple
from unittest import mock

from river.datasets import synth

from benchmarks import streams
from benchmarks.report import machine, table, write
from benchmarks.streams import Pair
from streamkernel import AdaptiveKernelClassifier, AdaptiveKernelRegressor

SEEDS = (1, 2)
QUICK_RECORDS = 400


class Comparison(NamedTuple):
    """A part to leave out, and a stream to leave it out on."""

    part: str
    stream: str
    has_classes: bool
    records: list[Pair]

    def row(self) -> list[str]:
        """The line of the table: accuracies in per cent with two digits, errors with four that count."""
        shown = "{:.2f}".format if self.has_classes else "{:.4g}".format
        if self.part == TREES:
            without = self.score(n_trees=0)
        else:
            with no_change():
                without = self.score()
        measure = "accuracy %" if self.has_classes else "MAE"
        return [self.part, self.stream, measure, shown(without), shown(self.score())]

    def score(self, **arguments: Any) -> float:
        """The mean over the seeds; every record is predicted, then learned."""
        xs, ys = map(list, zip(*self.records, strict=True))
        scores = []
        for seed in SEEDS:
            kind = AdaptiveKernelClassifier if self.has_classes else AdaptiveKernelRegressor
            predictions = kind(seed=seed, **arguments).advance(xs, ys).predictions
            pairs = zip(ys, predictions, strict=True)
            scores.append(fmean(100 * (y == said) if self.has_classes else abs(y - said) for y, said in pairs))
        return fmean(scores)


TREES, CHANGES = "trees", "learning again after a change"


def no_change() -> AbstractContextManager[Any]:
    """While it is entered, no block of losses is taken for a change."""
    return mock.patch("streamkernel.adaptive.change.LEAST", math.inf)


def comparisons(limit: int | None) -> Iterator[Comparison]:
    """Yield the lines to measure, on the first records of each stream."""
    catalog = {stream.name: stream for stream in streams.built_in()}
    for name in ("Agrawal", "Mixed", "Mv", "ChickWeights"):
        stream = catalog[name]
        yield Comparison(TREES, name, stream.n_classes > 0, list(stream.records(limit)))
    for name in ("FriedmanDrift", "Shuttle"):
        stream = catalog[name]
        yield Comparison(CHANGES, name, stream.n_classes > 0, list(stream.records(limit)))
    later = synth.FriedmanDrift(drift_type="gra", position=(2000, 5000), seed=2)
    yield Comparison(CHANGES, "FriedmanDrift, seed 2, changes at 2,000 and 5,000", False, taken(later, 8_000, limit))
    for window in (200, 1000):
        moving = synth.FriedmanDrift("gsg", (1500, 3500), transition_window=window, seed=1)
        name = f"FriedmanDrift, changes that take {window:,} records"
        yield Comparison(CHANGES, name, False, taken(moving, 5_000, limit))
    before, after = (synth.Agrawal(classification_function=number, seed=1) for number in (0, 3))
    halves = chain(before.take((limit or 5_000) // 2), after.take((limit or 5_000) // 2))
    yield Comparison(CHANGES, "Agrawal, half by function 0, half by 3", True, list(halves))


def found(limit: int | None) -> Iterator[list[str]]:
    """Yield how many changes are found on each of the sixteen streams."""
    for stream in streams.built_in():
        if stream.group == streams.SIXTEEN:
            kind = AdaptiveKernelClassifier if stream.n_classes else AdaptiveKernelRegressor
            model = kind(seed=SEEDS[0])
            model.advance(*map(list, zip(*stream.records(limit), strict=True)))
            yield [stream.name, str(model.n_drifts_detected)]


def taken(stream: Any, n_records: int, limit: int | None) -> list[Pair]:
    return list(stream.take(min(n_records, limit or n_records)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="the first 400 records of each stream")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args()
    limit = QUICK_RECORDS if options.quick else None
    text = f"""# Parts of the adaptive estimators

`python -m benchmarks.parts` on {machine()}.

Progressive validation without a part and with it: mean of seeds {SEEDS[0]} and {SEEDS[1]}, all other arguments
defaults. Streams that are not described here are those of [the accuracy benchmark](accuracy.md).

{table(["part", "stream", "measure", "without", "with"], [one.row() for one in comparisons(limit)])}

## Changes found

On the sixteen streams, seed {SEEDS[0]}.

{table(["stream", "changes found"], list(found(limit)))}
"""
    write(options.out / "parts.md", text)


if __name__ == "__main__":
    main()
