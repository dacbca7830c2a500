"""Matrix risk minimization and multi-task metric learning: DSPDC beside SPDC and SDCA, and errors of neighbors.

    python -m benchmarks.solvers.matrix_page [--part 100 200 metric] [--data DIR] [--quick] [--out DIR]

The parts are matrix risk with d = 100 or 200, and metrics; without `--part` all are run. Each run's looks are written
to OUT/window_matrix.csv when it ends, and what is there is not run again: delete it to measure again. From all of them
come OUT/window_matrix.md and window_matrix.png. The seconds are CPU seconds of one thread, and those of the solvers'
own work alone. mnist.npz is read from --data; without it there are no metrics.
"""

import csv
import time
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np

from benchmarks.command import DATA, asked
from benchmarks.report import publish, table
from benchmarks.solvers.matrix_risk import Look, Solver, random_matrices, solvers
from benchmarks.solvers.metric_learning import MetricLearner
from benchmarks.solvers.metric_tasks import NEIGHBORS, Tasks, digits
from benchmarks.solvers.plots import plot

PARTS = ("100", "200", "metric")
SETTINGS = ((5, 50), (50, 5), (20, 20))
METRIC_SETTINGS = ((240, 4), (600, 4), (1200, 8))
#: The CPU seconds of a run by part.
SECONDS = {"100": 8.0, "200": 20.0, "metric": 5.0}
#: A quick run goes by passes: a loaded machine gets no further than the start in a tenth of a second.
QUICK_PASSES = 10.0
TARGETS = (1e-3, 1e-6)
_FIELDS = ("part", "panel", "solver", *Look._fields)


class Run(NamedTuple):
    """One solver's looks in one panel."""

    part: str
    panel: str
    solver: str
    looks: list[Look]


def tasks_of(options: Namespace) -> Tasks:
    """The tasks of MNIST, or of a quick run some drawn clusters."""
    return digits(None, 4, 40, 5) if options.quick else digits(options.data, 20, 200, 40)


def measure(part: str, options: Namespace, known: set[tuple[str, str]]) -> Iterator[Run]:
    """Run all solvers of all panels of a part, but for those known by panel and name."""
    quick = options.quick
    seconds, passes = (np.inf, QUICK_PASSES) if quick else (SECONDS[part], np.inf)
    settings: tuple[tuple[int, int], ...]
    if part == "metric":
        problem, settings = tasks_of(options).problem(), ((24, 2),) if quick else METRIC_SETTINGS
        name = f"{problem.data.p - 1} tasks, d = {problem.data.d}"
    else:
        size = (12, 12, 4 + int(part) // 100) if quick else (100, 100, int(part))
        problem, settings = random_matrices(*size), ((3, 6), (6, 3)) if quick else SETTINGS
        name = f"d = {size[2]}"
    for dual, primal in settings:
        panel = f"{name}, (m, q) = ({dual}, {primal})"
        for solver in solvers(dual, primal):
            if (panel, solver.name) not in known:
                yield Run(part, panel, solver.name, solver.run(problem, seconds, 1e-10, passes))


def report(options: Namespace, runs: list[Run], errors: list[list[str]]) -> None:
    """Write the page."""
    head = [f"{what} to {target:g}" for target in TARGETS for what in ("CPU seconds", "eigendecompositions")]
    publish(
        options,
        "window_matrix",
        "Positive semi-definite matrices: DSPDC beside SPDC and SDCA",
        "One thread, one run each, CPU seconds of the solvers' own work.",
        _outcome(runs),
        "Matrix risk: n = p = 100, smooth hinge, l2 = .01, matrices of standard normals as in section 6.2 of the DSPDC "
        "paper. Tasks: MNIST, five digits a task, each with 200 records that no other has, l2 of .01 and .1 as in its "
        "section 6.3. A run ended at a duality gap of 1e-10 or, with `>`, when its seconds were used up. Targets are "
        "of the objective above the lowest of all runs, as a share of that at the start.",
        table(["problem", "solver", *head], [_row(run, runs) for run in runs]),
        "![The objective against CPU seconds](window_matrix.png)",
        f"Test errors of the vote of {NEIGHBORS} nearest records, the mean over the tasks:" if errors else "",
        table(["metric", "error %", "CPU seconds to learn it"], errors) if errors else "",
        '"Thumb and theorem" takes the paper\'s rule for Lambda, m q max |D_i|^2 / p, and shares the product of the '
        "step sizes as its Theorem 1 does; the other runs measure Lambda on ten draws and, where a record's matrices "
        "have many more numbers than there are records, take a larger primal step. SDCA's mini-batches add changes up "
        "by the spectral norm of ten draws (measured), or by m (safe for any data).",
        module="solvers.matrix_page",
    )


def _outcome(runs: list[Run]) -> str:
    """Which solver was first in how many panels, as the table has it."""
    panels = list(dict.fromkeys(run.panel for run in runs))
    lines = []
    for target in TARGETS:
        firsts = []
        for panel in panels:
            own = [run for run in runs if run.panel == panel]
            reached = {run.solver: _reached(run, runs, target)[0] for run in own}
            first = min(reached, key=lambda name: reached[name])
            firsts.append(first if np.isfinite(reached[first]) else "none")
        counts = {name: firsts.count(name) for name in dict.fromkeys(firsts)}
        shown = ", ".join(f"{name} in {count}" for name, count in counts.items())
        lines.append(f"- First at {target:g} of the objective, of {len(panels)} problems: {shown}.")
    return "\n".join(lines)


def _row(run: Run, runs: list[Run]) -> list[str]:
    cells = [run.panel, run.solver]
    for target in TARGETS:
        seconds, projections = _reached(run, runs, target)
        if np.isfinite(seconds):
            cells += [f"{seconds:.2f}", f"{projections:,}"]
        else:
            cells += [f"> {run.looks[-1].seconds:.0f}", f"> {run.looks[-1].projections:,}"]
    return cells


def _reached(run: Run, runs: list[Run], target: float) -> tuple[float, int]:
    """Seconds and eigendecompositions after which the objective stays below a target; infinite where it does not."""
    above = np.flatnonzero(excess(run, runs) > target)
    first = int(above[-1]) + 1 if len(above) else 0
    if first == len(run.looks):
        return np.inf, 0
    return run.looks[first].seconds, run.looks[first].projections


def excess(run: Run, runs: list[Run]) -> Any:
    """The objective above the lowest of the problem, as a share of that at the start."""
    problem = run.panel.partition(", (m")[0]
    values = [look.objective for one in runs if one.panel.startswith(f"{problem}, (m") for look in one.looks]
    lowest = min(values)
    # Where no run has left the start, none is above the lowest.
    return (np.array([look.objective for look in run.looks]) - lowest) / (values[0] - lowest or 1.0)


def panels_of(runs: list[Run]) -> dict[str, dict[str, list[tuple[Any, Any]]]]:
    """The objective against seconds as `plot` takes it: a panel each problem and setting."""
    found: dict[str, dict[str, list[tuple[Any, Any]]]] = {}
    for run in runs:
        xy = np.array([look.seconds for look in run.looks]), np.maximum(excess(run, runs), 1e-10)
        found.setdefault(run.panel, {})[run.solver] = [xy]
    return found


def metric_errors(tasks: Tasks) -> list[list[str]]:
    """Test errors of the Euclidean metric, one metric of all records together, and one of each task."""
    rows = [["Euclidean", f"{tasks.error():.2f}", ""]]
    for name, own in (("one for all, whichever task", None), ("MT-LMNN, one a task", tasks.tasks)):
        for k in (1, NEIGHBORS):
            before = time.process_time()
            learned = MetricLearner(k).fit(tasks.X, tasks.y, own)
            seconds = time.process_time() - before
            error = tasks.error(learned.by_task or None, learned.shared)
            rows.append([f"{name}, {k} target neighbors", f"{error:.2f}", f"{seconds:.2f}"])
    return rows


def _load(path: Path) -> list[Run]:
    runs: dict[tuple[str, str, str], list[Look]] = {}
    if path.exists():
        with path.open() as file:
            for row in csv.DictReader(file):
                numbers = [float(row[name]) for name in Look._fields]
                look = Look(numbers[0], numbers[1], int(numbers[2]), *numbers[3:])
                runs.setdefault((row["part"], row["panel"], row["solver"]), []).append(look)
    return [Run(*key, looks) for key, looks in runs.items()]


def _save(path: Path, runs: list[Run]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(_FIELDS)
        for run in runs:
            writer.writerows([run.part, run.panel, run.solver, *look] for look in run.looks)


def run(options: Namespace) -> None:
    """Measure some parts, and write the page of all that are measured."""
    out, parts = options.out, list(options.part)
    out.mkdir(parents=True, exist_ok=True)
    path = out / "window_matrix.csv"
    metrics = options.quick or (options.data / "mnist.npz").exists()
    if not metrics and "metric" in parts:
        print("mnist.npz is not in --data: the part metric is left out")
        parts.remove("metric")
    # The solvers' own histories are in CPU seconds too then, which other processes hardly change.
    with mock.patch("time.perf_counter", time.process_time):
        problem = random_matrices(4, 2, 2)
        for solver in (Solver("DSPDC", 2, 1), Solver("SDCA", 2, None, safety="any")):  # compiles
            solver.run(problem, 0.0, 0.0)
        for part in parts:
            known = {(one.panel, one.solver) for one in _load(path)}
            for one in measure(part, options, known):
                _save(path, sorted([*_load(path), one], key=lambda one: PARTS.index(one.part)))
        runs = _load(path)
        errors = metric_errors(tasks_of(options)) if metrics else []
    plot(out / "window_matrix.png", panels_of(runs), "CPU seconds", "objective above the lowest")
    report(options, runs, errors)


def main() -> None:
    parts = {"nargs": "+", "choices": PARTS, "default": PARTS, "help": "all by default"}
    run(asked(__doc__, quick="small problems and a few seconds", data=DATA, part=parts))


if __name__ == "__main__":
    main()
