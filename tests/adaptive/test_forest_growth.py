"""The growth of trees while other things happen: a record is made, inputs and outputs come, the window is cut."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamkernel.adaptive.forest import TreeEnsembles
from streamkernel.compute.trees import GROWING, GROWN, SINCE
from streamkernel.state import from_bytes, to_bytes
from tests.adaptive.forests import WINDOW, D, K, T, bits_of, forest_of, learn, stream_of, taught


@given(st.lists(st.integers(1, 40), min_size=1, max_size=8), st.integers(1, 6), st.integers(1, 12))
def test_a_record_taken_and_brought_back_anywhere_changes_no_bit(lengths, n_trees, n_outputs):
    stream = stream_of(sum(lengths) + 60, k=n_outputs)
    whole, parts = (TreeEnsembles(T, n_trees, WINDOW) for _ in range(2))
    for forest in (whole, parts):
        forest.begin(D, n_outputs)
    said = learn(whole, *stream)
    pieces, start = [], 0
    for length in (*lengths, 60):
        restored = TreeEnsembles(T, n_trees, WINDOW)
        restored.load_state(from_bytes(to_bytes(parts.state())), D, n_outputs)
        assert bits_of(restored) == bits_of(parts)
        parts = restored
        pieces.append(learn(parts, *(part[start : start + length] for part in stream)))
        start += length
    assert np.concatenate(pieces).tobytes() == said.tobytes()
    assert bits_of(parts) == bits_of(whole)


@pytest.mark.parametrize("counts", [(75, 0, 2, 29), (75, 0, 2, 41), (75, 3, 2, 40), (42, 2, 2, 41), (39, 0, 2, 40)])
def test_a_growth_that_cannot_be_under_way_is_refused(counts):
    """Of fewer records than a tree needs, of more than a window has, past its end, of more than came."""
    forest, _ = taught()
    record = forest.state()
    record["tree_counts"][:] = counts
    with pytest.raises(ValueError, match="its field 'tree_counts'"):
        forest_of().load_state(record, D, K)


def test_a_growth_on_records_from_before_a_change_is_given_up_and_the_next_one_begins():
    stream = stream_of(420)
    forest = TreeEnsembles(T, 1, 120)
    forest.begin(D, K)
    counts = forest.arrays.counts
    n = 121
    learn(forest, *(part[:n] for part in stream))
    while counts[SINCE] != 1 or not counts[GROWING]:
        learn(forest, *(part[n : n + 1] for part in stream))
        n += 1
    grown = int(counts[GROWN])
    forest.keep_last(40)
    assert not counts[GROWING]
    learn(forest, *(part[n : n + 1] for part in stream))
    assert counts.tolist() == [41, 0, grown, 41]
    # The trees to come are those of a forest that saw the last 40 records alone, and begins on the same one.
    other = TreeEnsembles(T, 1, 120)
    other.begin(D, K)
    learn(other, *(part[n - 40 : n] for part in stream))
    other.arrays.counts[:] = 40, 120, grown, 0
    learn(other, *(part[n:] for part in stream))
    learn(forest, *(part[n + 1 :] for part in stream))
    assert counts[GROWN] > grown
    assert bits_of(forest) == bits_of(other)
