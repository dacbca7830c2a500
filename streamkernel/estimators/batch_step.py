"""A batch step of an estimator; one that fails leaves the estimator as it was."""

from collections.abc import Sequence
from typing import Any, TypeVar

from streamkernel.batch.chunk import BatchChunk
from streamkernel.batch.rows import BatchRows, LocalRows
from streamkernel.records.frames import Frame
from streamkernel.records.results import BatchResult
from streamkernel.records.target_list import target_list

RowsT = TypeVar("RowsT", bound=BatchRows)


def take_batch_step(estimator: Any, rows: RowsT) -> RowsT:
    """Have an estimator learn rows, wherever they are, which then know what was predicted of them before."""
    before = estimator.__getstate__()
    try:
        estimator._learn_batch(rows)
    except BaseException:
        estimator.__setstate__(before)
        raise
    return rows


def step_here(estimator: Any, X: Any, y: Any, w: Sequence[float] | None) -> BatchResult:
    """Have an estimator learn a batch in this process, and give what was predicted of its rows before."""
    machine = estimator._machine
    n_inputs, n_targets = machine.inputs.n_ignored, machine.targets.n_limited
    rows = take_batch_step(estimator, LocalRows([BatchChunk(Frame(X), target_list(y), w)]))
    # By the machine of now, which may be another than before; past the estimator: the line that learns.
    estimator._machine._encoder.warn_of_ignored(n_inputs, n_targets, stacklevel=4)
    return rows.scored[0].result
