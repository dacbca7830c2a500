"""Section 7.2 of the DSG paper: a Gaussian process' posterior by doubly stochastic gradients, beside NORMA."""

from argparse import Namespace
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from benchmarks import gaussian_process as process
from benchmarks.paper.baselines.learner import Array, square
from benchmarks.paper.baselines.norma import Norma
from benchmarks.paper.machines import GrowingMachine
from benchmarks.paper.problems import Problem
from benchmarks.paper.runs import Make, Runs, enter, follow, lines, of
from benchmarks.paper.tables import megabytes, spread, write_looks
from benchmarks.plots import curves
from benchmarks.report import publish, table
from streamkernel import GaussianProcessRegressor, KernelRegressor
from streamkernel.growth import DSG
from streamkernel.kernels import Gaussian

#: Looks in a pass.
LOOKS = 2
#: Records of a step of the second preconditioned machine.
LARGER_BATCH = 256
NORMA, LEAST_SQUARES = "NORMA", "least squares"


class Sizes(NamedTuple):
    """Of the experiment; B is `process.BATCH`."""

    n: int
    n_test: int
    n_points: int  #: test points at which the variance is taken
    block_size: int
    passes: int


WHOLE, QUICK = Sizes(2_048, 1_024, 48, 512, 20), Sizes(256, 32, 32, 32, 4)


class PosteriorLearner:
    """A Gaussian process of streamkernel with the interface of the comparison: its variance, or else its mean."""

    def __init__(self, model: GaussianProcessRegressor, variance: bool) -> None:
        self.model = model
        self._variance = variance

    @property
    def nbytes(self) -> int:
        return self.model.memory_bytes

    def learn(self, X: Array, T: Array, rows: Array) -> None:  # noqa: ARG002 - it keeps nothing of a row
        self.model.learn_many(X, T[:, 0])

    def scores(self, X: Array) -> Array:
        """The mean, shape (n, 1), or what the records explain of the prior's variance, diagonal of shape (n, n)."""
        said = np.asarray(self.model.predict_many(X, with_dist=True))
        return np.diag(1 - said[:, 1] ** 2) if self._variance else said[:, :1]


def mean_error(scores: Array, T: Array) -> float:
    """The relative L2 error of the mean."""
    return process.relative(scores, T)


def variance_error(scores: Array, T: Array) -> float:
    """The mean absolute error of the variance, in variances of the prior; what is explained is on the diagonals."""
    return float(np.mean(np.abs(np.diag(scores) - np.diag(T))))


def problems(sizes: Sizes) -> tuple[process.Setting, Problem, process.Setting, Problem]:
    """The records and the exact mean at test points; and the same records with the exact variance at fewer points.

    Targets of the second are k(x, z) for each of its test points z: the ridge regression of them is what the records
    explain of the variance.
    """
    given, few = process.setting(sizes.n, sizes.n_test), process.setting(sizes.n, sizes.n_points)
    kernel = Gaussian()
    return (
        given,
        Problem("mean", given.X, given.y[:, None], given.Z, given.mean[:, None], given.bandwidth),
        few,
        Problem(
            "variance",
            few.X,
            kernel.matrix(few.X, few.Z, few.bandwidth),
            few.Z,
            np.diag(1 - few.variance),
            few.bandwidth,
        ),
    )


def growing(
    problem: Problem,
    seed: int,
    block_size: int,
    average: bool = False,
    precondition: bool = False,
    B: int = process.BATCH,
) -> GrowingMachine:
    """Kernel ridge regression by DSG: its solution is the mean.

    River's squared error has no factor 1/2, so its derivative is twice that of the paper's loss, and so is nu.
    """
    return GrowingMachine(
        KernelRegressor(
            kernel=Gaussian(problem.bandwidth),
            growth=DSG(),
            block_size=block_size,
            batch_size=B,
            max_features=None,
            regularization=2 * process.NOISE / problem.n,
            standardize=False,
            precondition=precondition,
            blocks_per_step=1,
            average=average,
            seed=seed,
        )
    )


def norma(problem: Problem) -> Norma:
    """NORMA for the same ridge regression, of the mean or of all test points' functions."""
    return Norma(problem.bandwidth, process.NOISE / problem.n, square)


class Contender(NamedTuple):
    """An algorithm of the comparison."""

    problem: Problem  #: what it solves
    name: str
    make: Callable[[int], Make]  #: makes it with a seed
    passes: int
    batch_size: int = process.BATCH


def contenders(sizes: Sizes) -> list[Contender]:
    """Every algorithm, with the mean and with the variance."""
    given, mean, few, variance = problems(sizes)
    block_size, passes = sizes.block_size, sizes.passes
    larger = min(LARGER_BATCH, sizes.n // 2)

    def by_gradients(**arguments: Any) -> Callable[[int], Make]:
        return lambda seed: lambda problem: growing(problem, seed, block_size, **arguments)

    def least_squares(of_variance: bool) -> Callable[[int], Make]:
        setting = few if of_variance else given
        return lambda seed: (
            lambda _: PosteriorLearner(process.model(setting, n_features=block_size, seed=seed), of_variance)
        )

    def by_points(seed: int) -> Make:
        functions = process.points_of(few)
        return lambda _: PosteriorLearner(process.model(few, n_features=1, variance=functions, seed=seed), True)

    return [
        Contender(mean, "DSG", by_gradients(), passes),
        Contender(mean, "DSG, averaged", by_gradients(average=True), passes),
        Contender(mean, "DSG, preconditioned", by_gradients(precondition=True), passes),
        Contender(
            mean, f"DSG, preconditioned, B = {larger}", by_gradients(precondition=True, B=larger), passes, larger
        ),
        Contender(mean, NORMA, lambda _: norma, passes),
        Contender(mean, LEAST_SQUARES, least_squares(False), 1),
        Contender(variance, "DSG, functions of the test points", by_points, passes),
        Contender(variance, NORMA, lambda _: norma, passes),
        Contender(variance, LEAST_SQUARES, least_squares(True), 1),
    ]


def compare(sizes: Sizes, seeds: range) -> Runs:
    """Every algorithm by name and seed, mean and variance; NORMA, which draws nothing, with one."""
    runs: Runs = {}
    for problem, name, make, passes, B in contenders(sizes):
        score = mean_error if problem.name == "mean" else variance_error
        follow(make(0), problem, B, 0, passes=2 * B / problem.n)  # compiles
        for seed in seeds if name != NORMA else (1,):
            found = follow(make(seed), problem, B, seed, passes, looks=LOOKS, score=score)
            enter(runs, problem, name, seed, found)
    return runs


def rows_of(runs: Runs) -> list[list[str]]:
    """A row each algorithm: its error after a pass, and at the end with time and memory."""
    rows = []
    for title, name in dict.fromkeys((title, name) for title, name, _ in runs):
        found = of(runs, title, name)
        last = [looks[-1] for looks in found]
        rows.append(
            [
                title,
                name,
                significant([100 * looks[LOOKS - 1].error for looks in found]),
                significant([100 * look.error for look in last]),
                f"{last[0].records:,}",
                spread([look.seconds for look in last], 1),
                megabytes(last[0].nbytes),
                megabytes(last[0].stored),
            ]
        )
    return rows


def significant(values: list[float]) -> str:
    """Mean and, of several, deviation, with three and two digits whatever their size."""
    return f"{np.mean(values):.3g}" + ("" if len(values) == 1 else f" ± {np.std(values):.2g}")


def run(options: Namespace) -> None:
    """Write paper_gp.md, paper_gp.csv and paper_gp.png."""
    sizes, seeds = (QUICK, range(1, 2)) if options.quick else (WHOLE, range(1, 4))
    runs = compare(sizes, seeds)
    write_looks(options.out / "paper_gp.csv", runs)
    curves(options.out / "paper_gp.png", lines(runs, "posterior {}"), "CPU seconds", "error")
    head = ["posterior", "algorithm", "error % after a pass", "error % at the end", "records", "CPU seconds"]
    publish(
        options,
        "paper_gp",
        "The posterior of a Gaussian process (DSG paper, 7.2)",
        f"One thread, mean ± deviation over the seeds 1 to {len(seeds)} but for NORMA, which draws no features. "
        f"{sizes.n:,} points of the function of the plane in [7.1](paper_ridge.md), noise variance .1, bandwidth the "
        f"median distance, B = {process.BATCH}, F = {sizes.block_size}. The error of the mean is its relative L2 "
        f"distance to the posterior in closed form at {sizes.n_test:,} points; that of the variance its mean absolute "
        f"difference at {sizes.n_points}, in % of the prior's variance. DSG and NORMA solve the ridge regression with "
        "nu = noise / n: of the targets for the mean, of k(x, z) for the variance at z. (The regressor's "
        "`regularization` is twice that: its loss is the whole squared error, not half of it.) All steps have their "
        "default size. *Preconditioned* steps touch one block. *Least squares* is the default of "
        "`GaussianProcessRegressor`: the posterior of F quasi-random frequencies, which needs one pass. [Against F, "
        "and the variance's operator](gaussian_process.md).",
        table([*head, "memory MB", "features stored MB"], rows_of(runs)),
        f"*The end* is that of {sizes.passes} passes; least squares takes one. Plain steps are too few, whatever their "
        "features: NORMA draws none, and comes about as far in the mean as DSG. Preconditioned steps come nearer, in "
        "the same passes and about the same time. Their gradients are preconditioned and their shrinking is not, so "
        "their limit is near the posterior and not equal to it.",
        "![Error against seconds](paper_gp.png)",
        module="paper",
    )
