"""The preconditioned machine of a comparison, and its choice by cross-validation on the training rows."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from river.optim.schedulers import Constant

from benchmarks.digit_runs import SquaredError
from benchmarks.paper.machines import GrowingMachine
from benchmarks.paper.problems import Problem
from benchmarks.paper.runs import Make, follow
from benchmarks.report import table
from streamkernel import KernelClassifier
from streamkernel.growth import DSG
from streamkernel.kernels import Gaussian

#: Parts of the training rows in cross-validation.
FOLDS = 3


class StrongMachine(NamedTuple):
    """A growing classifier with preconditioned blocks."""

    batch_size: int  #: the least B
    block_size: int
    blocks: int  #: a step
    width: float  #: the bandwidth, in median distances
    n_inputs: int | None = None  #: principal components that it learns from; None for all inputs
    weight: float = 1.0  #: of every record; the ridge of a step is divided by it
    step: float | None = None  #: in solutions of its ridge regression; None for the default rule
    squared: bool = False  #: whether the loss is the squared error of one-hot targets in place of the softmax
    max_features: int | None = None

    def of(self, problem: Problem) -> Problem:
        """The problem with the inputs and the bandwidth that it learns with."""
        part = problem if self.n_inputs is None else problem.first(self.n_inputs)
        return part.with_bandwidth(self.width * part.bandwidth)

    def rows_a_step(self, n: int) -> int:
        """B, so much above the least that a pass over n rows leaves next to none out."""
        return n // max(n // self.batch_size, 1)

    def make(self, seed: int) -> Make:
        """The machine with a seed."""
        return lambda problem: GrowingMachine(
            KernelClassifier(
                kernel=Gaussian(problem.bandwidth),
                loss=SquaredError() if self.squared else None,
                growth=DSG(),
                block_size=self.block_size,
                batch_size=self.rows_a_step(problem.n),
                max_features=self.max_features,
                step=None if self.step is None else Constant(self.step),
                standardize=False,
                cache_bytes=2**29,
                precondition=True,
                blocks_per_step=self.blocks,
                seed=seed,
            ),
            self.weight,
        )

    def row(self) -> list[str]:
        """The attributes, in cells."""
        return [
            "squared error" if self.squared else "softmax",
            f"{self.batch_size:,}",
            f"{self.block_size:,}",
            str(self.blocks),
            "none" if self.max_features is None else f"{self.max_features:,}",
            f"{self.width:g}",
            "all" if self.n_inputs is None else str(self.n_inputs),
            f"{self.weight:g}",
            "by default" if self.step is None else f"{self.step:g}",
        ]


def wrong_rows(candidate: StrongMachine, problem: Problem) -> int:
    """Training rows that are not recognized by a machine that learned the other parts once: three machines."""
    part = candidate.of(problem)
    fold = np.arange(part.n) % FOLDS
    wrong = 0.0
    for number in range(FOLDS):
        held = fold == number
        rest = part.split(held)
        looks = follow(candidate.make(number), rest, candidate.rows_a_step(rest.n), number, looks=1)
        wrong += looks[-1].error * held.sum()
    return round(wrong)


def choose(candidates: Sequence[StrongMachine], problem: Problem) -> tuple[StrongMachine, list[int]]:
    """The candidate with the fewest wrong rows, the first of equals, and the wrong rows of all."""
    wrong = []
    for candidate in candidates:
        wrong.append(wrong_rows(candidate, problem))
        print(f"{problem.name}; {candidate}: {wrong[-1]} of {problem.n:,} training rows wrong", flush=True)
    return candidates[int(np.argmin(wrong))], wrong


def choice_table(candidates: Sequence[StrongMachine], wrong: Sequence[int], problem: Problem) -> str:
    """The candidates and their errors on training rows."""
    rows = [
        [*candidate.row(), f"{n:,}", f"{100 * n / problem.n:.2f}"]
        for candidate, n in zip(candidates, wrong, strict=True)
    ]
    settings = ["loss", "B", "F", "blocks a step", "`max_features`", "median distances", "inputs", "weight", "step"]
    return table([*settings, "wrong rows", "%"], rows)
