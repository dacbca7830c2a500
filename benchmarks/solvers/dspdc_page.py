"""The page of DSPDC: beside SPDC, SDCA and scikit-learn's SAGA on the paper's factorized settings, and on a9a."""

import math
from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

import numpy as np

from benchmarks.paper.tables import write_rows
from benchmarks.report import publish, table
from benchmarks.solvers.curve import LossCurve
from benchmarks.solvers.data import PENALTIES, SIZES, adult_rows, factorized
from benchmarks.solvers.optimum import Optimum, optimum
from benchmarks.solvers.plots import against, plot
from benchmarks.solvers.primal_dual import TARGET, solvers, warm
from benchmarks.solvers.task import Task

#: Settings of six on which DSPDC is to be the fastest of the three primal-dual solvers.
WANTED = 4
#: CPU seconds after which a run ends, on factors with the smaller l2, and elsewhere; and runs of a solver not so slow.
LONGER, SECONDS, RUNS = 20.0, 3.0, 3

Runs = Mapping[str, Sequence[LossCurve]]
Found = list[tuple[Task, Optimum, Runs]]


def measure(task: Task, primal: int, seconds: float, runs: int, longer: float = 0.0) -> tuple[Task, Optimum, Runs]:
    """All solvers in turn, with the seeds 1, 2, ...; a solver that is not at the target in time is run once."""
    best = optimum(task)
    warm(task, primal)
    found: dict[str, list[LossCurve]] = {}
    for seed in range(1, runs + 1):
        for name, solve in solvers(task, primal, best, seconds, longer).items():
            if seed > 1 and math.isinf(seconds_to(found[name], best)[0]):
                continue
            found.setdefault(name, []).append(solve(seed))
    line = ", ".join(f"{name} {spent(curves, best)}" for name, curves in found.items())
    print(f"{task.loss}, {task.name}: optimum {best.objective:.12f}, gap there {best.gap:.1e}; {line}", flush=True)
    return task, best, found


def seconds_to(curves: Sequence[LossCurve], best: Optimum, against_passes: bool = False) -> list[float]:
    """CPU seconds, or passes, of every run to the target; infinite where it was not reached."""
    return [
        curve.first_below(best.objective, TARGET, curve.passes if against_passes else None, stays=False)
        for curve in curves
    ]


def spent(curves: Sequence[LossCurve], best: Optimum) -> str:
    """Median, lowest and highest CPU seconds to the target; or how near a run came in the time that it had."""
    values = seconds_to(curves, best)
    if math.isinf(median(values)):
        return f"> {curves[0].seconds[-1]:.1f} ({curves[0].excess(best.objective).min():.0e} above)"
    text = f"{median(values):.3f}"
    return text if len(values) == 1 else f"{text} ({min(values):.3f} to {max(values):.3f})"


def passes_to(curves: Sequence[LossCurve], best: Optimum) -> str:
    """Median passes to the target."""
    value = median(seconds_to(curves, best, against_passes=True))
    return "-" if math.isinf(value) else f"{value:,.0f}"


def gap_to(curves: Sequence[LossCurve]) -> str:
    """Median CPU seconds until the duality gap itself is at most the target, and so tells that the run may end."""
    ends = [next((s for s, g in zip(c.seconds, c.gap, strict=True) if g <= TARGET), math.inf) for c in curves]
    return "-" if math.isinf(median(ends)) else f"{median(ends):.3f}"


def wins(found: Found, form: str = "") -> list[bool]:
    """On which tasks DSPDC's median seconds are below those of SPDC and of SDCA, all of one form."""
    return [
        median(seconds_to(runs["DSPDC" + form], best))
        < min(median(seconds_to(runs[name + form], best)) for name in ("SPDC", "SDCA"))
        for _, best, runs in found
    ]


def shown(name: str) -> bool:
    """Whether a solver is in the plots of passes and gaps: what takes other passes, or other data only."""
    return not name.endswith("on A") or name.startswith("SAGA")


def seconds_table(found: Found) -> str:
    """A row each task, a column each solver."""
    names = list({name: None for _, _, runs in found for name in runs})
    rows = [
        [task.name, *(spent(runs[name], best) if name in runs else "" for name in names)] for task, best, runs in found
    ]
    return table(["CPU seconds to 1e-6", *names], rows)


def passes_table(found: Found) -> str:
    """Passes, and seconds to the gap that a solver knows itself."""
    names = list({name: None for _, _, runs in found for name in runs if shown(name)})
    rows = [
        [
            task.name,
            *(passes_to(runs[name], best) if name in runs else "" for name in names),
            *(gap_to(runs[name]) for name in ("DSPDC", "SPDC", "SDCA")),
        ]
        for task, best, runs in found
    ]
    return table(["passes to 1e-6", *names, *(f"s to gap 1e-6, {name}" for name in ("DSPDC", "SPDC", "SDCA"))], rows)


def verdict(found: Found) -> str:
    """Of the smooth hinge: on how many settings DSPDC is the fastest, beside how many it is to be."""
    won = {form: wins(found, form) for form in ("", " on A")}
    reached = "reached" if sum(won[""]) >= WANTED else "MISSED"
    lost = [task.name for (task, _, _), is_first in zip(found, won[""], strict=True) if not is_first]
    text = (
        f"Target {reached}: on factors, DSPDC is faster than SPDC and SDCA to 1e-6 on {sum(won[''])} of {len(found)} "
        f"settings (wanted: {WANTED})"
    )
    text += f", not on: {'; '.join(lost)}." if lost else "."
    on_rows = sum(won[" on A"])
    return f"{text} Where A is small enough to be stored, DSPDC on A is the fastest of the three on A on {on_rows}."


def picture(out: Path, name: str, found: Found) -> None:
    """Objective against seconds and passes, and gap against seconds."""
    columns = 2 if len(found) == 4 else 3
    for axis, label in (("seconds", "CPU seconds"), ("passes", "passes")):
        panels = {
            task.name: {
                solver: against(curves, axis, best.objective)
                for solver, curves in runs.items()
                if axis == "seconds" or shown(solver)
            }
            for task, best, runs in found
        }
        plot(out / f"{name}_{axis}.png", panels, label, "objective - optimum", columns)
    gaps = {
        task.name: {
            solver: [(np.array(c.seconds), np.array(c.gap)) for c in curves]
            for solver, curves in runs.items()
            if shown(solver)
        }
        for task, best, runs in found
    }
    plot(out / f"{name}_gap.png", gaps, "CPU seconds", "duality gap", columns)


def looks(path: Path, found: Found) -> None:
    """The looks at every run, as a CSV file."""
    rows = (
        [task.loss, task.name, name, number + 1, *row]
        for task, best, runs in found
        for name, curves in runs.items()
        for number, c in enumerate(curves)
        for row in thinned(list(zip(c.passes, c.seconds, c.excess(best.objective).tolist(), c.gap, strict=True)))
    )
    write_rows(path, ["loss", "task", "solver", "seed", "passes", "seconds", "excess", "gap"], rows)


def thinned(rows: list[tuple[float, ...]], most: int = 30) -> list[tuple[float, ...]]:
    """At most so many of the looks, the last among them."""
    every = -(-len(rows) // most)
    return rows[::-1][::every][::-1]


def settings(loss: str, quick: bool, longer: float) -> Found:
    """The six settings with a loss; where l2 is small, solvers on factors have longer."""
    found: Found = []
    for penalty in PENALTIES:
        for size in ((300, 20, 10, 5),) if quick else SIZES:
            task = factorized(size, penalty, loss)
            if quick:
                found.append(measure(task, size[2], 0.2, 2))
            else:
                found.append(measure(task, size[2], SECONDS, RUNS, longer if penalty == PENALTIES[1] else SECONDS))
    return found


def page(options: Namespace, name: str, title: str, found: Found, said: str, how: str) -> None:
    """Write a page, its looks and its plots."""
    picture(options.out, name, found)
    looks(options.out / f"{name}.csv", found)
    publish(
        options,
        name,
        title,
        said,
        "CPU seconds of one thread, without compilation and without the looks at objective and gap: the median of runs "
        f"with the seeds 1 to {max(len(c) for _, _, runs in found for c in runs.values())} (lowest to highest). 1e-6 "
        "is the objective above the optimum, which Newton's method finds (benchmarks/solvers/optimum.py; its duality "
        "gap is below 1e-14). A run ends there or when its time is over: in brackets, how far above the optimum it was "
        f"then; so slow a solver is run once. A pass is n iterations, or records. {how}",
        seconds_table(found),
        passes_table(found),
        f"![Objective minus optimum against CPU seconds]({name}_seconds.png)",
        f"![Objective minus optimum against passes]({name}_passes.png)",
        f"![Duality gap against CPU seconds]({name}_gap.png)",
        module="window",
    )


#: What the solvers on factorized data are.
_HOW = (
    "The settings are those of figure 1 of the DSPDC paper, m = 1. DSPDC draws one of p / q fixed random blocks; SPDC "
    "is the same code with q = p; SDCA is ours (benchmarks/solvers/dual_ascent.py), compiled likewise, in a new random "
    'order each pass. Without "on A" a row is only there as its factors, and SDCA makes it of them, O(d p); "on A" the '
    "product A is stored, n p numbers. "
)


def run(options: Namespace) -> None:
    """Write window_dspdc.md: the six settings with the smooth hinge, which is the paper's."""
    found = settings("smooth_hinge", options.quick, LONGER)
    how = f"Smooth hinge. {_HOW}"
    page(options, "window_dspdc", "DSPDC on factorized data", found, verdict(found), how)


def run_log(options: Namespace) -> None:
    """Write window_dspdc_log.md: the same with the logistic loss, which scikit-learn's SAGA has."""
    found = settings("log", options.quick, SECONDS)
    how = (
        f"Logistic loss: scikit-learn's SAGA knows no smooth hinge. {_HOW}SAGA's line is of runs of more and more "
        "passes. It is a primal method: it needs no strong convexity, and where l2 is tiny it does not slow down as "
        "methods with dual variables do."
    )
    first = [min(runs, key=lambda name: median(seconds_to(runs[name], best))) for _, best, runs in found]
    said = (
        f"On factors, DSPDC is faster than SPDC and SDCA to 1e-6 on {sum(wins(found))} of {len(found)} settings. "
        f"The fastest of all columns, setting after setting: {', '.join(first)}."
    )
    page(options, "window_dspdc_log", "DSPDC on factorized data, logistic loss", found, said, how)


def run_adult(options: Namespace) -> None:
    """Write window_a9a.md: the plain form on a9a's rows, with two penalties."""
    if not (options.data / "a9a").exists():
        print("a9a is not in --data: window_a9a is left out")
        return
    found: Found = []
    quick = options.quick
    for loss in ("smooth_hinge", "log"):
        for l2, l1 in ((1e-3, 1e-4), (1e-5, 1e-6)):
            name = f"a9a, {loss.replace('_', ' ')}, l1 {l1:g}, l2 {l2:g}"
            task = Task(name, *adult_rows(options.data), loss, l2, l1)
            task = task.first(400) if quick else task
            found.append(measure(task, 41, 0.2 if quick else SECONDS, 2 if quick else RUNS))
    won = wins(found)
    said = (
        f"DSPDC is faster than SPDC and SDCA to 1e-6 on {sum(won)} of {len(won)} problems. Without factors an "
        "iteration reads whole rows whatever share of the coefficients it updates: the paper promises no gain there."
    )
    how = (
        "32,561 rows of 123 inputs, an eighth of them not 0, as SciPy's CSR matrix for all solvers; q = 41, three "
        "blocks; SPDC, SDCA and SAGA as [on factorized data](window_dspdc.md)."
    )
    page(options, "window_a9a", "DSPDC on a9a", found, said, how)
