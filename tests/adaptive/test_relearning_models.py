"""A metric that is learned over the records that follow, in a model: when it begins, and its state."""

import pytest

from streamkernel import AdaptiveKernelClassifier, AdaptiveKernelRegressor
from streamkernel.adaptive import relearning
from streamkernel.estimators.base import machine_of
from tests.adaptive.early_metrics import records, small_model

BOTH = pytest.mark.parametrize("kind", [AdaptiveKernelClassifier, AdaptiveKernelRegressor])


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


