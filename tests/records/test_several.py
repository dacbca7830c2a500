"""The encoders of several targets: what they refuse, how targets join, and the losses of which gradients are."""

import math
from types import MappingProxyType

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from river.optim.losses import Huber, Squared

from streamkernel.losses import Log
from streamkernel.records.frames import target_dicts
from streamkernel.records.several import SeveralLabels, SeveralNumbers
from streamkernel.records.targets import Numbers

ROWS = [{"a": 1.0, "b": 10.0}, {"a": 3.0}, None, {"b": 30.0, "c": True}, {"a": None, "c": 5}]


def _admitted(targets, ys):
    return targets.admit(targets.prepare(ys)[0])


def test_each_number_is_standardized_as_if_it_were_alone():
    several = SeveralNumbers(Squared(), 10)
    encoded = _admitted(several, ROWS)
    assert several.names == ["a", "b", "c"]
    assert encoded.labeled.tolist() == [True, True, False, True, True]
    assert encoded.n_known.tolist() == [0, 2, 2, 2, 3]
    for column, name in enumerate(several.names):
        alone = Numbers(Squared())
        of_one = _admitted(alone, [None if y is None or y.get(name) is None else float(y[name]) for y in ROWS])
        assert np.array_equal(encoded.y[:, column], of_one.y, equal_nan=True)
        known = encoded.n_known > column
        assert encoded.before[known, column].tolist() == of_one.before[known].tolist()
        assert np.isnan(encoded.before[~known, column]).all()
        assert several.moments[column].tolist() == alone.moments.tolist()


def test_a_known_dict_goes_the_fast_way_to_the_same_bits():
    fast, slow = (SeveralNumbers(Squared(), 10) for _ in range(2))
    for targets in (fast, slow):
        _admitted(targets, ROWS[:1])
    y = {"a": 2, "b": -5.5}
    assert fast.admit_known(fast.known(y)).tolist() == _admitted(slow, [y]).y[0].tolist()
    assert fast.moments.tolist() == slow.moments.tolist()
    for other in ({"b": 1.0, "a": 1.0}, {"a": 1.0}, {"a": 1.0, "b": None}, {"a": 1.0, "b": 1e101}, MappingProxyType(y)):
        assert fast.known(other) is None
    labels = SeveralLabels(Log(), 10)
    _admitted(labels, [{"x": True, "y": False}])
    assert labels.known({"x": False, "y": True}).tolist() == [0.0, 1.0]
    assert labels.known({"x": 0, "y": True}) is None


@pytest.mark.parametrize(
    "targets", [SeveralNumbers(Squared(), 9), SeveralNumbers(Huber(0.4), 9), SeveralLabels(Log(), 9)]
)
def test_the_gradient_is_that_of_the_sum_of_losses(targets):
    rng = np.random.default_rng(3)
    rows = [{k: v for k, v in zip("abc", row, strict=True) if v is not None} for row in rng.random((6, 3)).round()]
    del rows[1]["b"], rows[4]["a"]
    encoded = _admitted(targets, rows)
    scores, tiny = rng.normal(size=(6, 3)), 1e-6
    numeric = np.empty((6, 3))
    for k in range(3):
        moved = np.zeros(3)
        moved[k] = tiny
        numeric[:, k] = (targets.losses(encoded, scores + moved) - targets.losses(encoded, scores - moved)) / (2 * tiny)
    gradient = targets.gradient(encoded.y, scores)
    np.testing.assert_allclose(gradient, numeric, atol=1e-7)
    assert (gradient[1, 1], gradient[4, 0]) == (0.0, 0.0)
    with np.errstate(invalid="ignore"):
        of_each = [targets.loss(encoded.y[:, k], scores[:, k]) for k in range(3)]
    np.testing.assert_allclose(targets.losses(encoded, scores), np.nansum(of_each, axis=0))


@pytest.mark.parametrize(
    ("targets", "y", "sentence"),
    [
        (
            SeveralNumbers(Squared(), 9),
            1.5,
            r"^the targets are 1\.5: pass a dict with a value for each target by its name",
        ),
        (SeveralNumbers(Squared(), 9), {"a": "x"}, r"^target 'a': the target 'x' is not a finite number: use one"),
        (SeveralNumbers(Squared(), 9), {"a": math.nan}, r"^target 'a': the target nan is not a finite number"),
        (
            SeveralNumbers(Squared(), 9),
            {b"a": 1.0},
            "is of type bytes: names and labels are strings, booleans or numbers",
        ),
        (SeveralLabels(Log(), 9), {"a": 2}, r"^label 'a' is 2: use True or False, or None if it is not known"),
        (SeveralLabels(Log(), 9), {"a": "yes"}, r"^label 'a' is 'yes': use True or False"),
    ],
)
def test_what_is_no_target_is_refused(targets, y, sentence):
    with pytest.raises(ValueError, match=sentence):
        targets.prepare([{"good": True}, y])
    assert targets.names == []


def test_frames_of_targets_become_dicts():
    columns = {"a": [1.5, None], "b": [True, False]}
    expected = [{"a": 1.5, "b": True}, {"a": None, "b": False}]
    for make in (pd.DataFrame, pl.DataFrame, pa.table):
        assert target_dicts(make(columns)) == expected
    assert target_dicts(pd.DataFrame([[1.0, 2.0]])) == target_dicts(np.array([[1.0, 2.0]])) == [{0: 1.0, 1: 2.0}]
    assert target_dicts(expected) == expected
    with pytest.raises(ValueError, match=r"^the targets have the shape \(2,\): pass shape \(n, K\)"):
        target_dicts(np.zeros(2))
    with pytest.raises(TypeError, match=r"^y is a series, a Series: "):
        target_dicts(pd.Series([1.0]))
