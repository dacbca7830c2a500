"""A metric that is learned over the records that follow, in a model: when it begins, and its state."""

import pytest

from streamkernel import AdaptiveKernelClassifier, AdaptiveKernelRegressor
from streamkernel.adaptive import relearning
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
