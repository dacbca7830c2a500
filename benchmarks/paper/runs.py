"""Runs of a learner over a problem: mini-batches in shuffled order, and looks at its error as it goes on.

Seconds are CPU seconds of making the learner and of learning, in one thread, without the looks.
"""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.paper.baselines.learner import Array, BatchLearner
from benchmarks.paper.machines import GrowingMachine
from benchmarks.paper.problems import Problem

#: Looks of each run, by problem, algorithm and seed.
Runs = dict[tuple[str, str, int], list["CurvePoint"]]
#: A learner that has learned nothing, of a problem.
Make = Callable[[Problem], BatchLearner]
#: From scores and targets of the test set to what is shown.
Score = Callable[[Array, Array], float]
#: Passes after which a run ends whatever its seconds.
_MOST_PASSES = 30


@dataclass(frozen=True)
class CurvePoint:
    """What a learner had come to at a moment of its run."""

    records: int
    seconds: float  #: CPU seconds of learning
    error: float  #: of the test set
    nbytes: int  #: of what predictions are made of
    stored: int  #: bytes of the features of all training rows, had they been stored; 0 where the learner makes none
    work: int = 0  #: records x features of a growing machine
    n_features: int = 0
    objective: float = math.nan  #: mean loss on the first 2,000 training rows, where it is asked for


def misclassified(scores: Array, T: Array) -> float:
    """The share of rows whose class is not the one predicted."""
    if T.shape[1] == 1:
        return float(np.mean((scores > 0) != (T > 0)))
    return float(np.mean(scores.argmax(axis=1) != T.argmax(axis=1)))


def squared(scores: Array, T: Array) -> float:
    """The mean squared error."""
    return float(np.mean((scores - T) ** 2))


def follow(
    make: Make,
    problem: Problem,
    batch_size: int,
    seed: int,
    passes: float = 1.0,
    seconds: float = 0.0,
    looks: int = 16,
    score: Score = misclassified,
    objective: Score | None = None,
) -> list[CurvePoint]:
    """Learn until so many passes are done and so many seconds have passed; a look at each share of a pass.

    Parameters
    ----------
    make
        Makes the learner.
    problem
        What it learns.
    batch_size
        B, records of a mini-batch.
    seed
        Of the order of the records.
    passes, seconds
        The least; 30 passes are the most.
    looks
        In a pass.
    score
        Of the test set. Defaults to the error of classes.
    objective
        Of the first 2,000 training rows; None for none.

    """
    began = time.process_time()
    learner = make(problem)
    spent = time.process_time() - began
    found: list[CurvePoint] = []
    steps, work = 0, 0
    per_pass = max(problem.n // batch_size, 1)
    batches = mini_batches(problem.n, batch_size, seed)
    while steps < min(passes, _MOST_PASSES) * per_pass or (spent < seconds and steps < _MOST_PASSES * per_pass):
        rows = next(batches)
        X, T = problem.X[rows], problem.T[rows]
        before = time.process_time()
        learner.learn(X, T, rows)
        spent += time.process_time() - before
        steps += 1
        n_features = features_of(learner)
        work += batch_size * n_features
        if steps * looks // per_pass > (steps - 1) * looks // per_pass:
            found.append(
                CurvePoint(
                    steps * batch_size,
                    spent,
                    score(learner.scores(problem.X_test), problem.T_test),
                    learner.nbytes,
                    4 * problem.n * 2 * n_features,  # a cosine and a sine each
                    work,
                    n_features,
                    objective(learner.scores(problem.X[:2_000]), problem.T[:2_000]) if objective else math.nan,
                )
            )
    return found


def enter(runs: Runs, problem: Problem, name: str, seed: int, looks: list[CurvePoint]) -> None:
    """Put a run beside the others and print its end, for a whole experiment takes long."""
    runs[problem.name, name, seed] = looks
    last = looks[-1]
    print(f"{problem.name}; {name}; seed {seed}: {last.error:.4g} after {last.records:,} records, {last.seconds:.1f} s")


def lines(runs: Runs, titles: str = "{}") -> dict[str, dict[str, tuple[list[float], list[float]]]]:
    """Return the error against seconds of each algorithm's first seed, by problem, as `plots.curves` takes them."""
    found: dict[str, dict[str, tuple[list[float], list[float]]]] = {}
    for (problem, name, seed), looks in runs.items():
        if seed == 1:
            xy = [look.seconds for look in looks], [look.error for look in looks]
            found.setdefault(titles.format(problem), {})[name] = xy
    return found


def of(runs: Runs, title: str, name: str) -> list[list[CurvePoint]]:
    """The runs of an algorithm over the problem of a name, one a seed."""
    return [looks for (problem, other, _), looks in runs.items() if (problem, other) == (title, name)]


def features_of(learner: BatchLearner) -> int:
    """Features of a growing machine; 0 of other learners."""
    return learner.model.n_features if isinstance(learner, GrowingMachine) else 0


def mini_batches(n: int, batch_size: int, seed: int) -> Iterator[Array]:
    """Rows of pass after pass, each in another order, cut into mini-batches without end."""
    rng = np.random.default_rng(seed)
    order = np.zeros(0, np.int64)
    while True:
        while len(order) < batch_size:
            order = np.concatenate([order, rng.permutation(n)])
        yield order[:batch_size]
        order = order[batch_size:]


def after_passes(looks: Sequence[CurvePoint], problem: Problem, passes: float) -> CurvePoint:
    """The last look that so many passes hold: the rows that fill no mini-batch are not waited for."""
    return [look for look in looks if look.records <= passes * problem.n][-1]


def within(looks: Sequence[CurvePoint], seconds: float) -> CurvePoint | None:
    """The last look within a time, or None."""
    found = [look for look in looks if look.seconds <= seconds]
    return found[-1] if found else None


def chosen(
    makes: Sequence[tuple[str, Make]], problem: Problem, batch_size: int, seed: int = 0, score: Score = misclassified
) -> tuple[str, Make]:
    """The one with the least error on every fifth training row after a pass over the others."""
    if len(makes) == 1:
        return makes[0]
    part = problem.split(np.arange(problem.n) % 5 == 0)
    errors = [follow(make, part, batch_size, seed, looks=1, score=score)[-1].error for _, make in makes]
    return makes[int(np.argmin(errors))]
