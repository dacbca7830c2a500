"""A metric that is learned over the records that follow, in a model: when it begins, and its state."""

import math

import numpy as np
import pytest

from streamkernel import AdaptiveKernelClassifier, AdaptiveKernelRegressor
from streamkernel.adaptive import relearning
from streamkernel.adaptive.relearning import Relearning
from streamkernel.estimators.base import machine_of
from tests.adaptive.early_metrics import records, small_model

BOTH = pytest.mark.parametrize("kind", [AdaptiveKernelClassifier, AdaptiveKernelRegressor])


# When it begins -------------------------------------------------------------------------------------------------------


def _core(model):
    return machine_of(model).core


@BOTH
def test_what_is_in_the_making_is_finished_before_the_next_of_the_schedule(kind, monkeypatch):
    monkeypatch.setattr(relearning, "WORK", 1)
    xs, ys, _ = records(kind, 61)
    ys = [y or ys[0] for y in ys]
    model = small_model(kind)
    model.advance(xs[:59], ys[:59])
    assert not _core(model).is_relearning
    model.advance(xs[59:60], ys[59:60])
    first = _core(model)._relearning
    model.advance(xs[60:61], ys[60:61])
    assert _core(model)._relearning is first


def _told_of_a_change(kind, monkeypatch, n_without_weight=0):
    """A core that is told at the 200th record of a change 30 before; what it had in the making, and the targets."""
    monkeypatch.setattr(relearning, "WORK", 1)
    xs, ys, _ = records(kind, 200)
    ys = [y or ys[0] for y in ys]
    model = small_model(kind)
    model.advance(xs[:199], ys[:199], [1.0] * (199 - n_without_weight) + [0.0] * n_without_weight)
    core = _core(model)
    core._relearning = old = Relearning(core.columns, core.experts, 40)
    monkeypatch.setattr(core.experts.change, "end_block", lambda _: 30)
    model.advance(xs[199:], ys[199:])
    assert core._relearning.state()["relearning_rows"][[0, 2]].sum() == 30
    return core, old, ys


@BOTH
def test_a_metric_of_one_world_is_given_up_where_another_begins(kind, monkeypatch):
    core, old, _ = _told_of_a_change(kind, monkeypatch)
    assert core._relearning is not old


# Its state ------------------------------------------------------------------------------------------------------------


def _in_the_making(kind, steps):
    xs, ys, _ = records(kind, 60 + steps)
    model = small_model(kind)
    model.advance(xs, [y or ys[0] for y in ys])
    assert _core(model).is_relearning
    return model


@BOTH
@pytest.mark.parametrize(("steps", "n_fields"), [(0, 2), (13, 5), (16, 8)])
def test_its_state_is_that_of_a_model_only_while_it_is_there(kind, steps, n_fields, monkeypatch):
    monkeypatch.setattr(relearning, "WORK", 1)
    state = _in_the_making(kind, steps).__getstate__()
    fields = {name for name in state if name.startswith("relearning_")}
    assert len(fields) == n_fields + (n_fields == 8 and kind is AdaptiveKernelRegressor) * 4
    xs, ys, _ = records(kind, 10)
    idle = small_model(kind)
    idle.advance(xs, [y or ys[0] for y in ys])
    assert not [name for name in idle.__getstate__() if name.startswith("relearning_")]


@BOTH
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("rows", np.array([10**6, 0, 0])),
        ("rows", np.array([3, 4, 0])),
        ("rows", np.array([3, -1, 0])),
        ("rows", np.array([3.0, 1.0, 0.0])),
        ("energy", np.full(4, np.inf)),
        ("energy", np.ones(9)),
        ("scales", np.zeros(4)),
        ("scales", np.ones(9)),
        ("bandwidth", 0.0),
        ("bandwidth", math.nan),
        ("d0", 99),
        ("heads_P", np.zeros((3, 2, 2))),
        ("heads_W", np.full((3, 1, 1), np.nan)),
        ("heads_late", np.zeros((3, 9, 1))),
    ],
    ids=str,
)
def test_a_state_that_is_impossible_is_refused(kind, name, value, monkeypatch):
    monkeypatch.setattr(relearning, "WORK", 1)
    state = _in_the_making(kind, 16).__getstate__()
    assert f"relearning_{name}" in state
    other = small_model(kind)
    before = other.state_digest()
    with pytest.raises(ValueError, match="this state does not fit: its field"):
        other.__setstate__({**state, f"relearning_{name}": value})
    assert other.state_digest() == before
