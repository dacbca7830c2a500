"""The page of S3GD: beside SGD, stratified SGD, SVRG and SCV on four data sets, and its switch to SVRG."""

import math
import time
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np

from benchmarks.paper.tables import write_rows
from benchmarks.report import publish, table
from benchmarks.solvers.curve import LossCurve
from benchmarks.solvers.data import two_classes
from benchmarks.solvers.dspdc_page import thinned
from benchmarks.solvers.gradient import clustered
from benchmarks.solvers.optimum import Optimum, optimum
from benchmarks.solvers.plots import against, plot
from benchmarks.solvers.s3gd_runs import (
    ITERATIONS,
    LARGE,
    STEPS,
    Plateau,
    chosen,
    contenders,
    correlations,
    descend,
    plateau,
    prepared,
    publicly,
    warm,
)
from benchmarks.solvers.task import Array, Task

#: Data sets of four on which S3GD's plateau is to be below SGD's, and how much slower the switch may be.
WANTED, SLOWER = 3, 1.2
#: Relative distances to the optimum at which the switch is judged.
NEAR = (1e-3, 1e-8)
ANCHORS, ROUNDS = (10, 20, 50, 100, 200, 500), (2, 10, 50, 200)


@dataclass
class Measured:
    """What was run on a task."""

    task: Task
    best: Optimum
    plateaus: dict[str, dict[float, Plateau]]  #: by solver and step
    steps: dict[str, float]  #: the papers' step of each solver
    curves: dict[str, list[LossCurve]]  #: by solver at its step, and those of the public classes
    correlation: dict[str, list[float]]  #: by solver, after each of `ROUNDS`
    clusters: float  #: CPU seconds of SSGD's strata

    def seconds(self, name: str, near: float, whole: bool = False) -> float:
        """Median CPU seconds to a relative distance; `whole` counts the preparation too."""
        value = self.best.objective
        return median(c.first_below(value, near * value) + (c.preparation if whole else 0.0) for c in self.curves[name])

    def pair(self) -> tuple[float, float]:
        """The plateaus of S3GD and of SGD at S3GD's step."""
        step = self.steps["S3GD"]
        return self.plateaus["S3GD"][step].excess, self.plateaus["SGD"][step].excess

    def crossing(self) -> tuple[float, bool]:
        """CPU seconds at which SVRG is below S3GD's plateau for good, and whether S3GD was ahead before."""
        value = self.best.objective
        level = max(self.plateaus["S3GD"][self.steps["S3GD"]].excess, 1e-16) * value
        at = median(c.first_below(value, level) for c in self.curves["SVRG"])
        touches = (np.flatnonzero(c.excess(value) <= level) for c in self.curves["S3GD"])
        first = median(
            c.seconds[i[0]] if len(i) else math.inf for c, i in zip(self.curves["S3GD"], touches, strict=True)
        )
        return at, first < at


def measure(task: Task, seeds: Sequence[int], iterations: int) -> Measured:
    """All runs on a task; of a large one one seed, and three of the switch."""
    if task.A.size >= LARGE:
        seeds = seeds[:1]
    best = optimum(task)
    clustered(task.A[:100])
    before = time.process_time()
    strata = clustered(task.A)
    clusters = time.process_time() - before
    makes = contenders(task, strata)
    warm(makes)
    plateaus = {
        name: {step: plateau(make, step, task, best, iterations) for step in STEPS} for name, make in makes.items()
    }
    steps = {name: chosen(found) for name, found in plateaus.items()}
    curves = {name: descend(make, steps[name], task, seeds, iterations) for name, make in makes.items()}
    curves |= publicly(task, range(1, 2 * len(seeds) + 2), 1e-9 * best.objective)
    preparation = prepared(curves["S3GD, then SVRG"])
    for curve in curves["S3GD"]:
        curve.preparation = preparation
    anchors = [m for m in ANCHORS if m <= (task.n if task.A.size < LARGE else 200)]
    found = Measured(task, best, plateaus, steps, curves, correlations(task, anchors, ROUNDS), clusters)
    print(f"{task.name}: optimum {best.objective:.12f}, gap there {best.gap:.1e}; steps {steps}", flush=True)
    return found


def shown(value: float, form: str) -> str:
    """A number, or a dash if it is infinite."""
    return f"{value:{form}}" if math.isfinite(value) else "-"


def switch_rows(found: Sequence[Measured]) -> list[tuple[list[str], float, float]]:
    """A row each data set and distance, and the switch's seconds over the better's, without and with preparation."""
    rows = []
    alone = ("SVRG", "SVRG, its defaults", "S3GD", "S3GD, no switch")
    for m in found:
        for near in NEAR:
            values = {name: m.seconds(name, near) for name in alone}
            best = min(alone, key=lambda name: values[name])
            switched, whole = (m.seconds("S3GD, then SVRG", near, w) for w in (False, True))
            whole_best = min(m.seconds(name, near, True) for name in alone)
            ratio, whole_ratio = switched / values[best], whole / whole_best
            cells = [shown(values[name], ".4f") for name in alone]
            cells = [m.task.name, f"{near:g}", *cells, f"{switched:.4f}", f"{ratio:.2f} ({best})", f"{whole:.4f}"]
            rows.append(([*cells, f"{whole_ratio:.2f}"], ratio, whole_ratio))
    return rows


def verdicts(found: Sequence[Measured]) -> list[str]:
    """A sentence each target, those that are missed first."""
    lower = [m.pair()[0] < m.pair()[1] for m in found]
    said = [
        (
            sum(lower) >= WANTED or (len(found) < 4 and all(lower)),
            f"S3GD's plateau is below SGD's at the same step on {sum(lower)} of {len(found)} (wanted: {WANTED} of 4)",
        )
    ]
    rows = switch_rows(found)
    for title, ratios in (("without", [row[1] for row in rows]), ("with", [row[2] for row in rows])):
        pairs = zip(rows, ratios, strict=True)
        over = [f"{cells[0]} to {cells[1]} ({ratio:.2f})" for (cells, _, _), ratio in pairs if ratio > SLOWER]
        text = f"S3GD that switches, {title} the time of its anchors, takes at most {max(ratios):.2f} times what the "
        text += f"better of S3GD and SVRG takes (wanted: {SLOWER:g})"
        said.append((not over, text + (f"; above it: {', '.join(over)}" if over else "")))
    return [f"- Target {'reached' if ok else 'MISSED'}: {text}." for ok, text in sorted(said, key=lambda one: one[0])]


def plateau_table(found: Sequence[Measured]) -> str:
    """Relative plateaus by solver and step; the chosen ones are bold."""
    rows = []
    for m in found:
        for name, by_step in m.plateaus.items():
            cells = []
            for step, end in by_step.items():
                text = f"{end.excess:.1e}" if math.isfinite(end.excess) and end.excess < 1e3 else "diverges"
                cells.append(f"**{text}**" if step == m.steps[name] else text)
            rows.append([m.task.name, name, *cells, f"{1e3 * by_step[m.steps[name]].seconds:.3f}"])
    return table(["data", "solver", *(f"step {step:g}" for step in STEPS), "ms of 50 iterations"], rows)


def ball_table(found: Sequence[Measured]) -> str:
    """S3GD's plateau beside SGD's at S3GD's step, and where SVRG overtakes."""
    rows = []
    for m in found:
        ours, sgd = m.pair()
        at, ahead = m.crossing()
        rows.append(
            [
                m.task.name,
                f"{m.steps['S3GD']:g}",
                f"{ours:.1e}",
                f"{sgd:.1e}" if sgd < 1e3 else "diverges",
                f"{at:.4f}" if math.isfinite(at) else "never in its run",
                "yes" if ahead else "no",
                f"{prepared(m.curves['S3GD']):.3f}",
                f"{m.clusters:.3f}",
            ]
        )
    header = ["data", "S3GD's step", "S3GD's plateau", "SGD's", "SVRG below it at s", "S3GD there before SVRG"]
    return table([*header, "s of its anchors", "s of SSGD's strata"], rows)


def race_table(found: Sequence[Measured]) -> str:
    """CPU seconds to relative distances, at the papers' step."""
    names = list(found[0].plateaus)
    rows = []
    for m in found:
        for near in (0.1, 0.01, 0.001):
            values = [m.seconds(name, near) for name in names]
            cells = [shown(1e3 * value, ".2f") for value in values]
            cells = [f"**{c}**" if v == min(values) else c for c, v in zip(cells, values, strict=True)]
            rows.append([m.task.name, f"{near:g}", *cells])
    return table(["data", "relative distance", *(f"{name}, ms" for name in names)], rows)


def correlation_table(found: Sequence[Measured]) -> str:
    """A row each data set and solver, a column each number of rounds."""
    rows = [
        [m.task.name, name, *(f"{value:.3f}" for value in values)]
        for m in found
        for name, values in m.correlation.items()
    ]
    return table(["data", "gradient of", *(f"after {20 * r:,} steps" for r in ROUNDS)], rows)


def pictures(out: Path, found: Sequence[Measured]) -> None:
    """Training objective against seconds and passes, test objective, the switch, and correlations."""
    compared = ("SGD", "SSGD", "SCV", "SVRG", "S3GD")
    switch = ("S3GD", "SVRG", "SVRG, its defaults", "S3GD, then SVRG")

    def training(m: Measured, names: Sequence[str], axis: str) -> dict[str, list[tuple[Array, Array]]]:
        return {name: against(m.curves[name], axis, m.best.objective) for name in names}

    label = "training objective - optimum"
    for axis in ("seconds", "passes"):
        steps = {m.task.name: ", ".join(f"{m.steps[name]:g}" for name in compared) for m in found}
        panels = {f"{m.task.name} (steps {steps[m.task.name]})": training(m, compared, axis) for m in found}
        plot(out / f"window_s3gd_{axis}.png", panels, "CPU seconds" if axis == "seconds" else axis, label, 2)
    tests = {
        m.task.name: {name: [(np.array(c.seconds), np.array(c.test)) for c in m.curves[name]] for name in compared}
        for m in found
    }
    plot(out / "window_s3gd_test.png", tests, "CPU seconds", "test objective", 2, "linear")
    panels = {m.task.name: training(m, switch, "seconds") for m in found}
    plot(out / "window_s3gd_switch.png", panels, "CPU seconds", label, 2)


def run(options: Namespace) -> None:
    """Write window_s3gd.md, its looks as a CSV file, and four plots."""
    tasks, quick = two_classes(options.data), options.quick
    if not tasks:
        print("none of a9a, electricity, shuttle and MNIST is in --data: window_s3gd is left out")
        return
    if quick:
        tasks = [task.first(600) for task in tasks[:1]]
    seeds, iterations = ((1, 2), 2_000) if quick else ((1, 2, 3), ITERATIONS)
    found: list[Measured] = []
    for task in tasks:  # what is there when it is stopped is kept
        found.append(measure(task, seeds, iterations))
        page(options, found, seeds, iterations)


def page(options: Namespace, found: Sequence[Measured], seeds: Sequence[int], iterations: int) -> None:
    """Write the page, the looks and the plots of the tasks so far."""
    pictures(options.out, found)
    rows = (
        [m.task.name, name, i + 1, *row]
        for m in found
        for name, curves in m.curves.items()
        for i, c in enumerate(curves)
        for row in thinned(list(zip(c.passes, c.seconds, c.excess(m.best.objective).tolist(), c.test, strict=True)))
    )
    header = ["data", "solver", "seed", "passes", "seconds", "excess", "test objective"]
    write_rows(options.out / "window_s3gd.csv", header, rows)
    names = ("SVRG, paper's", "SVRG", "S3GD, paper's", "S3GD, no switch", "S3GD, then SVRG")
    head = ["data", "distance", *names, "over the better", "with its anchors", "over the better"]
    publish(
        options,
        "window_s3gd",
        "S3GD beside other stochastic gradients",
        "\n".join(verdicts(found)),
        "CPU seconds of one thread, without compilation, looks and, unless it is said, preparation; medians of "
        f"{len(seeds)} seeds, of the switch {2 * len(seeds) + 1}, on MNIST 1 and 3. Logistic loss of the most frequent "
        "class against the rest, R = lambda |w|^2 of lambda = 1e-3, that is l2 = 2e-3; a column of ones; rows scaled "
        "to a mean squared norm of 1. On MNIST the two classes have the same weight. The optimum is Newton's; "
        "distances are relative to it.",
        "## Largest stable step",
        f"The objective's mean over the last quarter of {iterations:,} iterations of 10 records, relative to the "
        "optimum; bold: the largest step of those within 1%, which the curves have. SVRG takes a full gradient every "
        "50 iterations, S3GD that of 100 anchors every 20, SSGD a record of each of 10 clusters. The plots' titles "
        "have the steps of SGD, SSGD, SCV, SVRG and S3GD.",
        plateau_table(found),
        "## Plateau",
        "At S3GD's step. SVRG's curve is at its own step.",
        ball_table(found),
        "## CPU milliseconds at these steps",
        race_table(found),
        "![Training objective against CPU seconds](window_s3gd_seconds.png)",
        "![Training objective against passes](window_s3gd_passes.png)",
        "![Test objective against CPU seconds](window_s3gd_test.png)",
        "## The switch to SVRG",
        "`S3GD` and `SVRG` as they are by default, each with its own step, beside the papers' SVRG and S3GD above; CPU "
        "seconds to a relative distance.",
        table(head, [row[0] for row in switch_rows(found)]),
        "![The switch](window_s3gd_switch.png)",
        "## Correlation with the exact gradient",
        "Of a mini-batch's gradient as each solver corrects it, the mean of 200 mini-batches, on S3GD's way at step 1; "
        "SVRG's and S3GD's earlier coefficients are 20 steps old.",
        correlation_table(found),
        module="window",
    )
