"""The batch step of least squares: what is predicted and summed where the rows are becomes one step of the machine.

The first rows fix the moments of inputs and targets, by a sample, and the inputs the bandwidth. Every batch is scaled
by the moments of those before it, into which its own sample is taken afterwards; new inputs by those of their own
batch. After the first step, before which no expert could say anything, the experts are weighed by halves of the sample.
"""

import numpy as np

from streamkernel.batch.admission import count_arrivals, score_admitted
from streamkernel.batch.chunk import BatchChunk, encode
from streamkernel.batch.least_squares_machine import LeastSquaresMachine
from streamkernel.batch.passes import AT_ONCE, ScoredChunk
from streamkernel.batch.rows import BatchRows, ScoredBatch
from streamkernel.batch.sums import LeastSquaresSums
from streamkernel.records.results import BatchResult
from streamkernel.records.targets import Encoded


def learn_least_squares_batch(machine: LeastSquaresMachine, batch: BatchRows) -> ScoredBatch:
    """Take one step on the rows of a batch, and give what is known of them."""
    n_inputs = machine.columns.n_inputs
    scored, columns = score_admitted(machine, batch, score_least_squares)
    sample = scored.sample.drawn()
    if sample.targets:
        begins = machine.make_room(sample.values, sample.targets, len(machine.inputs))
        if begins or columns:
            scored = batch.score(machine, score_least_squares)
        machine.take_step(scored.sums)
        if begins:
            machine.judge(sample.values, sample.targets, sample.weights, scored.sums.n_counted)
        else:
            machine.take_moments(sample.values, sample.targets, n_inputs)
    count_arrivals(machine, scored, columns)
    return scored


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
