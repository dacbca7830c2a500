"""The batch step of least squares: what is predicted and summed where the rows are becomes one step of the machine.

The first rows fix the moments of inputs and targets, by a sample, and the inputs the bandwidth. Every batch is scaled
by the moments of those before it, into which its own sample is taken afterwards; new inputs by those of their own
batch. After the first step, before which no expert could say anything, the experts are weighed by halves of the sample.
"""

from streamkernel.batch.admission import count_arrivals, score_admitted
from streamkernel.batch.least_squares_machine import LeastSquaresMachine
from streamkernel.batch.least_squares_passes import score_least_squares
from streamkernel.batch.rows import BatchRows, ScoredBatch


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
