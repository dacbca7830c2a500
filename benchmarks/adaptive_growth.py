"""Growth in the adaptive regressor: blocks of frequencies that join while the stream goes on, where they pay.

    python -m benchmarks.adaptive_growth [--data DIR] [--streams A,B] [--records N] [--out DIR] [--quick]

CDSG asks at each step whether a new block of features would serve better than an old one. Asked of least squares: a
block of new frequencies learns what a head leaves over, beside it, for a window of records. Where over the window's
second half the head's squared errors would have been lower with it, by more than a standard error of their difference,
the block joins the head; otherwise it is dropped, and the next one is drawn.
"""

import argparse
import math
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any

import numpy as np

from benchmarks import streams
from benchmarks.asked import at_least, of_names
from benchmarks.board import number
from benchmarks.growing_head import RIDGE, WORST, F, GrowingHead, Metric
from benchmarks.report import machine, table, write
from benchmarks.streams import Stream
from streamkernel import AdaptiveKernelRegressor
from streamkernel.adaptive.relearning import scales_of
from streamkernel.compute.experts import DISCOUNT, hedge_weights
from streamkernel.kernels import Gaussian

STREAMS = ("fried", "House8L", "elevators", "california_housing", "bike12", "kings_county")
QUICK = ("Friedman", "Planes2D")
SEEDS = (1, 2, 3)
CALL = 100  # records between two looks at the metric
MOST = 3  # blocks
WINDOW = 1_000
QUICK_RECORDS, QUICK_WINDOW = 1_200, 200
DRIFTS = (0.0, 0.001)  # two of the estimator's
# Of blocks that join a head, and of those on what the estimator leaves over, of which with the larger one none joins.
AMPLITUDE, LEFT_AMPLITUDE = 1 / 8, 1 / 32
BUFFER = 1_000  # records that pass through a head with a new metric
#: What is measured: of a head alone, then in the mixture.
BLOCKS, WORK, ONE, JOIN, START = "blocks", "work", "one block", "blocks that join", "as many from the start"
DEFAULTS, AND_ONE, AND_JOIN, MORE = "defaults", "and one block", "and blocks that join", "more `n_features`"
LEFT, LEFT_BLOCKS = "and blocks on what is left over", "blocks on what is left over"
ALONE = (BLOCKS, WORK, ONE, JOIN, START)
TOGETHER = (DEFAULTS, AND_ONE, AND_JOIN, LEFT_BLOCKS, LEFT, MORE)
Array = np.ndarray[Any, np.dtype[Any]]


def running(X: Array) -> tuple[Array, Array]:
    """Mean and deviation of each column up to each row, that row included."""
    n = np.arange(1, len(X) + 1)[:, None]
    moved = X - X[0]
    mean, square = np.cumsum(moved, axis=0) / n, np.cumsum(moved**2, axis=0) / n
    variance = np.where(square - mean**2 > 1e-12 * square, square - mean**2, 1.0)
    return X[0] + mean, np.sqrt(variance)


def mixed(y: Array, first: Array, second: Array, deviations: Array) -> Array:
    """Two predictions of each record in a mixture like the estimator's last one."""
    losses, weights, out = np.zeros(2), np.empty(2), np.empty(len(y))
    for r, (truth, both) in enumerate(zip(y, np.column_stack([first, second]), strict=True)):
        hedge_weights(losses, np.ones(2), 2.0, weights)
        out[r] = weights @ both
        squared = np.minimum(((truth - both) / deviations[r]) ** 2, WORST)
        losses = DISCOUNT * losses + 0.4 * squared / (squared.mean() + 0.05)
    return out


class Runs:
    """A stream with a seed: what the estimator says, and heads under the metrics that it learns."""

    def __init__(self, stream: Stream, limit: int | None, seed: int, window: int) -> None:
        xs, ys = map(list, zip(*stream.encoded(limit), strict=True))
        self.xs, self.ys, self.seed, self.window = xs, ys, seed, window
        values, self.y = np.array([list(x.values()) for x in xs]), np.array(ys, float)
        means, deviations = running(values)
        self.X = np.clip((values - means) / deviations, -4, 4).astype(np.float32)
        means, deviations = (one[:, 0] for one in running(self.y[:, None]))
        self.means, self.deviations = means, deviations
        self.means_before = np.concatenate([[0.0], means[:-1]])
        self.deviations_before = np.concatenate([[1.0], deviations[:-1]])
        d = values.shape[1]
        self.metrics = [Metric(0, np.ones(d), Gaussian().initial_bandwidth(d))]
        self.said = np.concatenate(list(self._estimator(AdaptiveKernelRegressor(seed=seed))))

    def _estimator(self, model: AdaptiveKernelRegressor) -> Iterator[Any]:
        """Yield predictions, and keep the metrics."""
        before: dict[Any, float] = {}
        for start in range(0, len(self.y), CALL):
            end = start + CALL
            yield model.advance(self.xs[start:end], self.ys[start:end]).predictions
            shares = {str(name): share for name, share in model.feature_importances_.items()}
            if shares != before and end < len(self.y):
                before = shares
                scales = scales_of(np.array([shares[str(name)] for name in self.xs[0]]))
                bandwidth = Gaussian().median_bandwidth(self.X[max(end - 200, 0) : end] * scales)
                self.metrics.append(Metric(end, scales, bandwidth))

    def larger(self, n_blocks: int) -> Array:
        """What the estimator says with as many frequencies from the start."""
        model = AdaptiveKernelRegressor(n_features=F * n_blocks, seed=self.seed)
        return np.array(model.advance(self.xs, self.ys).predictions)

    def head(self, n_blocks: int, most: int, drift: float) -> tuple[Array, GrowingHead]:
        """The predictions of a head that learns the target or, where it begins with no block, what is left over."""
        base, before = (self.means, self.means_before) if n_blocks else (self.said, self.said)
        targets = (self.y - base) / self.deviations
        amplitude = AMPLITUDE if n_blocks else LEFT_AMPLITUDE
        head = GrowingHead(self.metrics[0], self.seed, n_blocks, most, self.window, amplitude, drift)
        ends = [*(metric.begins for metric in self.metrics[1:]), len(self.y)]
        scores = []
        for metric, end in zip(self.metrics, ends, strict=True):
            if metric.begins:
                last = slice(max(metric.begins - BUFFER, 0), metric.begins)
                head.set_metric(metric, self.X[last], targets[last])
            for start in range(metric.begins, end, CALL):
                now = slice(start, min(start + CALL, end))
                scores.append(head.advance(self.X[now], targets[now]))
        return before + self.deviations_before * np.concatenate(scores), head

    def measure(self) -> list[dict[str, float]]:
        """For each drift rate what the tables have."""
        found, blocks = [], []
        for drift in DRIFTS:
            one, _ = self.head(1, 1, drift)
            grown, growing = self.head(1, MOST, drift)
            start, large = self.head(len(growing.blocks), len(growing.blocks), drift)
            residual, residuals = self.head(0, MOST - 1, drift)
            blocks += [len(growing.blocks), 1 + len(residuals.blocks)]
            said = {ONE: one, JOIN: grown, START: start, DEFAULTS: self.said, MORE: self.said}
            said |= {name: self._beside(other) for name, other in ((AND_ONE, one), (AND_JOIN, grown), (LEFT, residual))}
            errors = {name: float(np.abs(self.y - one).mean()) for name, one in said.items()}
            work = growing.n_numbers / large.n_numbers
            found.append({**errors, BLOCKS: blocks[-2], LEFT_BLOCKS: blocks[-1] - 1, WORK: work})
        if max(blocks) > 1:
            more = float(np.abs(self.y - self.larger(max(blocks))).mean())
            found = [{**one, MORE: more} for one in found]
        return found

    def _beside(self, other: Array) -> Array:
        return mixed(self.y, self.said, other, self.deviations_before)


def cells(seeds: list[dict[str, float]], names: tuple[str, ...]) -> list[str]:
    """Means and deviations over the seeds; of blocks and work the mean alone."""
    texts = []
    for name in names:
        values = [one[name] for one in seeds]
        mean = fmean(values)
        if name in (BLOCKS, LEFT_BLOCKS, WORK):
            texts.append(f"{mean:.2f}")
        else:
            deviation = f" ± {number(pstdev(values), 'mae', mean)}" if len(values) > 1 else ""
            texts.append(number(mean, "mae") + deviation)
    return texts


def change(found: list[list[dict[str, float]]], name: str, other: str) -> str:
    """The geometric mean of by how much one error is beside another, over rows and seeds."""
    ratio = fmean(math.log(one[name] / one[other]) for seeds in found for one in seeds)
    return f"{math.expm1(ratio):+.2%}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("data"), help="folder of the files (data)")
    parser.add_argument("--streams", help="names, parted by commas")
    parser.add_argument("--records", type=at_least(1), help="the first records of each stream (all)")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_RECORDS:,} records of two streams, one seed")
    options = parser.parse_args()
    known = streams.catalog(options.data).values()
    names = options.streams.split(",") if options.streams else QUICK if options.quick else STREAMS
    chosen = of_names([stream for stream in known if not stream.n_classes], names)
    limit = QUICK_RECORDS if options.quick else options.records
    window, every = (QUICK_WINDOW, SEEDS[:1]) if options.quick else (WINDOW, SEEDS)
    labels, found = [], []
    for stream in chosen:
        runs = []
        for seed in every:
            runs.append(Runs(stream, limit, seed, window).measure())
            progress = "; ".join(", ".join(f"{name} {value:.4g}" for name, value in one.items()) for one in runs[-1])
            print(f"{stream.name}, seed {seed}: {progress}", flush=True)
        for drift, seeds in zip(DRIFTS, zip(*runs, strict=True), strict=True):
            labels.append([f"{stream.name}, q = {drift:g}"])
            found.append(list(seeds))
    tables = [
        table(["MAE", *columns], [label + cells(seeds, columns) for label, seeds in zip(labels, found, strict=True)])
        for columns in (ALONE, TOGETHER)
    ]
    text = f"""# Growth in the adaptive regressor

`python -m benchmarks.adaptive_growth --data DIR` on {machine()}.

A try that is no part of the estimators. Progressive validation in file order, mean ± deviation of the seeds
{", ".join(map(str, every))}. A head is recursive least squares on the constant, the inputs and blocks of {F}
frequencies, under the metrics that the estimator learns meanwhile, with ridge {RIDGE:g} and drift q. Another block
learns what the head leaves over. After {window:,} records it joins if over the last {window // 2:,} of them the squared
errors would have been lower with it by more than the standard error of their difference; otherwise it is dropped. Then
the next one is tried, up to {MOST} blocks. The columns of blocks that join are multiplied by {AMPLITUDE:g}, those of
blocks on what the estimator leaves over by {LEFT_AMPLITUDE:g}, which raises their ridge. Both numbers were chosen on
these streams, in favour of growth.

## A head alone

With one block; with blocks that join; and with as many from the start as there were in the end. "Work" is the numbers
of P over all records, those of the blocks that are tried counted, as a share of what the head has that begins with all.
Beside one block the error changes by {change(found, JOIN, ONE)} with blocks that join, and by
{change(found, START, ONE)} with as many from the start (geometric means over rows and seeds).

{tables[0]}

## In the mixture

The estimator with defaults; with one more expert in a last mixture of two; and with `n_features` for as many blocks as
any of the growing heads ended with. The expert is the head of one block, or the growing head, or what the estimator
says and blocks, none at first, that join to learn what it leaves over. Beside the defaults the error changes by
{change(found, AND_ONE, DEFAULTS)} with one block, by {change(found, AND_JOIN, DEFAULTS)} with blocks that join, by
{change(found, LEFT, DEFAULTS)} with blocks on what is left over, and by {change(found, MORE, DEFAULTS)} with more
features from the start.

{tables[1]}
"""
    write(options.out / "adaptive_growth.md", text)


if __name__ == "__main__":
    main()
