"""Section 7.3 of the DSG paper: kernel support vector machines on Adult, and on MNIST's 8 against 6."""

import time
from argparse import Namespace
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from river.optim.base import Scheduler
from river.optim.losses import Hinge
from sklearn.svm import SVC

from benchmarks.paper.baselines.learner import Array
from benchmarks.paper.contenders import contenders
from benchmarks.paper.deformed_eights import last_row
from benchmarks.paper.machines import GrowingMachine
from benchmarks.paper.problems import Load, Problem, adult, eights_and_sixes
from benchmarks.paper.runs import (
    CurvePoint,
    Make,
    Runs,
    after_passes,
    chosen,
    enter,
    follow,
    lines,
    misclassified,
    of,
    within,
)
from benchmarks.paper.step_sizes import CONSTANT, FALLING, best_step, listed, schedules
from benchmarks.paper.strong import FOLDS, StrongMachine, choice_table, choose
from benchmarks.paper.tables import megabytes, percent, spread, write_looks
from benchmarks.plots import curves
from benchmarks.report import publish, table
from streamkernel import KernelClassifier
from streamkernel.growth import CDSG, DSG, Growth
from streamkernel.kernels import Gaussian

#: The name of the machine whose time the others are given in the criterion SC2.
DSG_NAME = "DSG"
#: The plain machines whose step is chosen, too.
GROWTHS: dict[str, Callable[[], Growth]] = {
    DSG_NAME: DSG,
    "CDSG, cap 1": CDSG,
    "CDSG, cap 2": partial(CDSG, cap=2.0),
}
#: Looks in a pass.
LOOKS = 10
#: The name of the machine that must reach the target.
STRONG = "preconditioned blocks"


class SupportVectorSetting(NamedTuple):
    """An experiment of the section."""

    name: str  #: of its pages
    load: Load
    n_inputs: int | None  #: principal components that the paper has; None for all inputs
    batch_size: int
    block_size: int
    regularization: Callable[[int], float]  #: nu of the paper, of n rows
    costs: tuple[float, ...]  #: C of scikit-learn's exact machine; 1 / (nu n) is the paper's problem
    passes: int  #: of our plain machines; the others learn one, or as long as DSG takes for one
    candidates: tuple[StrongMachine, ...]  #: what the preconditioned machine is chosen from
    target: float  #: the error that it must reach after a pass
    published: str  #: what the paper says
    batch_sizes: tuple[int, ...] = ()  #: what B of our plain machines is chosen from, together with their step


#: Of the squared error, as in benchmarks.digits: nearly a whole solution a step, with little ridge.
_SQUARED: dict[str, Any] = {"weight": 10.0, "step": 0.8, "squared": True, "max_features": 2**16}
ADULT = SupportVectorSetting(
    "adult",
    adult,
    None,
    64,
    32,
    lambda n: 1 / (100 * n),
    (1,),
    1,
    tuple(StrongMachine(B, 256, 1, width) for B in (128, 256, 512) for width in (0.7, 1.0)),
    0.153,
    "15.3% after a pass (NORMA 15%)",
)
EIGHTS = SupportVectorSetting(
    "eights",
    eights_and_sixes,
    50,
    1_024,
    256,
    lambda n: 1 / n,
    (1,),
    5,
    (
        StrongMachine(1_024, 1_024, 4, 0.4, 50),
        StrongMachine(512, 1_024, 4, 0.4, 100),
        *(StrongMachine(256, 2**13, 1, width, n, **_SQUARED) for n, width in ((50, 0.5), (60, 0.5), (60, 0.6))),
        StrongMachine(512, 2**13, 1, 0.5, 60, **_SQUARED),
    ),
    0.0035,
    ".26% of 1.6 million rows, deformed from these ([ours of as many](paper_deformed.md))",
    batch_sizes=(64, 1_024),
)


def plain(
    setting: SupportVectorSetting, seed: int, growth: Growth, average: bool = False, step: Scheduler | None = None
) -> Make:
    """A support vector machine with B, F and nu of the paper, and plain steps."""
    return lambda problem: GrowingMachine(
        KernelClassifier(
            kernel=Gaussian(problem.bandwidth),
            loss=Hinge(),
            growth=growth,
            block_size=setting.block_size,
            batch_size=min(setting.batch_size, problem.n),
            max_features=None,
            step=step,
            regularization=setting.regularization(problem.n),
            standardize=False,
            precondition=False,
            average=average,
            seed=seed,
        )
    )


def machines(setting: SupportVectorSetting, seed: int) -> dict[str, Make]:
    """Our plain machines with nothing to choose, by name."""
    return {
        **{name: plain(setting, seed, growth()) for name, growth in GROWTHS.items()},
        "DSG, averaged": plain(setting, seed, DSG(), average=True),
    }


def with_step(setting: SupportVectorSetting, growth: Callable[[], Growth], step: Scheduler | None, seed: int) -> Make:
    """A plain machine with steps of a schedule."""
    return plain(setting, seed, growth(), step=step)


def exact(problem: Problem, cost: float) -> CurvePoint:
    """scikit-learn's SVC: LIBSVM on the whole training set."""
    began = time.process_time()
    model = SVC(C=cost, gamma=0.5 / problem.bandwidth**2, cache_size=1_000).fit(problem.X, problem.T[:, 0])
    spent = time.process_time() - began
    scores: Array = model.decision_function(problem.X_test)[:, None]
    nbytes = 4 * len(model.support_) * (problem.X.shape[1] + 1)
    return CurvePoint(problem.n, spent, misclassified(scores, problem.T_test), nbytes, 0)


def compare(
    setting: SupportVectorSetting, problem: Problem, seeds: range, rank: int, weights: tuple[float, ...]
) -> Runs:
    """Every algorithm but the preconditioned machine, for a pass and for as many seconds as DSG takes for it."""
    runs: Runs = {}
    size = min(setting.batch_size, problem.n)
    for make in machines(setting, 0).values():  # compiles
        follow(make, problem, size, 0, passes=3 * size / problem.n)
    for seed in seeds:
        for name, make in machines(setting, seed).items():
            enter(runs, problem, name, seed, follow(make, problem, size, seed, setting.passes, looks=LOOKS))
    for name, growth in GROWTHS.items():
        found = {
            B: best_step(partial(with_step, setting._replace(batch_size=B), growth), problem, B, seeds=seeds)
            for B in setting.batch_sizes or (size,)
        }
        B = min(found, key=lambda B: found[B][0])
        title, step = f"{name}, {found[B][1]}" + (f", B = {B}" if size != B else ""), schedules()[found[B][1]]
        for seed in seeds:
            make = with_step(setting._replace(batch_size=B), growth, step, seed)
            enter(runs, problem, title, seed, follow(make, problem, B, seed, setting.passes, looks=LOOKS))
    budget = seconds_of_dsg(runs, problem)
    for name, makes in contenders(setting.regularization(problem.n), rank, False, weights):
        label, make = chosen(makes, problem, size)
        title = f"{name}, {label}" if len(makes) > 1 else name
        enter(runs, problem, title, 1, follow(make, problem, size, 1, seconds=budget, looks=LOOKS))
    for cost in setting.costs:
        enter(runs, problem, f"scikit-learn's SVC, C = {cost:g}", 1, [exact(problem, cost)])
    return runs


def seconds_of_dsg(runs: Runs, problem: Problem) -> float:
    """What DSG takes for a pass, the mean of the seeds."""
    return float(np.mean([after_passes(looks, problem, 1).seconds for looks in of(runs, problem.name, DSG_NAME)]))


def rows_of(runs: Runs, problem: Problem, passes: int) -> list[list[str]]:
    """A row each algorithm, after a pass and when DSG's pass ended; and one of ours after all of its passes."""
    budget = seconds_of_dsg(runs, problem)
    rows, later = [], []
    for name in dict.fromkeys(name for _, name, _ in runs):
        found = of(runs, problem.name, name)
        at = [look.error for looks in found if (look := within(looks, budget)) is not None]
        once = [after_passes(looks, problem, 1) for looks in found]
        rows.append([*cells(name, once), percent(at) if len(at) == len(found) else "-"])
        if passes > 1 and once[0].n_features and found[0][-1].records > (passes - 1) * problem.n:
            later.append([*cells(f"{name}, {passes} passes", [looks[-1] for looks in found]), ""])
    return rows + later


def cells(name: str, looks: list[CurvePoint]) -> list[str]:
    """Name, error, seconds and memory of looks at the same moment, one a seed."""
    return [
        name,
        percent([look.error for look in looks]),
        spread([look.seconds for look in looks], 1),
        megabytes(looks[0].nbytes),
        megabytes(looks[0].stored),
    ]


HEADER = ["algorithm", "test error %", "CPU seconds", "memory MB", "features stored MB", "error % at DSG's time"]


def run(setting: SupportVectorSetting, options: Namespace) -> None:
    """Write the page, the looks and the plot of an experiment of the section."""
    quick, out, name = options.quick, options.out, f"paper_{setting.name}"
    loaded = setting.load(options.data, quick)
    title = f"Kernel support vector machines: {setting.load.__name__.replace('_', ' ')} (DSG paper, 7.3)"
    if loaded is None:
        publish(options, name, title, "Not run: its file is not in --data.", module="paper")
        return
    seeds, rank = (range(1, 2), 32) if quick else (range(1, 4), 256)
    weights = (1.0, 100.0) if quick else (1.0, 10.0, 100.0, 1000.0)
    candidates = setting.candidates[1:3] if quick else setting.candidates
    strong, wrong = choose(candidates, loaded)
    problem = loaded if setting.n_inputs is None else loaded.first(setting.n_inputs)
    found: Runs = {}
    part = strong.of(loaded)
    for seed in seeds:
        enter(found, part, STRONG, seed, follow(strong.make(seed), part, strong.rows_a_step(part.n), seed))
    found |= compare(setting, problem, seeds, rank, weights)
    errors = [after_passes(looks, problem, 1).error for looks in of(found, problem.name, STRONG)]
    write_looks(out / f"{name}.csv", found)
    curves(out / f"{name}.png", lines(found), "CPU seconds", "test error")
    reached = "" if quick else "reached" if np.mean(errors) <= setting.target else "missed"
    together = f", and B from {listed(setting.batch_sizes)} with it" if setting.batch_sizes else ""
    nu, each = setting.regularization(problem.n), ", ".join(f"{error:.2%}" for error in errors)
    publish(
        options,
        name,
        title,
        f"One thread. {problem.name}: {problem.n:,} rows of {problem.X.shape[1]} numbers, {len(problem.X_test):,} to "
        f"test. The paper: {setting.published}.",
        table(
            ["one pass, by preconditioned blocks", "target", "test error %", "of each seed", ""],
            [[problem.name, f"<= {100 * setting.target:g}%", percent(errors), each, reached]],
        ),
        f"Its settings are those with the fewest errors in a cross-validation on the training rows, in {FOLDS} parts, "
        "each learned once; *inputs*, if not all, are principal components. The test rows have no part in it.",
        choice_table(candidates, wrong, loaded),
        "## Beside other algorithms",
        f"All learn a pass of mini-batches of {min(setting.batch_size, problem.n)} (the criterion SC1) if no other B "
        f"is named; bandwidth {problem.bandwidth:.2f}, the median distance, F = {setting.block_size}, nu = {nu:.2g}, "
        f"the hinge, r = {rank} stored frequencies, landmarks or support vectors: the paper's. Its nu is C = "
        f"{1 / nu / problem.n:g} of SVC. Other parameters are chosen on a fifth of the training rows, which do not "
        f"learn: the step of DSG and CDSG from {listed(CONSTANT)} and {listed(FALLING)} / sqrt(t), by the mean of "
        f"three seeds after one pass{together}. Without a named step they have the default one. `CDSG()` is cap 1, in "
        "which reused blocks take steps as long as new ones; cap 2 is the paper's CDSG. Mean ± deviation over the "
        f"seeds 1 to {len(seeds)} of ours, one seed of the others. Memory is what predictions are made of; *features "
        "stored*, what it would be to store ours of all training rows. The last column is the error when DSG's pass "
        "ended (SC2), a dash where nothing was learned by then. Preparing Nystrom's features is counted.",
        table(HEADER, rows_of(found, problem, setting.passes) + (last_row(out) if setting is EIGHTS else [])),
        f"![Test error against seconds]({name}.png)",
        module="paper",
    )
