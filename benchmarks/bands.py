"""Bands of the adaptive regressor's quantiles beside those of its Gaussian, and its median beside its mean.

    python -m benchmarks.bands [--data DIR] [--limit N] [--out DIR] [--quick]

Progressive validation, one by one, on the regressions of `benchmarks.accuracy`. From the 500th record on every fifth is
asked for a band of 90%: between `quantile(.05)` and `quantile(.95)`, and 1.645 deviations either way.
"""

from typing import NamedTuple

import numpy as np

from benchmarks import streams
from benchmarks.command import DATA, asked, at_least
from benchmarks.report import publish, table
from benchmarks.streams import Stream
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


def row(stream: Stream, one: Measured) -> list[str]:
    """Return a line of the table."""
    errors = [f"{error:.4g}" if one.mean < 1e3 else f"{error:,.0f}" for error in (one.mean, one.median)]
    shares = f"{one.covered:.1%}", f"{one.gaussian_covered:.1%}", f"{one.width:.2f}"
    return [stream.name, *shares, *errors, f"{one.median / one.mean - 1:+.1%}"]


def main() -> None:
    limited = {"type": at_least(FIRST + 1), "help": "records of a stream (all)"}
    options = asked(__doc__, quick="few records of the streams that need no file", data=DATA, limit=limited)
    known = streams.built_in() if options.quick else streams.catalog(options.data).values()
    regressions = [stream for stream in known if not stream.n_classes and stream.there]
    limit = FIRST + 100 if options.quick else options.limit
    measured = [(stream, measure(stream, limit)) for stream in regressions]
    change = np.mean([np.log(one.median / one.mean) for _, one in measured])
    head = ["stream", "in the band", "in the Gaussian's", "width / Gaussian's", "MAE", "MAE of the median", "change"]
    length = f"{limit:,} records at most" if limit else "all records"
    publish(
        options,
        "bands",
        "Bands and medians",
        f"Progressive validation of `AdaptiveKernelRegressor(seed={SEED})`, {length}. Bands of 90% from the {FIRST}th "
        f"record on, every {EVERY}th: of `quantile(.05)` and `quantile(.95)`, and of the Gaussian; their mean widths "
        'divided. Then the mean absolute errors of `predicts="mean"` and of `predicts="median"`; over all streams they '
        f"change by {np.expm1(change):+.1%} (geometric mean).",
        table(head, [row(*one) for one in measured]),
    )


if __name__ == "__main__":
    main()
