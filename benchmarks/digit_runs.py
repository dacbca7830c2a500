"""A growing machine on images of digits: what it learns, and its error on the test set as it goes on."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from river.optim.base import Scheduler
from river.optim.losses import MultiClassLoss

from benchmarks.deformed import CHUNK, DeformedImages
from benchmarks.images import Components, Images, flat
from benchmarks.report import processor
from streamkernel import KernelClassifier
from streamkernel.growth import CDSG, DSG, Growth
from streamkernel.kernels import Gaussian

Array = np.ndarray[Any, np.dtype[Any]]

#: The paper's CDSG.
GROWTHS: dict[str, Callable[[], Growth]] = {"DSG": DSG, "CDSG": partial(CDSG, cap=2.0)}
#: Rows whose median distance is taken.
SAMPLE = 1_000
#: Records of the endless stream before the first look at the test set; each look comes half as many again later.
FIRST_LOOK, LOOKS_APART = 10_000, 1.5


class SquaredError(MultiClassLoss):
    """1/2 |u - e_y|^2 of K scores u and the column y of the true class, e_y being 1 there: that of a ridge classifier.

    With preconditioned steps it is fitted as fast at the end as at the beginning, where the softmax's derivative
    vanishes as soon as a record is on its right side.
    """

    curvature = 1.0
    gradient_bound = None

    def __call__(self, y_true: Any, y_pred: Any) -> Any:
        return 0.5 * (self.gradient(y_true, y_pred) ** 2).sum(axis=1)

    def gradient(self, y_true: Any, y_pred: Any) -> Any:
        g = np.array(y_pred, np.float64)
        g[np.arange(len(g)), y_true] -= 1.0
        return g

    def mean_func(self, y_pred: Any) -> Any:
        return y_pred


class FallingStep(Scheduler):
    """A step size that stays for half of the steps and then falls in a straight line.

    Of `n_steps` steps the first half has the size `first`; the last one has the size `last`.
    """

    def __init__(self, first: float, last: float, n_steps: int) -> None:
        self.first = first
        self.last = last
        self.n_steps = n_steps

    def get(self, t: int) -> float:
        fallen = min(max(2 * t / self.n_steps - 1, 0.0), 1.0)
        return self.first + fallen * (self.last - self.first)


@dataclass(frozen=True)
class Setting:
    """A machine and what it learns: records of the endless stream once each, or all training images so many times.

    The attributes without a comment are arguments of the estimator.
    """

    name: str
    growth: str  #: "DSG" or "CDSG"
    block_size: int
    batch_size: int
    max_features: int | None
    precondition: bool = False
    blocks_per_step: int = 1
    average: bool = False
    squared: bool = False  #: whether the loss is the squared error of one-hot targets in place of the softmax
    weight: float = 1.0  #: of every record; the ridge of a preconditioned step is divided by it
    step: float | None = None  #: of the first half, in solutions if preconditioned; None is the default rule
    last_step: float | None = None  #: to which it falls from there; None if it does not fall
    records: int = 0  #: deformed digits, each learned once; 0 for the training images themselves
    passes: int = 0  #: over the training images, in a new order each
    components: int = 50  #: principal components that are the inputs; 0 for the pixels
    bandwidth: float = 0.4  #: in median distances of training images
    structured: bool = True
    default: bool = False  #: whether the estimator has its defaults, a mixture, and none of the arguments above


@dataclass
class Look:
    """What there is after some records; seconds are of the clock (`learning`) or of all cores."""

    records: int
    features: int
    error: float  #: the share of test images that are not recognized
    learning: float
    learning_core: float
    making_core: float  #: of making the records, their components included

    @property
    def core_seconds(self) -> float:
        """Seconds of all cores for the records, from the images on."""
        return self.learning_core + self.making_core


@dataclass
class Run:
    """A setting with a seed, on some code and processor, its looks at the test set, and whether it came to its end."""

    setting: Setting
    seed: int
    code: str
    processor: str
    looks: list[Look] = field(default_factory=list)
    whole: bool = False


class Stopwatch:
    """Seconds that pass inside it, by the clock and of all cores."""

    def __init__(self) -> None:
        self.wall = self.core = 0.0

    def __enter__(self) -> None:
        self._begun = time.perf_counter(), time.process_time()

    def __exit__(self, *_: object) -> None:
        wall, core = self._begun
        self.wall += time.perf_counter() - wall
        self.core += time.process_time() - core


def run(setting: Setting, images: Images, seed: int, code: str, keep: Callable[[Run], object]) -> Run:
    """Learn a setting's records; `keep` is called after every look at the test set. Looks take none of the seconds."""
    components = Components(images.train, setting.components)
    model = machine(setting, images, components, seed)
    test = components.of(flat(images.test))
    done = Run(setting, seed, code, processor())
    making, learning = Stopwatch(), Stopwatch()
    parts, due, n = records(setting, images, seed), looks_due(setting, len(images.train)), 0
    while n < max(due):
        with making:
            pixels, labels = next(parts)
            X = components.of(pixels)
        with learning:
            model.learn_many(X, labels, [setting.weight] * len(labels))
        n += len(labels)
        if n in due:
            error = float(np.mean(np.asarray(model.predict_many(test)) != images.test_labels))
            done.looks.append(Look(n, model.n_features, error, learning.wall, learning.core, making.core))
            print(
                f"{setting.name}, seed {seed}, {n:,} records: {100 * error:.2f}% with {model.n_features:,} features "
                f"after {done.looks[-1].core_seconds:.0f} core-seconds",
                flush=True,
            )
            done.whole = n == max(due)
            keep(done)
    return done


def machine(setting: Setting, images: Images, components: Components, seed: int) -> KernelClassifier:
    """The growing machine of a setting, its bandwidth from a sample of the training images."""
    if setting.default:
        return KernelClassifier(seed=seed)
    sample = components.of(flat(images.train[:SAMPLE]))
    median = Gaussian().median_bandwidth(sample) / 0.7
    return KernelClassifier(
        kernel=Gaussian(setting.bandwidth * median, structured=setting.structured),
        loss=SquaredError() if setting.squared else None,
        growth=GROWTHS[setting.growth](),
        block_size=setting.block_size,
        batch_size=setting.batch_size,
        max_features=setting.max_features,
        standardize=False,
        cache_bytes=2**30,
        step=schedule(setting, len(images.train)),
        seed=seed,
        precondition=setting.precondition,
        blocks_per_step=setting.blocks_per_step,
        average=setting.average,
    )


def schedule(setting: Setting, n_images: int) -> FallingStep | None:
    """The step sizes of a setting; None is the default rule."""
    if setting.step is None:
        return None
    n_records = setting.records or setting.passes * n_images
    last = setting.step if setting.last_step is None else setting.last_step
    return FallingStep(setting.step, last, max(n_records // setting.batch_size, 1))


def records(setting: Setting, images: Images, seed: int) -> Iterator[tuple[Array, Array]]:
    """The records of a setting, pixels and labels, at most 1,000 at a time."""
    if setting.records:
        stream = DeformedImages(images.train, images.labels, seed)
        for number in range(setting.records // CHUNK):
            yield stream.chunk(number)
    rng = np.random.default_rng(seed)
    for _ in range(setting.passes):
        order = rng.permutation(len(images.train))
        for start in range(0, len(order), CHUNK):
            part = order[start : start + CHUNK]
            yield flat(images.train[part]), images.labels[part]


def looks_due(setting: Setting, n_images: int) -> set[int]:
    """The numbers of records after which the test set is looked at: of passes each one's end."""
    if not setting.records:
        return {n_images * (i + 1) for i in range(setting.passes)}
    due, at = {setting.records // CHUNK * CHUNK}, float(FIRST_LOOK)
    while at < setting.records:
        due.add(int(at) // CHUNK * CHUNK)
        at *= LOOKS_APART
    return due
