"""Records as rows of numbers: scaled by moments, with absent and unseen inputs."""

import math

import numpy as np
import pytest
from hypothesis import strategies as st

from streamkernel.compute.moments import COUNT, M2, MEAN
from streamkernel.records.inputs import Inputs
from streamkernel.records.rows import Rows
from tests.records.regressors import learned, regressor

records = st.dictionaries(
    st.sampled_from(["a", "b", "c", "d"]),
    st.one_of(st.floats(-1e3, 1e3), st.booleans(), st.sampled_from(["u", "v"]), st.none(), st.just(math.nan)),
    max_size=4,
)


def test_an_absent_number_is_its_mean():
    model = learned(200)
    mean = dict(zip(model.input_names, model.__getstate__()["input_moments"][:, MEAN], strict=True))
    # To the bit only where the moments do not move: the mean itself moves the deviation of what is present.
    assert model.predict_one({"x0": 1.0}) == pytest.approx(model.predict_one({"x0": 1.0, "x1": mean["x1"]}), abs=1e-6)
    assert model.predict_one({}) == pytest.approx(model.predict_one(mean), abs=1e-6)


def test_moments_count_only_what_was_observed_and_learned():
    model = regressor()
    values = [3.0, None, 5.0, math.nan, 10.0]
    model.advance([{"a": v} for v in values], [1.0, 1.0, 1.0, 1.0, None])
    moments = model.__getstate__()["input_moments"]
    assert moments[:, [COUNT, MEAN, M2]].tolist() == [[2, 4.0, 2.0]]


def test_indicators_and_their_values_are_never_scaled():
    inputs = Inputs(max_inputs=10, standardize=True)
    rows = inputs.encode([{"c": "a", "n": 1.0}, {"c": "b", "n": 3.0}, {"n": 8.0}], [True] * 3)
    scaled = inputs.scaler.scale(rows, np.ones(3, np.bool_), np.dtype("float64"))
    columns = {tuple(name[:1]) + tuple(name[2:]): scaled[:, i].tolist() for i, name in enumerate(inputs.columns)}
    assert columns[("indicator", "a")] == [1, 0, 0]
    assert columns[("indicator", "b")] == [0, 1, 0]
    assert columns[("number",)] == pytest.approx([0, 1, (8 - 4) / math.sqrt(26 / 3)])


def test_a_boolean_is_a_number_that_is_scaled():
    inputs = Inputs(max_inputs=10, standardize=True)
    rows = inputs.encode([{"b": False}, {"b": True}], [True] * 2)
    assert inputs.scaler.scale(rows, np.ones(2, np.bool_), np.dtype("float64")).tolist() == [[0], [1]]


def test_a_late_input_has_frequencies_at_once_and_an_old_one_may_vanish():
    model = learned(100)
    seen = {model.predict_one({"x0": 0.3, "late": v}) for v in (1.0, 2.0)}
    assert len(seen) == 1  # a number seen for the first time is its own mean
    model.advance([{"late": float(i % 5)} for i in range(40)], [float(i % 5) for i in range(40)])
    assert model.predict_one({"late": 4.0}) > model.predict_one({"late": 0.0}) + 0.5


def test_a_part_has_the_layout_of_the_whole():
    """Compiled code of another layout would be compiled again, for half a minute."""
    extras = np.arange(12.0).reshape(4, 3) % 3
    whole = Rows(np.zeros((4, 2)), extras, np.arange(3, dtype=np.uint64), np.full(4, 2))
    part = whole.part(slice(1, 4))
    assert part.extras.tolist() == [[1.0, 2.0]] * 3
    assert part.extras.flags.c_contiguous
