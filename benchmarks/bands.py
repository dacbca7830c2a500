"""Bands of the adaptive regressor's quantiles beside those of its Gaussian, and its median beside its mean.

    python -m benchmarks.bands [--data DIR] [--limit N] [--out DIR] [--quick]

Progressive validation, one by one, on the regressions of `benchmarks.accuracy`. From the 500th record on every fifth is
asked for a band of 90%: between `quantile(.05)` and `quantile(.95)`, and 1.645 deviations either way.
"""

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.asked import at_least
from benchmarks.report import machine, table, write
from benchmarks.streams import Stream, built_in, from_files
from streamkernel import AdaptiveKernelRegressor

#: Records before the first band, and from one band to the next.
FIRST, EVERY = 500, 5
NORMAL = 1.6448536269514722
SEED = 1


class Measured(NamedTuple):
    """Of one stream: the shares of targets in both bands, the widths' ratio, and the mean absolute errors."""

    covered: float
    gaussian_covered: float
    width: float
    mean: float
    median: float


def measure(stream: Stream, limit: int | None) -> Measured:
    """Let the stream through one that predicts the mean, and one that predicts the median."""
    mean, median = (AdaptiveKernelRegressor(predicts=what, seed=SEED) for what in ("mean", "median"))
    inside, errors, widths = [], [], []
    for i, (x, y) in enumerate(stream.records(limit)):
        if i >= FIRST and i % EVERY == 0:
            said = mean.predict_one(x, with_dist=True)
            low, high, half = said.quantile(0.05), said.quantile(0.95), NORMAL * said.sigma
            inside.append((low <= y <= high, abs(y - said.mu) <= half))
            widths.append((high - low, 2 * half))
        errors.append([abs(model.predict_one(x) - y) for model in (mean, median)])
        mean.learn_one(x, y)
        median.learn_one(x, y)
    own, gaussian = np.mean(widths, axis=0).tolist()
    covered, gaussian_covered = np.mean(inside, axis=0).tolist()
    of_mean, of_median = np.mean(errors, axis=0).tolist()
    return Measured(covered, gaussian_covered, own / gaussian, of_mean, of_median)


def rows(measured: Iterable[tuple[Stream, Measured]]) -> list[list[str]]:
    """Lines of the table."""
    return [
        [
            stream.name,
            f"{one.covered:.1%}",
            f"{one.gaussian_covered:.1%}",
            f"{one.width:.2f}",
            f"{one.mean:.4g}" if one.mean < 1e3 else f"{one.mean:,.0f}",
            f"{one.median:.4g}" if one.median < 1e3 else f"{one.median:,.0f}",
            f"{one.median / one.mean - 1:+.1%}",
        ]
        for stream, one in measured
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="the folder of the files of benchmarks.accuracy")
    parser.add_argument("--limit", type=at_least(FIRST + 1), help="records of a stream (all)")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument("--quick", action="store_true", help="few records of the streams that need no file, for a test")
    options = parser.parse_args()
    streams = [*built_in(), *(from_files(options.data) if options.data else [])]
    regressions = [stream for stream in streams if not stream.n_classes and stream.there]
    limit = FIRST + 100 if options.quick else options.limit
    measured = [(stream, measure(stream, limit)) for stream in regressions]
    change = np.mean([np.log(one.median / one.mean) for _, one in measured])
    head = ["stream", "in the band", "in the Gaussian's", "width / Gaussian's", "MAE", "MAE of the median", "change"]
    length = f"{limit:,} records at most" if limit else "all records"
    text = f"""# Bands and medians

`python -m benchmarks.bands --data DIR` on {machine()}.

Progressive validation of `AdaptiveKernelRegressor(seed={SEED})`, {length}.
Bands of 90% from the {FIRST}th record on, every {EVERY}th: of `quantile(.05)` and `quantile(.95)`, and of the Gaussian;
their mean widths divided. Then the mean absolute errors of `predicts="mean"` and of `predicts="median"`; over all
streams they change by {np.expm1(change):+.1%} (geometric mean).

{table(head, rows(measured))}
"""
    write(options.out / "bands.md", text)


if __name__ == "__main__":
    main()
