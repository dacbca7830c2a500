"""A segment of records with numbers for targets through all experts, against the twin of whole matrices."""

import numpy as np
import pytest

from streamkernel.compute import number_pass as kernels
from streamkernel.compute.experts import Mixture
from streamkernel.compute.memory import NUMBER_EXPERTS
from streamkernel.compute.moments import SIZE
from streamkernel.compute.number_pass import MAGNITUDES, RESIDUALS
from streamkernel.compute.number_pass import MEDIAN_SIZE as MEDIAN
from tests import naive
from tests.compute import passes
from tests.compute.passes import MEMORY, TREES, Stream

LINEAR_DRIFTS = np.array([0.0, 1e-3])
#: (D, L, trees, memory, past, absolute): either loss and either E with no trees nor memory, one of them, and both.
CASES = [
    (1, None, 0, 0, 0, False),
    (1, 1, TREES, 0, 0, True),
    (5, 3, 0, MEMORY, 0, True),
    (9, 9, TREES, MEMORY, 1, False),
    (12, None, TREES, MEMORY, 0, True),
    (12, None, 0, MEMORY, 1, False),
    (5, 3, 0, 0, 1, True),
    (5, None, TREES, 0, 0, False),
]
BOTH = pytest.mark.parametrize(
    ("n_trees", "memory", "n_past"), [(0, 0, 0), (TREES, 0, 0), (0, MEMORY, 0), (TREES, MEMORY, 0), (TREES, MEMORY, 1)]
)


def _stream(D, L, n_trees, memory, n_past=0, dtype=np.float32, absolute=False):
    """Targets with waves, a step that trees see and a level that moves; a few records have none."""
    rng = np.random.default_rng(D)
    Phi, X, values = passes.records(rng, D)
    targets = 50 + 7 * np.sin(Phi.sum(axis=1)) + 5 * (np.nan_to_num(values[:, 0]) > 0.3) + rng.normal(size=len(Phi))
    targets[100:] += 20
    targets[rng.random(len(Phi)) < 0.2] = np.nan
    forest = passes.forest_of(1, n_trees, 1)
    matrices, T = passes.heads_and_linear(D, L, 1, scales=2), len(forest.targets)
    n_experts = 2 * 3 + len(matrices[5]) + 2 * T + 1 + (len(NUMBER_EXPERTS) if memory else 0)
    n_last = 1 + n_past + len(passes.STACK_DRIFTS)
    past = 60 + 5 * rng.normal(size=(len(Phi), n_past))
    sizes = 1 + T, SIZE, SIZE, n_experts + n_last, 2, 3, 1 + RESIDUALS, SIZE, 1 + MAGNITUDES, 2, MEDIAN * absolute
    matrices += passes.stacks_of(n_experts + n_past)
    state = (*matrices, *(np.zeros(size) for size in sizes), *passes.memory_of(memory, dtype), *forest)
    return Stream(Phi, X, values, targets, rng.uniform(0.2, 3, len(Phi)), past, state)


def arguments(matrices, others, memory, forest):
    """The experts as `pass_numbers` has them."""
    levels, moments, linear_moments, losses, squared_errors, block, residuals, *asinh, median = others
    errors = squared_errors, residuals
    statistics = kernels.TargetStatistics(moments, linear_moments, levels, *errors, tuple(asinh), median)
    mixture = Mixture(losses, passes.prior_of(losses), block, 2.0)
    experts = *passes.named(matrices, LINEAR_DRIFTS), forest, memory
    return *experts, mixture, passes.stacks(matrices), statistics


def _through(stream):
    """Copies of the state after the segment, and the predictions."""
    matrices, others, memory, forest = passes.copied(stream.state)
    out = np.full((len(stream.Phi), 3), np.nan)
    kernels.pass_numbers(*stream[:5], *passes.plain(*arguments(matrices, others, memory, forest)), stream.past, out)
    return (*matrices, *others, *memory, *forest), out


@pytest.mark.parametrize("absolute", [False, True])
@pytest.mark.parametrize("error", [0.0, -3.0, 5.9, 6.1, 1e200])
def test_capped_error(error, absolute):
    variance = 9.0
    with np.errstate(over="ignore"):
        expected = naive.capped_error(np.float64(error), variance, absolute)
    assert kernels.capped_error(error, variance, absolute) == pytest.approx(expected, rel=1e-15)
    assert expected <= (2 if absolute else 4)


@pytest.mark.parametrize(("D", "L", "n_trees", "memory", "n_past", "absolute"), CASES)
def test_pass_numbers(D, L, n_trees, memory, n_past, absolute):
    stream = _stream(D, L, n_trees, memory, n_past, absolute=absolute)
    matrices, others, _, _ = passes.copied(stream.state)
    ensembles, remembered = passes.ensembles_of(1, n_trees, 1), passes.memory_twin(memory)
    *twins, predictions = naive.pass_numbers(
        *stream[:5], *arguments(matrices, others, remembered, ensembles), stream.past
    )
    state, out = _through(stream)
    np.testing.assert_allclose(out, predictions, rtol=1e-8, atol=1e-8)
    passes.assert_as_the_twins(state, twins)
    passes.assert_the_forest_is(state, ensembles)
    passes.assert_the_memory_is(state, remembered, rtol=0)
    assert all(ensemble.grown > TREES for ensemble in ensembles)


@BOTH
def test_what_is_only_predicted_changes_nothing(n_trees, memory, n_past):
    passes.assert_what_is_only_predicted_changes_nothing(
        _through, _stream(5, 3, n_trees, memory, n_past), no_truth=np.nan
    )


@BOTH
def test_nothing_is_read_above_the_diagonal(n_trees, memory, n_past):
    passes.assert_nothing_is_read_above_the_diagonal(_through, _stream(7, 4, n_trees, memory, n_past))
