"""Section 7.4 of the DSG paper: MNIST's ten classes, on pixels."""

import time
from argparse import Namespace
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.svm import SVC

from benchmarks.digits import kept
from benchmarks.paper.contenders import contenders
from benchmarks.paper.machines import labels
from benchmarks.paper.problems import Problem, mnist
from benchmarks.paper.runs import CurvePoint, Runs, after_passes, chosen, enter, follow, lines, of
from benchmarks.paper.step_sizes import best_step, schedules
from benchmarks.paper.svm import GROWTHS, HEADER, cells
from benchmarks.paper.tables import write_looks
from benchmarks.paper.utilize import REGULARIZATION, CurveSetting, growing
from benchmarks.plots import curves
from benchmarks.report import publish, table

#: Our plain machines: B = F = 64, .4 median distances, one pass with four looks.
SETTING = CurveSetting(mnist, 64, 64, 0.4, 1, 4)
#: B of the others.
OTHERS_SIZE = 256
#: Rows that step sizes are chosen on, and those that the exact machine learns.
CHOOSING, EXACT = 12_000, 20_000
TITLE = "MNIST's ten classes (DSG paper, 7.4)"
PAPER = (
    "The paper's .5% is of another problem: 8.1 million deformed digits, described by the last max-pooling layer of a "
    "trained convolutional net (1,568 numbers, its Table 4), with sigma four median distances. These are the 60,000 "
    "digits themselves, by their pixels. The authors of EigenPro report of such pixels, with 60,000 features on a GPU, "
    "4.31% by DSG after a pass and 1.80% after 20, and 1.61% by preconditioned random features after one."
)


def preconditioned(path: Path, problem: Problem) -> Runs:
    """The whole runs of benchmarks.digits over the images themselves, as they were kept."""
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
    model = SVC(C=cost, gamma=0.5 / problem.bandwidth**2, cache_size=1_000).fit(problem.X[:n], labels(problem.T[:n]))
    spent = time.process_time() - began
    error = float(np.mean(model.predict(problem.X_test) != labels(problem.T_test)))
    return CurvePoint(n, spent, error, 4 * len(model.support_) * (problem.X.shape[1] + 9), 0)


def compare(problem: Problem, seeds: range, rank: int) -> Runs:
    """Every algorithm that is run here by name and seed: a pass."""
    runs: Runs = {}
    size, looks = SETTING.batch_size, SETTING.looks
    for growth in GROWTHS.values():  # compiles
        follow(growing(SETTING, growth, None, 0), problem, size, 0, passes=2 * size / problem.n)
    for name, growth in GROWTHS.items():
        machine = partial(growing, SETTING, growth)
        _, best = best_step(machine, problem, size, seeds=seeds[:1])
        for title, step in ((name, None), (f"{name}, {best}", schedules()[best])):
            for seed in seeds:
                enter(runs, problem, title, seed, follow(machine(step, seed), problem, size, seed, looks=looks))
    few = replace(problem, X=problem.X[:CHOOSING], T=problem.T[:CHOOSING])
    for name, makes in contenders(REGULARIZATION, rank, False):
        label, make = chosen(makes, few, OTHERS_SIZE)
        title = f"{name}, {label}" if len(makes) > 1 else name
        enter(runs, problem, title, 1, follow(make, problem, OTHERS_SIZE, 1, looks=looks))
    n = min(EXACT, problem.n)
    enter(runs, problem, f"scikit-learn's SVC, C = 10, {n:,} rows", 1, [exact(problem, 10, n)])
    return runs


def rows_of(runs: Runs, problem: Problem) -> list[list[str]]:
    """A row each algorithm after a pass, and one at the end of those with more passes."""
    rows = []
    for name in dict.fromkeys(name for _, name, _ in runs):
        found = of(runs, problem.name, name)
        last = [looks[-1] for looks in found]
        title = name if last[0].records < 0.9 * problem.n else f"{name}, a pass"
        rows.append(cells(title, [after_passes(looks, problem, 1) for looks in found]))
        if last[0].records > 1.5 * problem.n:
            rows.append(cells(f"{name}, {round(last[0].records / problem.n)} passes", last))
    return rows


def run(options: Namespace) -> None:
    """Write paper_mnist.md, paper_mnist.csv and paper_mnist.png."""
    quick, out = options.quick, options.out
    loaded = mnist(options.data, quick)
    if loaded is None:
        publish(options, "paper_mnist", TITLE, PAPER, "Not run: mnist.npz is not in --data.", module="paper")
        return
    problem = loaded.with_bandwidth(SETTING.width * loaded.bandwidth)
    seeds, rank = (range(1, 2), 32) if quick else (range(1, 4), 256)
    kept_runs = {} if quick else preconditioned(out / "digits.jsonl", problem)
    runs = kept_runs | compare(problem, seeds, rank)
    write_looks(out / "paper_mnist.csv", runs)
    curves(out / "paper_mnist.png", lines(runs), "CPU seconds", "test error")
    publish(
        options,
        "paper_mnist",
        TITLE,
        PAPER,
        f"{problem.n:,} rows of {problem.X.shape[1]} principal components, {len(problem.X_test):,} to test; bandwidth "
        f"{SETTING.width} median distances. Softmax by DSG and CDSG, B = F = {SETTING.batch_size}; one class against "
        f"the rest by the others, r = {rank}; nu = 1e-6. Step sizes of FOGD and NOGD are chosen on a fifth of the "
        f"first {CHOOSING:,} rows, which does not learn. Those of DSG and CDSG are the default ones or, where a step "
        "is named, chosen on a fifth of all rows, as [on Adult](paper_adult.md), with one seed. `CDSG()` is cap 1; "
        f"cap 2 is the paper's. One thread, mean ± deviation of ours over the seeds 1 to {len(seeds)}. The "
        "preconditioned runs are those that `python -m benchmarks.digits` kept, with their own settings and seconds of "
        f"all cores: {'[settings, every seed and the targets](digits.md)' if kept_runs else 'none so far'}.",
        table(HEADER[:5], rows_of(runs, problem)),
        "![Test error against seconds](paper_mnist.png)",
        module="paper",
    )
