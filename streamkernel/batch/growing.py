"""The batch step of a growing machine: one step of DSG, UDSG or CDSG on all rows given.

The first rows fix what a machine begins with, by a sample: the moments of inputs and targets, a bandwidth that is left
to the data, the scale of features without a bound and the first step size. Every batch is scaled by the moments of
those before it, into which its own sample is taken afterwards.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from streamkernel.batch.chunk import BatchSample
from streamkernel.batch.passes import BlockPass, GradientPass, GramPass, Move, ScorePass
from streamkernel.batch.rows import BatchRows, ScoredBatch, count_arrivals, score_admitted, take_targets
from streamkernel.batch.sums import BlockSums, GradientSums, whole
from streamkernel.compute.cholesky import factorize, solve
from streamkernel.compute.features import largest_eigenvalue
from streamkernel.finite import NotFiniteError
from streamkernel.growth.feature_scale import begin_expansion
from streamkernel.growth.machine import Machine
from streamkernel.losses import curvature
from streamkernel.records.classes import Classes, TwoSides
from streamkernel.records.learning_targets import LearningTargets
from streamkernel.records.rows import Rows
from streamkernel.records.targets import Numbers
from streamkernel.records.vocabulary import known_labels
from streamkernel.state import Array

#: Rows of the sample by which a kernel is measured: its matrix has this number of rows and columns.
MEASURED = 512


@dataclass(frozen=True)
class _StepRecords:
    """The rows of a batch as the choice of a block sees them."""

    machine: Machine
    batch: BatchRows
    sums: GradientSums
    sample: BatchSample

    @property
    def size(self) -> int:
        return self.sums.n

    @cached_property
    def rows(self) -> Array:
        return scaled(self.machine, self.sample.values[:MEASURED])

    @property
    def keys(self) -> Array:
        return self.machine.inputs.columns.keys

    @property
    def mean_gradient(self) -> Array:
        return self.sums.gradient / self.sums.n

    @property
    def largest_gradient(self) -> float:
        return self.sums.gradient_norm

    @property
    def largest_weight(self) -> float:
        return self.sums.weight

    def largest_eigenvalue(self, block: int) -> float:
        gram = self.batch.reduce(GramPass(block)).gram
        return float(largest_eigenvalue(whole(gram) / self.sums.n))


def learn_batch(machine: Machine, batch: BatchRows) -> ScoredBatch:
    """Take one step on the rows of a batch, and give what is known of them.

    A machine that has yet to choose its bandwidth, and is given fewer rows than that takes, learns them one by one.

    ValueError: A row cannot be used, or the machine is refitted on a window of records; it is spoilt then.
    NotFiniteError: Kernel, loss, step schedule or policy gave what is not finite; the machine is spoilt then.
    """
    check_window(machine)
    before = machine.targets.admit([None]).before[0]
    n_columns, updates = len(machine.inputs), machine.updates
    block = _foreseen(machine, batch, 0) if machine.is_ready else None
    scored, columns = score_admitted(machine, batch, ScorePass(before, machine.is_ready, block, updates.preconditioned))
    sample, scaler = scored.sample.drawn(), machine.inputs.scaler
    if sample.targets and machine.warm_up is not None and scored.sums.n < machine.warm_up.room:
        scored = _scored_beforehand(machine, batch, sample, ScorePass(before))
        machine.learn_rows(Rows.known(sample.values), sample.targets, sample.weights)
    elif sample.targets:
        begins = _begin(machine, sample)
        if not begins and columns:
            scaler.take(sample.values, slice(n_columns, None))
        if begins or columns:
            block = _foreseen(machine, batch, 0)
            scored = batch.score(machine, ScorePass(before, True, block, updates.preconditioned))
        _take_step(machine, batch, scored.sums, sample, block)
        if not begins:
            scaler.take(sample.values, slice(n_columns))
            take_targets(machine, sample)
    count_arrivals(machine, scored, columns)
    return scored


def check_window(machine: Machine) -> None:
    """Refuse a machine that is refitted on a window of records, which no batch step fills: ValueError."""
    if machine.window is not None:
        raise ValueError(
            "a WindowRefit fills its window record by record and takes no batch steps: call batch_step of the "
            "model alone"
        )


def scaled(machine: Machine, values: Array) -> Array:
    """Encoded values scaled as of now, of the expansion's dtype."""
    return np.ascontiguousarray(machine.inputs.scaler.as_of_now(values).astype(machine.expansion.dtype))


def _scored_beforehand(machine: Machine, batch: BatchRows, sample: BatchSample, score: ScorePass) -> ScoredBatch:
    """The rows as they are before they are learned one by one, their losses by the scale of targets that they have."""
    targets = machine.targets
    if not isinstance(targets, Numbers):
        return batch.score(machine, score)
    moments = targets.moments.copy()
    targets.admit(sample.targets)
    scored = batch.score(machine, score)
    targets.moments[:] = moments
    return scored


def _begin(machine: Machine, sample: BatchSample) -> bool:
    """Fix what the first rows decide; False where that was done."""
    expansion = machine.expansion
    if machine.warm_up is None and expansion.n_blocks:
        return False
    machine.inputs.scaler.take(sample.values, slice(None))
    if machine.warm_up is not None:
        targets = machine.targets
        labels = list(known_labels(targets)) if isinstance(targets, Classes | TwoSides) else []
        machine.begin_anew(sample.values)
        targets.admit(labels)
        machine.inputs.scaler.take(sample.values, slice(None))
    take_targets(machine, sample)
    if not expansion.n_blocks:
        begin_expansion(expansion, scaled(machine, sample.values), machine.inputs.columns.keys)
    return True


def _foreseen(machine: Machine, batch: BatchRows, number: int) -> int | None:
    """The block that an update of the next step will most likely touch, where it helps to know it before."""
    updates = machine.updates
    t = machine.history.t * updates.blocks_per_step + number
    return updates.choice.foreseen(t) if batch.foresees and number < updates.blocks_per_step else None


def _take_step(
    machine: Machine, batch: BatchRows, sums: GradientSums, sample: BatchSample, foreseen: int | None
) -> None:
    """Update one block after the other; the sums are with those of the block that was foreseen."""
    updates, history, expansion, targets = machine.updates, machine.history, machine.expansion, machine.targets
    K = targets.n_outputs
    expansion.widen(K)
    history.widen(K)
    learning = targets if isinstance(targets, LearningTargets) else None
    if learning is not None:
        learning.take_observed(sums.n, sums.observed)
    moves: list[Move] = []
    for number in range(updates.blocks_per_step):
        if moves or learning is not None:
            foreseen = _foreseen(machine, batch, number)
            sums = batch.reduce(GradientPass(targets, tuple(moves), foreseen, updates.preconditioned))
        records = _StepRecords(machine, batch, sums, sample)
        update = updates.choice.choose(history.t * updates.blocks_per_step + number, records)
        shrink = updates.shrink(update.decay)
        found = None
        if sums.n_pulling and update.block == foreseen:
            found = sums.block
        elif sums.n_pulling:
            found = batch.reduce(BlockPass(update.block, targets, tuple(moves), updates.preconditioned))
        expansion.decay(shrink)
        history.decay(shrink)
        if learning is not None:
            learning.take_slope(update.decay * updates.choice.kappa * (sums.slope / sums.n))
        if found is None:
            break
        G = _solution(machine, found) if updates.preconditioned else found.gradient / sums.n
        moves.append(Move(update.block, shrink, updates.move(update, G, records.mean_gradient)))
    history.end_step(sums.n)
    machine.end_batch(sums.n)


def _solution(machine: Machine, sums: BlockSums) -> Array:
    """(Phi^T W Phi + r I)^-1 Phi^T W g / L of a block, as `preconditioned_gradient` has it, (K, D)."""
    ridge = sums.squares / sums.weight if sums.weight else 0.0
    if not ridge:
        return np.zeros_like(sums.gradient)
    if math.isfinite(ridge):
        C, x = sums.gram.copy(), sums.gradient.copy()
        np.fill_diagonal(C, C.diagonal() + ridge)
        factorize(C)
        solve(C, x)
        if np.isfinite(x).all():
            return np.asarray(x / curvature(machine.targets.loss))
    raise NotFiniteError(machine.updates.too_large)
