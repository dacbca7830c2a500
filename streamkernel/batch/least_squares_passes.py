"""The pass of a batch step of least squares: rows are encoded and predicted, and what is learned of them is summed.

As the passes of a growing machine, it changes nothing; one is enough, and no row is kept for another.
"""

import numpy as np

from streamkernel.batch.chunk import BatchChunk, encode
from streamkernel.batch.least_squares_machine import LeastSquaresMachine
from streamkernel.batch.passes import AT_ONCE, ScoredChunk
from streamkernel.batch.sums import LeastSquaresSums
from streamkernel.records.results import BatchResult
from streamkernel.records.targets import Encoded


def score_least_squares(machine: LeastSquaresMachine, chunk: BatchChunk) -> ScoredChunk:
    """Encode and predict a chunk, and take its sums."""
    encoded = encode(machine.inputs, machine.targets, chunk)
    before = machine.known_before(len(encoded.y))
    results: list[BatchResult] = []
    sums: list[LeastSquaresSums] = []
    for start in range(0, max(len(encoded.y), 1), AT_ONCE):
        some = slice(start, start + AT_ONCE)
        of_targets = Encoded(encoded.y[some], before[some])
        result, of_rows = machine.predict_and_sum(encoded.values[some], of_targets, encoded.weights[some])
        results.append(result)
        sums.append(of_rows)
    whole = BatchResult(
        Encoded(encoded.y, before),
        np.concatenate([part.predictions for part in results]),
        np.concatenate([part.losses for part in results]),
    )
    return ScoredChunk(encoded, whole, None, LeastSquaresSums.total(sums))
