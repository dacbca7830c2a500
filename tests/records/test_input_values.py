"""What values a record may hold, and that a call that fails changes nothing."""

import datetime
import decimal
import enum
import fractions
import math

import numpy as np
import pandas as pd
import pytest

from tests.records.regressors import learned

HUGE = 10**400


class Level(enum.IntEnum):
    HIGH = 3


NUMBERS = [
    1.5,
    2,
    -0.0,
    True,
    10**30,
    Level.HIGH,
    np.float64(1.5),
    np.float32(1.5),
    np.float16(1.5),
    np.longdouble(1.5),
    np.int8(3),
    np.uint64(2**64 - 1),
    np.bool_(False),
    decimal.Decimal("1.5"),
    fractions.Fraction(3, 2),
    1e308,
]


def test_a_number_of_any_type_is_its_float(subtests):
    for value in NUMBERS:
        with subtests.test(value=value):
            one, other = learned(), learned()
            for model, given_value in ((one, value), (other, float(value))):
                model.learn_one({"x0": given_value, "x1": 0.5}, 1.0)  # a known input
                model.learn_one({"new": given_value}, 2.0)
            assert one.state_digest() == other.state_digest()
            assert one.predict_one({"x0": value, "unseen": value}) == other.predict_one(
                {"x0": float(value), "unseen": 1}
            )


ABSENT = [
    None,
    math.nan,
    np.nan,
    np.float32("nan"),
    decimal.Decimal("nan"),
    pd.NA,
    pd.NaT,
]


def test_what_was_not_observed_is_absent(subtests):
    for value in ABSENT:
        with subtests.test(value=value):
            one, other = learned(), learned()
            one.learn_one({"x0": value, "x1": 0.5, "new": value}, 1.0)
            other.learn_one({"x1": 0.5}, 1.0)
            assert one.state_digest() == other.state_digest()
            assert one.predict_one({"x0": value, "x1": 1.0}) == other.predict_one({"x1": 1.0})


REFUSED = [
    (math.inf, "is infinite: use a finite number, or None if it was not observed"),
    (-math.inf, "is infinite"),
    (np.float32("inf"), "is infinite"),
    (decimal.Decimal("inf"), "is infinite"),
    (decimal.Decimal("1e400"), "is infinite"),
    (fractions.Fraction(HUGE), "is infinite"),
    (HUGE, "is infinite"),
    (-HUGE, "is infinite"),
    ([1.0], "is of type list: use a number, a string, a boolean or None"),
    ({"a": 1}, "is of type dict"),
    ((1, 2), "is of type tuple"),
    (b"bytes", "is of type bytes"),
    (1j, "is of type complex"),
    (np.array(1.0), "is of type ndarray"),
    (datetime.datetime(2020, 1, 1), "is of type datetime"),
    (object(), "is of type object"),
]


def _assert_refused(name, value, why):
    model = learned()
    before = model.state_digest(), model.predict_one({"x0": 1.0}), model.input_names
    good = {"x0": 1.0, "other": "text", "another": 2.0}
    frame = pd.DataFrame({"x0": [1.0] * 3, name: pd.Series([None, None, value], dtype=object)})
    calls = [
        lambda: model.learn_one({"late": 1.0, name: value}, 1.0),
        lambda: model.predict_one({"late": 1.0, name: value}),
        lambda: model.advance([good] * 30 + [{name: value}] + [good] * 30, [1.0] * 61),
        lambda: model.advance([good] * 30 + [{name: value}], [1.0] * 30 + [None]),
        lambda: model.learn_many(frame, [1.0] * 3),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=f"^input {name!r} {why}"):
            call()
    assert (model.state_digest(), model.predict_one({"x0": 1.0}), model.input_names) == before


def test_what_is_no_input_is_refused_by_name_and_changes_nothing(subtests):
    for value, why in REFUSED:
        for name in ("x0", "new", 7):
            with subtests.test(name=name, value=str(value)[:20]):
                _assert_refused(name, value, why)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda model: model.advance([{"a": 1.0}], [1.0, 2.0]), "got 2 targets for 1 records: pass one per record"),
        (lambda model: model.advance([{"a": 1.0}] * 3, [1.0]), "got 1 targets for 3 records: pass one per record"),
        (lambda model: model.learn_many(pd.DataFrame({"a": [1.0]}), [1.0, 2.0]), "got 2 targets for 1 records"),
        (
            lambda model: model.advance([{"a": 1.0}], [1.0], [1.0, 2.0]),
            "got 2 weights for 1 records",
        ),
        (lambda model: model.learn_one({"a": 1.0}, 1.0, w=-1.0), "a weight is negative or not finite"),
        (lambda model: model.learn_one({"a": 1.0}, 1.0, w=math.nan), "a weight is negative or not finite"),
        (lambda model: model.advance([{"a": 1.0}], [1.0], [math.inf]), "a weight is negative or not finite"),
        (lambda model: model.learn_one({"a": 1.0}, 1.0, w="heavy"), "a weight is negative or not finite"),
        (lambda model: model.learn_one({"a": 1.0}, 1.0, w=1j), "a weight is negative or not finite"),
        (lambda model: model.learn_one({"a": 1.0}, 1.0, w=[1.0]), "a weight is negative or not finite"),
        (lambda model: model.advance([{"a": 1.0}], [1.0], ["1"]), "a weight is negative or not finite"),
        (lambda model: model.learn_many(np.ones((1, 1)), [1.0], [1 + 0j]), "a weight is negative or not finite"),
        (
            lambda model: model.learn_many(np.ones((1, 1)), [1.0], np.ma.array([1.0], mask=[True])),
            "a weight is negative or not finite",
        ),
    ],
)
def test_targets_and_weights_of_another_length_or_kind(call, message):
    model = learned()
    before = model.state_digest()
    with pytest.raises(ValueError, match=message):
        call(model)
    assert model.state_digest() == before


def test_the_callers_dict_is_neither_changed_nor_kept():
    model = learned()
    x = {"x0": 1.0, "x1": None, "c": "a"}
    copy = dict(x)
    model.learn_one(x, 1.0)
    model.predict_one(x)
    assert x == copy
    before = model.state_digest()
    x["x0"] = 99.0
    x.clear()
    assert model.state_digest() == before
