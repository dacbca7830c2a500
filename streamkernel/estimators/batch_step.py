"""A batch step of an estimator on rows in this process; one that fails leaves the estimator as it was."""

from collections.abc import Callable, Sequence
from typing import Any

from streamkernel.batch.chunk import BatchChunk
from streamkernel.batch.rows import BatchRows, LocalRows, ScoredBatch
from streamkernel.estimators.base import StreamEstimator
from streamkernel.records.frames import Frame
from streamkernel.records.results import BatchResult
from streamkernel.records.target_list import target_list


def take_batch_step(
    estimator: StreamEstimator,
    learn: Callable[[Any, BatchRows], ScoredBatch],
    X: Any,
    y: Any,
    w: Sequence[float] | None,
) -> BatchResult:
    """Have the machine of an estimator learn a batch, and give what was predicted of its rows before."""
    frame = Frame(X)
    before = estimator.__getstate__()
    rows = LocalRows([BatchChunk(frame, target_list(y), w)])
    try:
        learn(estimator._machine, rows)
    except BaseException:
        estimator.__setstate__(before)
        raise
    return rows.scored[0].result
