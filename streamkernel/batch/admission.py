"""What any batch step does with the rows before and after the step: new inputs and labels, moments and counts.

Whatever depends on the order of rows is taken from the sample of the batch.
"""

from typing import Any

from streamkernel.batch.rows import BatchMachine, BatchRows, Score, ScoredBatch
from streamkernel.batch.sample import BatchSample
from streamkernel.records.numbers import Numbers
from streamkernel.records.vocabulary import admissible, count_vocabulary


def score_admitted(machine: BatchMachine, batch: BatchRows, score: Score) -> tuple[ScoredBatch, list[list[Any]]]:
    """Score a batch whose new inputs and labels have joined the machine, as far as there is room; and the new inputs.

    The inputs are as `InputColumns` yields them.
    """
    scored = batch.score(machine, score)
    columns, labels = admissible(machine.inputs, machine.targets, scored.vocabulary)
    machine.inputs.add(columns)
    if columns or labels:
        machine.targets.admit(machine.targets.prepare(labels)[0])
        scored = batch.score(machine, score)
    return scored, columns


def take_targets(machine: BatchMachine, sample: BatchSample) -> None:
    """Take the targets of a sample into the moments of numbers."""
    if isinstance(machine.targets, Numbers):
        machine.targets.admit(sample.targets)


def count_arrivals(machine: BatchMachine, scored: ScoredBatch, columns: list[list[Any]]) -> None:
    """Count what a batch repeated, and what of it was ignored or cut; `columns` are the inputs that came with it."""
    count_vocabulary(machine.inputs, machine.targets, scored.vocabulary, columns)
    machine.targets.n_limited += scored.n_clipped
