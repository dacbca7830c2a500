"""The transition expert, and both passes with what is known of the past of the target."""

import numpy as np
import pytest

from streamkernel.compute import label_pass, number_pass, transition
from streamkernel.compute.experts import Mixture
from streamkernel.compute.transition import LARGEST_UNIT, Transitions
from tests import naive
from tests.compute import passes, test_label_pass, test_number_pass
from tests.compute.passes import MEMORY, TREES


def _fresh(K):
    return Transitions(np.zeros((K, K)), np.ones(1))


@pytest.mark.parametrize("K", [1, 2, 7])
def test_transitions(K):
    rng = np.random.default_rng(K)
    transitions, history, p = _fresh(K), [], np.empty(K)
    for _ in range(300):
        before, label, weight = int(rng.integers(-1, K)), int(rng.integers(K)), rng.uniform(0.2, 3)
        transition.predict_transition(transitions, before, p)
        np.testing.assert_allclose(p, naive.predict_transition(history, before, K), rtol=1e-9)
        assert p.sum() == pytest.approx(1, abs=1e-12)
        transition.learn_transition(transitions, before, label, weight)
        naive.learn_transition(history, before, label, weight)


def test_the_unit_begins_anew():
    transitions, history = _fresh(2), []
    transitions.unit[0] = LARGEST_UNIT / 1.001
    transitions.counts[0, 1] = 3 * transitions.unit[0]
    history.append((0, 1, 3))
    for _ in range(9):
        transition.learn_transition(transitions, 0, 0, 1.0)
        naive.learn_transition(history, 0, 0, 1.0)
    assert transitions.unit[0] < 2
    p = np.empty(2)
    transition.predict_transition(transitions, 0, p)
    np.testing.assert_allclose(p, naive.predict_transition(history, 0, 2), rtol=1e-9)


def test_classes_past_the_matrix_are_possible():
    transitions, p = _fresh(2), np.empty(4)
    transition.learn_transition(transitions, 0, 1, 5.0)
    transition.learn_transition(transitions, 0, 3, 5.0)
    transition.learn_transition(transitions, 3, 0, 5.0)
    transition.predict_transition(transitions, 0, p)
    assert p[1] > 0.9
    assert 0 < p[3] < 0.1
    for before in (-1, 2, 3):
        transition.predict_transition(transitions, before, p)
        np.testing.assert_allclose(p, 0.25, rtol=1e-12)


def _lagged(labels):
    """The class before each record, -1 where it has none."""
    before, last = [], -1
    for label in labels:
        before.append(last)
        last = label if label >= 0 else last
    return np.array(before)[:, None]


@pytest.mark.parametrize("K", [2, 12])
@pytest.mark.parametrize(("n_trees", "memory"), [(0, 0), (TREES, MEMORY)])
def test_labels_with_a_past(K, n_trees, memory):
    stream = test_label_pass._stream(5, 3, K, n_trees, memory)
    matrices, others, _, _ = passes.copied(stream.state)
    temperatures, losses, block = others
    losses = np.append(losses, 0.0)
    past, history = _lagged(stream.truths), []
    twin_parts = passes.ensembles_of(2, n_trees, K), passes.memory_twin(memory)
    mixture = Mixture(losses.copy(), passes.prior_of(losses), block.copy(), 1.0)
    heads_linear = passes.named(matrices, test_label_pass.FORGETTING)
    *_, expected = naive.pass_labels(*stream[:5], *heads_linear, *twin_parts, mixture, temperatures, past, history)
    out = np.empty((len(stream.Phi), K))

    def through(cuts):
        matrices, others, remembered, forest = passes.copied(stream.state)
        mixture = Mixture(losses.copy(), passes.prior_of(losses), others[2], 1.0)
        transitions = _fresh(K)
        parts = *passes.named(matrices, test_label_pass.FORGETTING), forest, remembered, mixture
        for part in np.split(np.arange(len(out)), cuts):
            said = out[part]
            records = (rows[part] for rows in stream[:5])
            label_pass.pass_labels(*records, *parts, (others[0], *transitions), past[part], said)
            out[part] = said
        return out.tobytes(), mixture.losses.tobytes(), *(one.tobytes() for one in transitions)

    whole = through([])
    np.testing.assert_allclose(out, expected, rtol=1e-8, atol=1e-8)
    assert through([1, 30, 31, 99]) == whole


@pytest.mark.parametrize(("n_trees", "memory"), [(0, 0), (TREES, MEMORY)])
def test_numbers_with_a_past(n_trees, memory):
    stream = test_number_pass._stream(5, 3, n_trees, memory)
    past = np.random.default_rng(3).normal(np.nan_to_num(stream.truths, nan=50.0), 2)[:, None]

    def parts(matrices, others, remembered, forest):
        levels, moments, linear_moments, losses, squared_errors, block = others
        losses = np.append(losses, [0.0, 0.0])
        mixture = Mixture(losses, passes.prior_of(losses), block, 2.0)
        statistics = number_pass.TargetStatistics(moments, linear_moments, levels, squared_errors)
        return *passes.named(matrices, test_number_pass.LINEAR_DRIFTS), forest, remembered, mixture, statistics

    matrices, others, _, _ = passes.copied(stream.state)
    twins = parts(matrices, others, passes.memory_twin(memory), passes.ensembles_of(1, n_trees, 1))
    *_, expected = naive.pass_numbers(*stream[:5], *twins, past)
    out = np.empty((len(stream.Phi), 3))

    def through(cuts):
        own = parts(*passes.copied(stream.state))
        for part in np.split(np.arange(len(out)), cuts):
            said = out[part]
            number_pass.pass_numbers(*(rows[part] for rows in stream[:5]), *own, past[part], said)
            out[part] = said
        return out.tobytes(), own[4].losses.tobytes()

    whole = through([])
    np.testing.assert_allclose(out, expected, rtol=1e-8, atol=1e-8)
    assert through([1, 30, 31, 99]) == whole
    # The one that is near the truth is what is heard in the end.
    known = ~np.isnan(stream.truths)
    late = np.arange(len(out)) > 100
    assert np.abs(out[:, 0] - past[:, 0])[known & late].max() < 2
