"""Predictions of many rows against those of one row at a time."""

import pytest
from river import base

from streamkernel import WindowRefit
from streamkernel.estimators.growing import KernelMachine
from streamkernel.expansion.sources import MANY

# Of float32 projections, which a library adds up in another order. The rounding grows with what is added up.
ROUNDING = 1e-4


def _rounding(model, x):
    machine = model.model if isinstance(model, WindowRefit) else model
    numbers = [abs(v) for v in x.values() if isinstance(v, int | float)] if machine.standardize is False else []
    return ROUNDING * max([1.0, *numbers])


def assert_predicted_as_one_by_one(model, rows, many):
    """To the bit, but for many rows of a growing machine: a library projects those at once."""
    ones = [model.predict_one(x) for x in rows]
    if len(rows) < MANY or not isinstance(model, KernelMachine | WindowRefit):
        assert many == ones
    elif not isinstance(model, base.Classifier):
        for x, y, one in zip(rows, many, ones, strict=True):
            assert y == pytest.approx(one, rel=ROUNDING, abs=_rounding(model, x))
    else:
        for x, label, one in zip(rows, many, ones, strict=True):
            if label != one:  # which of two equals comes first
                p = model.predict_proba_one(x)
                assert p[label] == pytest.approx(p[one], abs=_rounding(model, x))


def assert_probable_as_one_by_one(model, rows, many, text=False):
    """The same for distributions; where `text`, the labels are their texts."""
    ones = [model.predict_proba_one(x) for x in rows]
    if text:
        ones = [{str(label): p for label, p in one.items()} for one in ones]
    if len(rows) < MANY or not isinstance(model, KernelMachine | WindowRefit):
        assert many == ones
    else:
        assert len(many) == len(ones)
        for x, p, one in zip(rows, many, ones, strict=True):
            assert p == pytest.approx(one, abs=_rounding(model, x))
