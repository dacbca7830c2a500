"""Section 7.1 of the DSG paper: kernel ridge regression in the plane, the averaged solution and the 1/t guide."""

import time
from argparse import Namespace
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from benchmarks.paper.contenders import contenders
from benchmarks.paper.machines import GrowingMachine
from benchmarks.paper.problems import Problem, median_distance, surface, true_surface
from benchmarks.paper.runs import Make, Runs, chosen, enter, follow, lines, squared, within
from benchmarks.paper.tables import megabytes, write_looks, write_rows
from benchmarks.plots import curves
from benchmarks.report import publish, table
from streamkernel import KernelRegressor
from streamkernel.growth import CDSG, DSG, Growth
from streamkernel.kernels import Gaussian

#: nu of the paper, and the steps between which the slope is taken.
REGULARIZATION = 1e-6
FIRST, LAST = 16, 256
#: The slope that the average must have, at B = F = 1,024.
TARGET = -0.8


class Convergence(NamedTuple):
    """The squared distance to the function after some steps."""

    steps: list[int]  #: after which it was looked
    last: list[float]  #: mean squared difference of the last solution
    averaged: list[float]
    seconds: tuple[float, float]  #: of learning, without and with the average

    def slope(self, errors: Sequence[float], first: int = FIRST) -> float:
        """The slope of errors in log-log from a step on, by least squares over the looks."""
        kept = [i for i, step in enumerate(self.steps) if step >= first]
        steps, values = (np.log(np.array(part)[kept]) for part in (self.steps, errors))
        return float(np.polyfit(steps, values, 1)[0])


def regressor(bandwidth: float, size: int, seed: int, average: bool, growth: Growth | None = None) -> KernelRegressor:
    """The machine of the paper: a new block each step, plain gradients, B = F."""
    return KernelRegressor(
        kernel=Gaussian(bandwidth),
        growth=growth or DSG(),
        block_size=size,
        batch_size=size,
        max_features=None,
        regularization=REGULARIZATION,
        standardize=False,
        precondition=False,
        average=average,
        seed=seed,
    )


def bandwidth() -> float:
    """A tenth of the median distance of points in the square."""
    return 0.1 * median_distance(surface(np.random.default_rng(0), 1_000)[0])


def converge(size: int, n_steps: int, seed: int) -> Convergence:
    """Learn new points in every step, by two machines that differ in `average` alone."""
    rng = np.random.default_rng(seed)
    points = rng.uniform(-5, 5, size=(1_024, 2))
    truth = true_surface(points)
    models = [regressor(bandwidth(), size, seed, average) for average in (False, True)]
    looks = sorted({round(2 ** (half / 2)) for half in range(2 * n_steps.bit_length())} & set(range(n_steps + 1)))
    seconds = [0.0, 0.0]
    errors: list[list[float]] = [[], []]
    for step in range(1, n_steps + 1):
        X, y = surface(rng, size)
        for i, model in enumerate(models):
            before = time.process_time()
            model.learn_many(X, y)
            seconds[i] += time.process_time() - before
            if step in looks:
                errors[i].append(float(np.mean((model.predict_many(points) - truth) ** 2)))
        if step in looks:
            print(f"seed {seed}: step {step}, last {errors[0][-1]:.2e}, averaged {errors[1][-1]:.2e}")
    return Convergence(looks, errors[0], errors[1], (seconds[0], seconds[1]))


def problem(n: int) -> Problem:
    """So many points to learn from; those to test on have no noise."""
    rng = np.random.default_rng(5)
    X, y = surface(rng, n)
    points = rng.uniform(-5, 5, size=(1_024, 2)).astype(np.float32)
    return Problem("2-D ridge", X.astype(np.float32), y[:, None], points, true_surface(points)[:, None], bandwidth())


def compare(part: Problem, size: int, rank: int) -> Runs:
    """A pass of every algorithm of the paper's figure 4 (3), or as many seconds as DSG takes."""

    def ours(average: bool, growth: Growth) -> Make:
        return lambda _: GrowingMachine(regressor(part.bandwidth, size, 1, average, growth))

    runs: Runs = {}
    for growth in (DSG(), CDSG()):  # compiles
        follow(ours(True, growth), part, size, 1, passes=3 * size / part.n)
    for name, make in {
        "DSG": ours(False, DSG()),
        "DSG, averaged": ours(True, DSG()),
        "CDSG": ours(False, CDSG()),
    }.items():
        enter(runs, part, name, 1, follow(make, part, size, 1, score=squared))
    budget = runs[part.name, "DSG", 1][-1].seconds
    for name, makes in contenders(REGULARIZATION, rank, regression=True):
        label, make = chosen(makes, part, size, score=squared)
        title = f"{name}, {label}" if len(makes) > 1 else name
        enter(runs, part, title, 1, follow(make, part, size, 1, seconds=budget, score=squared))
    return runs


def run(options: Namespace) -> None:
    """Write paper_ridge.md, two CSV files and two plots."""
    quick, out = options.quick, options.out
    size, n_steps, seeds, n, rank = (128, 32, 1, 2**11, 32) if quick else (1_024, LAST, 3, 2**16, 256)
    first = FIRST if not quick else 4
    found = [converge(size, n_steps, seed) for seed in range(1, seeds + 1)]
    slopes = {name: [c.slope(getattr(c, name), first) for c in found] for name in ("averaged", "last")}
    write_rows(
        out / "paper_ridge_steps.csv",
        ["seed", "step", "last", "averaged"],
        [[i + 1, *row] for i, c in enumerate(found) for row in zip(c.steps, c.last, c.averaged, strict=True)],
    )
    means = {name: (found[0].steps, np.mean([getattr(c, name) for c in found], axis=0).tolist()) for name in slopes}
    curves(out / "paper_ridge.png", {"2-D ridge": means}, "steps", "mean squared distance", guide=-1)

    part = problem(n)
    runs = compare(part, size, rank)
    write_looks(out / "paper_ridge.csv", runs)
    curves(out / "paper_ridge_time.png", lines(runs), "CPU seconds", "mean squared distance")
    judged = "" if quick else ("reached" if np.mean(slopes["averaged"]) <= TARGET else "missed")
    rows = []
    for name, of_seeds in slopes.items():
        at = [f"{np.mean([getattr(c, name)[c.steps.index(s)] for c in found]):.2e}" for s in (first, n_steps)]
        target = [f"<= {TARGET}", judged] if name == "averaged" else ["", ""]
        rows.append([name, *at, f"{np.mean(of_seeds):.2f} ({min(of_seeds):.2f} to {max(of_seeds):.2f})", *target])
    publish(
        options,
        "paper_ridge",
        "Kernel ridge regression in the plane (DSG paper, 7.1)",
        f"One thread, {seeds} {'seed' if seeds == 1 else 'seeds'}. B = F = {size:,}, nu = 1e-6, bandwidth a tenth of "
        "the median distance, new points in every step. The distance is the mean square of f - f* over 1,024 points, "
        f"f* the function without its noise; the slope is that of its logarithm from step {first} to {n_steps}, the "
        "mean of the seeds.",
        table(["solution", f"distance after {first} steps", f"after {n_steps}", "slope", "target", ""], rows),
        f"CPU seconds of {n_steps} steps: {np.mean([c.seconds[0] for c in found]):.1f} without the average, "
        f"{np.mean([c.seconds[1] for c in found]):.1f} with it.",
        "![Distance against steps, with a line of slope -1](paper_ridge.png)",
        f"## Beside other algorithms\n\nA pass over {part.n:,} points (the paper: 2^20), r = {rank} stored features "
        "or landmarks; the last column is the distance when DSG's pass ended (the criterion SC2), by CPU seconds. "
        "Nearly all of CDSG's are for the longest step that the square loss allows a block: the largest eigenvalue "
        f"of a {size:,} x {size:,} matrix, of the best candidates in each step "
        "([why](../../docs/growing-results.md#costs)).",
        table(
            ["algorithm", "distance after a pass", "CPU seconds", "memory MB", "features stored MB", "at DSG's time"],
            compared(runs, part),
        ),
        "![Distance against seconds](paper_ridge_time.png)",
        module="paper",
    )


def compared(runs: Runs, part: Problem) -> list[list[str]]:
    """A row each algorithm."""
    budget = runs[part.name, "DSG", 1][-1].seconds
    rows = []
    for (_, name, _), looks in runs.items():
        end = next(look for look in looks if look.records >= part.n or look is looks[-1])
        at = within(looks, budget)
        rows.append(
            [
                name,
                f"{end.error:.2e}",
                f"{end.seconds:.1f}",
                megabytes(end.nbytes),
                megabytes(end.stored),
                "-" if at is None else f"{at.error:.2e}",
            ]
        )
    return rows
