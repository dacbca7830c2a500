"""Section 7.4 of the DSG paper: MNIST's ten classes, on pixels."""

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from river.optim.base import Scheduler
from sklearn.svm import SVC

from benchmarks.digits import kept
from benchmarks.paper.contenders import contenders
from benchmarks.paper.machines import GrowingMachine, labels
from benchmarks.paper.problems import Problem, mnist
from benchmarks.paper.runs import CurvePoint, Make, Runs, after_passes, chosen, enter, follow, of
from benchmarks.paper.step_sizes import best_step, schedules
from benchmarks.paper.svm import HEADER, cells
from benchmarks.paper.tables import plot_curves, write_looks
from benchmarks.report import machine, table, write
from streamkernel import KernelClassifier
from streamkernel.growth import CDSG, DSG, Growth
from streamkernel.kernels import Gaussian

#: The bandwidth in median distances.
WIDTH = 0.4
REGULARIZATION = 1e-6
#: B and F of our plain machines, and B of the others.
SIZE, OTHERS_SIZE = 64, 256
#: Looks in a pass.
LOOKS = 4
#: The plain machines, by name.
GROWTHS: dict[str, Callable[[], Growth]] = {
    "DSG": DSG,
    "CDSG, cap 1": CDSG,
    "CDSG, cap 2": partial(CDSG, cap=2.0),
}
#: Rows that step sizes are chosen on, and those that the exact machine learns.
CHOOSING, EXACT = 12_000, 20_000


def plain(growth: Callable[[], Growth], step: Scheduler | None, seed: int) -> Make:
    """A growing machine with plain steps and the softmax."""
    return lambda problem: GrowingMachine(
        KernelClassifier(
            kernel=Gaussian(problem.bandwidth),
            growth=growth(),
            block_size=SIZE,
            batch_size=SIZE,
            max_features=None,
            step=step,
            regularization=REGULARIZATION,
            standardize=False,
            precondition=False,
            seed=seed,
        )
    )


def preconditioned(path: Path, problem: Problem) -> Runs:
    """The runs of benchmarks.digits over the images themselves that came to their end, as they were kept."""
    return {
        (problem.name, f"preconditioned: {run.setting.name.removeprefix('MNIST ')}", run.seed): [
            CurvePoint(
                look.records,
                look.core_seconds,
                look.error,
                4 * 2 * look.features * problem.T.shape[1],
                4 * 2 * look.features * problem.n,
                n_features=look.features,
            )
            for look in run.looks
        ]
        for run in kept(path)
        if run.setting.passes and run.whole
    }


def exact(problem: Problem, cost: float, n: int) -> CurvePoint:
    """scikit-learn's SVC of the first n rows, one machine for each pair of classes."""
    began = time.process_time()
    y = labels(problem.T[:n])
    model = SVC(C=cost, gamma=0.5 / problem.bandwidth**2, cache_size=1_000).fit(problem.X[:n], y)
    spent = time.process_time() - began
    error = float(np.mean(model.predict(problem.X_test) != labels(problem.T_test)))
    return CurvePoint(len(y), spent, error, 4 * len(model.support_) * (problem.X.shape[1] + 9), 0)


def compare(problem: Problem, seeds: range, rank: int) -> Runs:
    """Every algorithm that is run here by name and seed: a pass."""
    runs: Runs = {}
    for growth in GROWTHS.values():  # compiles
        follow(plain(growth, None, 0), problem, SIZE, 0, passes=2 * SIZE / problem.n)
    for name, growth in GROWTHS.items():
        machine = partial(plain, growth)
        _, best = best_step(machine, problem, SIZE, seeds=seeds[:1])
        for title, step in ((name, None), (f"{name}, {best}", schedules()[best])):
            for seed in seeds:
                enter(runs, problem, title, seed, follow(machine(step, seed), problem, SIZE, seed, looks=LOOKS))
    few = replace(problem, X=problem.X[:CHOOSING], T=problem.T[:CHOOSING])
    for name, makes in contenders(REGULARIZATION, rank, False):
        label, make = chosen(makes, few, OTHERS_SIZE)
        title = f"{name}, {label}" if len(makes) > 1 else name
        enter(runs, problem, title, 1, follow(make, problem, OTHERS_SIZE, 1, looks=LOOKS))
    n = min(EXACT, problem.n)
    enter(runs, problem, f"scikit-learn's SVC, C = 10, {n:,} rows", 1, [exact(problem, 10, n)])
    return runs


def rows_of(runs: Runs, problem: Problem) -> list[list[str]]:
    """A row each algorithm after a pass, and of those that go on another at their end."""
    rows = []
    for name in dict.fromkeys(name for _, name, _ in runs):
        found = of(runs, problem.name, name)
        last = [looks[-1] for looks in found]
        rows.append(
            cells(
                name if last[0].records < 0.9 * problem.n else f"{name}, a pass",
                [after_passes(looks, problem, 1) for looks in found],
            )
        )
        if last[0].records > 1.5 * problem.n:
            rows.append(cells(f"{name}, {round(last[0].records / problem.n)} passes", last))
    return rows


def run(data: Path | None, quick: bool, out: Path) -> None:
    """Write paper_mnist.md, paper_mnist.csv and paper_mnist.png."""
    loaded = mnist(data, quick)
    parts = ["Not run: mnist.npz is not in --data."]
    if loaded is not None:
        problem = loaded.with_bandwidth(WIDTH * loaded.bandwidth)
        seeds, rank = (range(1, 2), 32) if quick else (range(1, 4), 256)
        kept_runs = {} if quick else preconditioned(out / "digits.jsonl", problem)
        runs = kept_runs | compare(problem, seeds, rank)
        write_looks(out / "paper_mnist.csv", runs)
        lines = {
            name: ([look.seconds for look in looks], [look.error for look in looks])
            for (_, name, seed), looks in runs.items()
            if seed == 1
        }
        plot_curves(out / "paper_mnist.png", {problem.name: lines}, "CPU seconds", "test error")
        parts = [
            f"{problem.n:,} rows of {problem.X.shape[1]} principal components, {len(problem.X_test):,} to test; "
            f"bandwidth {WIDTH} median distances. Softmax by DSG and CDSG, B = F = {SIZE}; one class against the rest "
            f"by the others, r = {rank}; nu = 1e-6. Step sizes of FOGD and NOGD are chosen on a fifth of the first "
            f"{CHOOSING:,} rows, which does not learn. Those of DSG and CDSG are the default ones or, where a step is "
            "named, chosen on a fifth of all rows, as [on Adult](paper_adult.md), with one seed. `CDSG()` is cap 1; "
            f"cap 2 is the paper's. One thread, mean ± deviation of ours over the seeds 1 to {len(seeds)}. What is "
            "called preconditioned are the runs that `python -m benchmarks.digits` kept, with their own settings and "
            "seconds of all cores: "
            + ("[settings, every seed and the targets](digits.md)." if kept_runs else "none so far."),
            table(HEADER[:5], rows_of(runs, problem)),
            "![Test error against seconds](paper_mnist.png)",
        ]
    write(
        out / "paper_mnist.md",
        "\n\n".join(
            [
                "# MNIST's ten classes (DSG paper, 7.4)",
                f"`python -m benchmarks.paper mnist{' --quick' if quick else ''} --data DIR` on {machine()}.",
                "The paper's .5% is of another problem: 8.1 million deformed digits, described by the last "
                "max-pooling layer of a trained convolutional net (1,568 numbers, its Table 4), with sigma four "
                "median distances. These are the 60,000 digits themselves, by their pixels. The authors of "
                "EigenPro report of such pixels, with 60,000 features on a GPU, 4.31% by DSG after a pass and "
                "1.80% after 20, and 1.61% by preconditioned random features after one.",
                *parts,
            ]
        ),
    )
