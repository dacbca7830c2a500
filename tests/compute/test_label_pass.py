"""A segment of classified records through all experts, against the twin that goes through whole matrices."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamkernel.compute import label_pass as kernels
from streamkernel.compute.experts import Mixture
from streamkernel.compute.memory import LABEL_EXPERTS
from tests import naive
from tests.compute import passes
from tests.compute.passes import MEMORY, TREES, Stream

FORGETTING = np.array([1.0, 0.99])
#: (D, L, K, trees, memory, past): one, two and more classes than have a transition each, with every set of experts.
CASES = [
    (1, None, 1, 0, 0, 0),
    (1, 1, 12, TREES, 0, 0),
    (5, 3, 2, 0, MEMORY, 0),
    (9, 9, 2, TREES, MEMORY, 1),
    (12, None, 12, TREES, MEMORY, 0),
    (5, 3, 12, 0, 0, 1),
    (5, None, 2, TREES, 0, 0),
    (5, 3, 1, TREES, MEMORY, 1),
]
BOTH = pytest.mark.parametrize(
    ("n_trees", "memory", "n_past"), [(0, 0, 0), (TREES, 0, 0), (0, MEMORY, 0), (TREES, MEMORY, 0), (TREES, MEMORY, 1)]
)


def _stream(D, L, K, n_trees, memory, n_past=0, dtype=np.float32):
    """Classes that follow the inputs, so that trees have something to split; a few records have none."""
    rng = np.random.default_rng(10 * D + K)
    Phi, X, values = passes.records(rng, D)
    labels = np.where(np.nan_to_num(values[:, 0]) > 0.3, 0, rng.integers(0, K, len(Phi)))
    labels[rng.random(len(Phi)) < 0.2] = -1
    forest = passes.forest_of(2, n_trees, K)
    matrices = passes.heads_and_linear(D, L, K)
    n_experts = 3 + len(matrices[5]) + len(forest.targets) + (len(LABEL_EXPERTS) if memory else 0) + n_past
    size, past = min(K, 5), rng.integers(-1, K, size=(len(Phi), n_past))
    others = np.full(3, np.log(4.0)), np.zeros(n_experts + 3), np.zeros(3), np.zeros((size, size)), np.ones(1)
    matrices += passes.stacks_of(n_experts)
    state = (*matrices, *others, *passes.memory_of(memory, dtype), *forest)
    return Stream(Phi, X, values, labels, rng.uniform(0.2, 3, len(Phi)), past, state)


def arguments(matrices, others, memory, forest):
    """The experts as `pass_labels` has them."""
    log_temperatures, losses, block, *transitions = others
    mixture = Mixture(losses, passes.prior_of(losses), block, 1.0)
    experts = *passes.named(matrices, FORGETTING), forest, memory
    return *experts, mixture, passes.stacks(matrices), (log_temperatures, *transitions)


def _through(stream):
    """Copies of the state after the segment, and the predictions."""
    matrices, others, memory, forest = passes.copied(stream.state)
    out = np.full((len(stream.Phi), matrices[1].shape[1]), np.nan)
    kernels.pass_labels(*stream[:5], *passes.plain(*arguments(matrices, others, memory, forest)), stream.past, out)
    return (*matrices, *others, *memory, *forest), out


@pytest.mark.parametrize(("D", "L", "K", "n_trees", "memory", "n_past"), CASES)
def test_pass_labels(D, L, K, n_trees, memory, n_past):
    stream = _stream(D, L, K, n_trees, memory, n_past)
    matrices, others, _, _ = passes.copied(stream.state)
    ensembles, remembered = passes.ensembles_of(2, n_trees, K), passes.memory_twin(memory)
    others = *others[:3], naive.Transitions(len(others[3]))
    given = arguments(matrices, others, remembered, ensembles)
    *twins, predictions = naive.pass_labels(*stream[:5], *given, stream.past)
    state, out = _through(stream)
    np.testing.assert_allclose(out, predictions, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(out.sum(axis=1), 1, rtol=0, atol=1e-12)
    passes.assert_as_the_twins(state, twins)
    passes.assert_the_forest_is(state, ensembles)
    passes.assert_the_memory_is(state, remembered, rtol=0)
    assert all(ensemble.grown > TREES for ensemble in ensembles)


@BOTH
def test_what_is_only_predicted_changes_nothing(n_trees, memory, n_past):
    passes.assert_what_is_only_predicted_changes_nothing(
        _through, _stream(5, 3, 2, n_trees, memory, n_past), no_truth=-1
    )


@BOTH
def test_nothing_is_read_above_the_diagonal(n_trees, memory, n_past):
    passes.assert_nothing_is_read_above_the_diagonal(_through, _stream(7, 4, 2, n_trees, memory, n_past))


@given(st.integers(1, 6), st.integers(1, 5), st.integers(0, 1000))
def test_mix(n, K, seed):
    rng = np.random.default_rng(seed)
    weights, p = rng.uniform(size=n + 2), rng.uniform(size=(n + 1, K))
    out = np.full(K, np.nan)
    kernels.mix(weights, p, n, out)
    np.testing.assert_allclose(out, naive.mix(weights, p, n), rtol=1e-12)


@given(st.integers(1, 8), st.floats(0.001, 0.2), st.floats(0, 3), st.integers(0, 1000))
def test_shift(K, least, size, seed):
    rng = np.random.default_rng(seed)
    p, by = rng.dirichlet(np.ones(K)), rng.normal(size=K) * size
    out = np.full(K, np.nan)
    kernels.shift(p, by, least, out)
    np.testing.assert_allclose(out, naive.shift(p, by, least), rtol=1e-12)
    assert out.sum() == pytest.approx(1, abs=1e-12)
    assert out.min() > 0
    kernels.shift(p, np.zeros(K), 0.0, out)
    np.testing.assert_allclose(out, p, rtol=1e-12)
