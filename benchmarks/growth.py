"""DSG, UDSG and CDSG on the same streams: objective, error and blocks at equal work.

Work is counted in feature evaluations, records x features touched, because seconds change sides as code gets faster.

    python -m benchmarks.growth [--data DIR] [--quick] [--out DIR]

MNIST and a9a are read from --data where given. Writes growth.md and growth.png to --out (benchmarks/results).
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from river import datasets, evaluate, linear_model, metrics

from benchmarks.command import DATA, asked
from benchmarks.images import Components, flat
from benchmarks.images import mnist as mnist_images
from benchmarks.plots import COLORS, panels
from benchmarks.report import publish, table
from streamkernel import KernelClassifier, KernelRegressor
from streamkernel.growth import CDSG, DSG, UDSG, Growth
from streamkernel.kernels import Gaussian

POLICIES: dict[str, Callable[[], Growth]] = {"DSG": DSG, "UDSG": UDSG, "CDSG": partial(CDSG, cap=2.0)}
LOOKS = 24
Array = np.ndarray[Any, np.dtype[Any]]


@dataclass
class Task:
    """A training set, passed over in shuffled order until the work, in units of B x F, is done."""

    name: str
    X: Array
    y: list[Any]
    regression: bool = False
    bandwidth: float = 0.0
    size: int = 64  # B and F
    work: int = 7_800

    def __post_init__(self) -> None:
        self.records = [dict(enumerate(row)) for row in self.X.tolist()]
        self.bandwidth = self.bandwidth or median_distance(self.X)


@dataclass
class Curve:
    """One run: work, objective and blocks as it goes on."""

    work: list[int] = field(default_factory=list)
    objective: list[float] = field(default_factory=list)
    blocks: list[int] = field(default_factory=list)


def median_distance(X: Array) -> float:
    """The median distance of 1,000 rows."""
    sample = X[np.random.default_rng(0).permutation(len(X))[:1000]]
    return Gaussian().median_bandwidth(sample) / 0.7


def standardized(X: Array) -> Array:
    """Columns of mean 0 and deviation 1."""
    return np.asarray((X - X.mean(axis=0)) / np.where(X.std(axis=0) > 0, X.std(axis=0), 1.0))


def digits() -> Task:
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    return Task("digits", standardized(X), y.tolist())


def image_segments() -> Task:
    rows = list(datasets.ImageSegments())
    X = np.array([[float(value) for value in x.values()] for x, _ in rows])
    return Task("ImageSegments", standardized(X), [y for _, y in rows])


def synthetic() -> Task:
    """The 2-D regression of the DSG paper, section 7.1."""
    rng = np.random.default_rng(7)
    X = rng.uniform(-5, 5, size=(8192, 2))
    norm = np.linalg.norm(X, axis=1)
    y = np.cos(0.5 * math.pi * norm) * np.exp(-0.1 * math.pi * norm) + 0.1 * rng.normal(size=len(X))
    return Task("2-D synthetic", X, y.tolist(), regression=True, bandwidth=0.1 * median_distance(X))


def run(task: Task, growth: Growth, seed: int) -> Curve:
    """Learn mini-batches until the work is spent, looking at the objective now and then."""
    kind = KernelRegressor if task.regression else KernelClassifier
    model = kind(
        kernel=Gaussian(task.bandwidth),
        growth=growth,
        block_size=task.size,
        batch_size=task.size,
        max_features=None,
        standardize=False,
        precondition=False,
        seed=seed,
    )
    rng = np.random.default_rng(seed)
    curve, work, order = Curve(), 0, np.zeros(0, np.int64)
    while work < task.work:
        if len(order) < task.size:
            order = np.concatenate([order, rng.permutation(len(task.y))])
        batch, order = order[: task.size], order[task.size :]
        model.advance([task.records[i] for i in batch], [task.y[i] for i in batch])
        work += model.n_blocks  # every block was evaluated for every record of the batch, the new one too
        if work * LOOKS >= task.work * (len(curve.work) + 1) or work >= task.work:
            curve.work.append(work)
            curve.objective.append(objective(model, task))
            curve.blocks.append(model.n_blocks)
    return curve


def objective(model: KernelClassifier | KernelRegressor, task: Task) -> float:
    """Mean loss over the training set: softmax, or half the squared error over the variance of the targets."""
    outcome = model.advance(task.records, [None] * len(task.records))
    if task.regression:
        errors = np.array(outcome.predictions) - np.array(task.y)
        return float(0.5 * np.mean(errors**2) / np.var(task.y))
    chances = [p.get(y, 0.0) for p, y in zip(outcome.probabilities or [], task.y, strict=True)]
    return float(-np.mean(np.log(np.maximum(chances, 1e-15))))


@dataclass
class Pass:
    """A training stream read once, then a test set."""

    name: str
    train: tuple[list[dict[Any, float]], list[Any]]
    test: tuple[list[dict[Any, float]], list[Any]]
    model: Callable[[Growth, int], KernelClassifier]


def a9a(folder: Path) -> Pass | None:
    from sklearn.datasets import load_svmlight_file

    if not (folder / "a9a").exists():
        return None
    X, y = load_svmlight_file(str(folder / "a9a"), n_features=123)
    records, labels = [dict(enumerate(row)) for row in X.toarray().tolist()], (y > 0).tolist()
    return Pass(
        "a9a, 26,000 rows, unscaled, B = F = 32",
        (records[:26_000], labels[:26_000]),
        (records[26_000:], labels[26_000:]),
        plain,
    )


def mnist(folder: Path) -> Pass | None:
    """The first 100 principal components of the training images."""
    if not (folder / "mnist.npz").exists():
        return None
    images = mnist_images(folder)
    components = Components(images.train, 100, fitted=None)
    X, X_test = (components.of(flat(part)) for part in (images.train, images.test))
    order = np.random.default_rng(0).permutation(len(X))
    kernel = Gaussian(0.4 * median_distance(X))
    return Pass(
        "MNIST, 100 principal components, .4 median distances, B = F = 64",
        ([dict(enumerate(row)) for row in X[order].tolist()], images.labels[order].tolist()),
        ([dict(enumerate(row)) for row in X_test.tolist()], images.test_labels.tolist()),
        lambda growth, seed: plain(growth, seed, kernel=kernel, block_size=64, batch_size=64),
    )


def plain(growth: Growth, seed: int, **more: Any) -> KernelClassifier:
    """The papers' machine with plain steps, on inputs as they are."""
    return KernelClassifier(growth=growth, seed=seed, standardize=False, max_features=None, precondition=False, **more)


def one_pass(task: Pass, growth: Growth, seed: int) -> tuple[float, int, float]:
    """Test error after one pass, blocks, seconds of learning."""
    model = task.model(growth, seed)
    records, labels = task.train
    start = time.perf_counter()
    for i in range(0, len(records), 1000):
        model.advance(records[i : i + 1000], labels[i : i + 1000])
    seconds = time.perf_counter() - start
    predictions = [p for i in range(0, len(task.test[0]), 1000) for p in predicted(model, task.test[0][i : i + 1000])]
    return float(np.mean([p != y for p, y in zip(predictions, task.test[1], strict=True)])), model.n_blocks, seconds


def predicted(model: KernelClassifier, records: list[dict[Any, float]]) -> list[Any]:
    return model.advance(records, [None] * len(records)).predictions


def bananas(seeds: range) -> str:
    """Progressive accuracy on River's Bananas, raw records in."""
    rows = []
    for name, make in POLICIES.items():
        scores = [
            progressive(KernelClassifier(Gaussian(0.5), growth=make(), batch_size=8, precondition=False, seed=seed))
            for seed in seeds
        ]
        rows.append([f"KernelClassifier, {name}", f"{np.mean(scores):.3f} ± {np.std(scores):.3f}"])
    rows.append(["River LogisticRegression", f"{progressive(linear_model.LogisticRegression()):.3f}"])
    return table(["`Gaussian(bandwidth=0.5)`, `batch_size=8`", "progressive accuracy"], rows)


def progressive(model: Any) -> float:
    metric = evaluate.progressive_val_score(datasets.Bananas(), model, metrics.Accuracy())
    return float(metric.get())


def plot(curves: dict[str, dict[str, list[Curve]]], path: Path) -> None:
    """Draw objective and blocks against work, a column a task."""
    colors = dict(zip(POLICIES, COLORS, strict=False))
    with panels(path, 2, len(curves), (4.4, 3.2), sharex=True) as (figure, axes):
        for column, (task, by_policy) in enumerate(curves.items()):
            for policy, runs in by_policy.items():
                looks = min(len(run.work) for run in runs)
                work = np.mean([run.work[:looks] for run in runs], axis=0)
                for axis, attribute in zip(axes[:, column], ("objective", "blocks"), strict=True):
                    values = np.array([getattr(run, attribute)[:looks] for run in runs])
                    axis.plot(work, values.mean(axis=0), color=colors[policy], label=policy, linewidth=2)
                    band = values.min(axis=0), values.max(axis=0)
                    axis.fill_between(work, *band, color=colors[policy], alpha=0.15, linewidth=0)
            axes[0][column].set_title(task)
            axes[1][column].set_xlabel("work (batches x blocks)")
        axes[0][0].set_ylabel("training objective")
        axes[1][0].set_ylabel("blocks")
        axes[0][0].legend(frameon=False)
        figure.suptitle("Equal work: lower objective and fewer blocks are better (band: lowest to highest seed)")


def main() -> None:
    options = asked(__doc__, quick="one seed, a quarter of the work, no data files", threads=None, data=DATA)
    seeds = range(1, 2 if options.quick else 4)
    curves: dict[str, dict[str, list[Curve]]] = {}
    rows = []
    for task in (digits(), image_segments(), synthetic()):
        task.work //= 4 if options.quick else 1
        curves[task.name] = {name: [run(task, make(), s) for s in seeds] for name, make in POLICIES.items()}
        for name, runs in curves[task.name].items():
            final = [curve.objective[-1] for curve in runs]
            blocks = np.mean([curve.blocks[-1] for curve in runs])
            rows.append([task.name, name, f"{np.mean(final):.3f} ± {np.std(final):.3f}", f"{blocks:.0f}"])
    plot(curves, options.out / "growth.png")
    passes = []
    for load in (mnist, a9a):
        one = None if options.quick else load(options.data)
        if one is None:
            passes.append([load.__name__, "skipped: no such file in --data", "", "", ""])
            continue
        for name, make in POLICIES.items():
            results = [one_pass(one, make(), seed) for seed in seeds]
            errors, blocks_, seconds = (np.array(part) for part in zip(*results, strict=True))
            error = f"{100 * errors.mean():.2f} ± {100 * errors.std():.2f}"
            grown = f"{blocks_.mean():.0f} ({blocks_.min()} to {blocks_.max()})"
            passes.append([one.name, name, error, grown, f"{np.median(seconds):.1f}"])
    publish(
        options,
        "growth",
        "Growth policies at equal work",
        f"Mean ± deviation of {len(seeds)} seeds. Training objective (mean loss over the training set; of the "
        f"regression, half the squared error over the variance) after {7_800 // (4 if options.quick else 1):,} B F "
        "feature evaluations, B = F = 64, bandwidth the median distance (a tenth of it on the 2-D synthetic of "
        "section 7.1 of the DSG paper). CDSG is the paper's, with cap = 2.",
        table(["data", "policy", "objective", "blocks"], rows),
        "One pass, then the test set:",
        table(["data", "policy", "test error %", "blocks", "seconds of learning"], passes),
        "River's Bananas, raw records in:",
        bananas(seeds),
    )


if __name__ == "__main__":
    main()
