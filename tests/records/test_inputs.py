"""What a record may hold, what becomes of it, and that a call that fails changes nothing."""

import datetime
import decimal
import enum
import fractions
import hashlib
import json
import math
import pickle
import tracemalloc
import warnings
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from river.optim.losses import Squared

import streamkernel.records.inputs
import streamkernel.records.intake
import streamkernel.records.placement
from streamkernel import KernelClassifier, KernelRegressor
from streamkernel.compute.moments import COUNT, M2, MEAN
from streamkernel.kernels import Gaussian
from streamkernel.records.inputs import RAW_LIMIT, SCALED_LIMIT, Inputs, Rows, key_of
from streamkernel.records.intake import SLICE, Intake
from streamkernel.records.targets import Numbers
from tests.parts import inputs_of

HUGE = 10**400


def _model(**given):
    return KernelRegressor(**{"block_size": 4, "batch_size": 4, "kernel": Gaussian(1.0), "seed": 1, **given})


def _stream(n, d=2, seed=0):
    rng = np.random.default_rng(seed)
    return [{f"x{j}": float(v) for j, v in enumerate(row)} for row in rng.normal(size=(n, d))]


def _learnt(n=50, **given):
    model = _model(**given)
    xs = _stream(n)
    model.advance(xs, [x["x0"] for x in xs])
    return model


def _keys(model):
    """The keys of its columns, in their order."""
    return [key_of(column) for column in model.__getstate__()["columns"]]


# Kinds of values ------------------------------------------------------------------------------------------------------


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


@pytest.mark.parametrize("value", NUMBERS, ids=lambda value: f"{type(value).__name__}-{value}")
def test_a_number_of_any_type_is_its_float(value):
    one, other = _learnt(), _learnt()
    for model, given_value in ((one, value), (other, float(value))):
        model.learn_one({"x0": given_value, "x1": 0.5}, 1.0)  # a known input
        model.learn_one({"new": given_value}, 2.0)
    assert one.state_digest() == other.state_digest()
    assert one.predict_one({"x0": value, "unseen": value}) == other.predict_one({"x0": float(value), "unseen": 1})


ABSENT = [
    None,
    math.nan,
    np.nan,
    np.float32("nan"),
    decimal.Decimal("nan"),
    decimal.Decimal("sNaN"),
    pd.NA,
    pd.NaT,
]


@pytest.mark.parametrize("value", ABSENT, ids=lambda value: f"{type(value).__name__}-{value}")
def test_what_was_not_observed_is_absent(value):
    one, other = _learnt(), _learnt()
    one.learn_one({"x0": value, "x1": 0.5, "new": value}, 1.0)
    other.learn_one({"x1": 0.5}, 1.0)
    assert one.state_digest() == other.state_digest()
    assert one.predict_one({"x0": value, "x1": 1.0}) == other.predict_one({"x1": 1.0})


REFUSED = [
    (math.inf, "is infinite: give a finite number, or None where it was not observed"),
    (-math.inf, "is infinite"),
    (np.float32("inf"), "is infinite"),
    (decimal.Decimal("inf"), "is infinite"),
    (decimal.Decimal("1e400"), "is infinite"),
    (fractions.Fraction(HUGE), "is infinite"),
    (HUGE, "is infinite"),
    (-HUGE, "is infinite"),
    ([1.0], "is of type list: give a number, a string, a boolean or None"),
    ({"a": 1}, "is of type dict"),
    ((1, 2), "is of type tuple"),
    (b"bytes", "is of type bytes"),
    (1j, "is of type complex"),
    (np.array(1.0), "is of type ndarray"),
    (datetime.datetime(2020, 1, 1), "is of type datetime"),
    (datetime.timedelta(1), "is of type timedelta"),
    (pd.Timestamp("2020-01-01"), "is of type Timestamp"),
    (np.datetime64("2020-01-01"), "is of type "),
    (np.datetime64("2020-01-01", "ns"), "is of type "),
    (np.timedelta64(1, "ns"), "is of type "),
    (object(), "is of type object"),
]


@pytest.mark.parametrize(("value", "why"), REFUSED, ids=lambda value: f"{type(value).__name__}-{str(value)[:20]}")
@pytest.mark.parametrize("name", ["x0", "new", 7])
def test_what_is_no_input_is_refused_by_name_and_changes_nothing(name, value, why):
    model = _learnt()
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


@pytest.mark.parametrize("record", [[("x0", 1.0)], "x0", None, 3])
def test_a_record_that_is_no_mapping_changes_nothing(record):
    model = _learnt()
    before = model.state_digest()
    with pytest.raises((TypeError, ValueError, AttributeError)):
        model.advance([{"new": 1.0, "text": "a"}, record], [1.0, 1.0])
    assert model.state_digest() == before
    assert sorted(model.input_names) == ["x0", "x1"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda model: model.advance([{"a": 1.0}], [1.0, 2.0]), "got 2 targets for 1 records: give one a record"),
        (lambda model: model.advance([{"a": 1.0}] * 3, [1.0]), "got 1 targets for 3 records: give one a record"),
        (lambda model: model.learn_many(pd.DataFrame({"a": [1.0]}), [1.0, 2.0]), "got 2 targets for 1 records"),
        (
            lambda model: model.advance([{"a": 1.0}], [1.0], [1.0, 2.0]),
            "got 2 weights for 1 records",
        ),
        (lambda model: model.learn_one({"a": 1.0}, 1.0, w=-1.0), "a weight is negative or not finite"),
        (lambda model: model.learn_one({"a": 1.0}, 1.0, w=math.nan), "a weight is negative or not finite"),
        (lambda model: model.advance([{"a": 1.0}], [1.0], [math.inf]), "a weight is negative or not finite"),
    ],
)
def test_targets_and_weights_of_another_length_or_kind(call, message):
    model = _learnt()
    before = model.state_digest()
    with pytest.raises(ValueError, match=message):
        call(model)
    assert model.state_digest() == before


def test_a_call_that_failed_leaves_no_trace_in_what_follows():
    """Columns were added and taken back; the same names then come in another order."""
    one, other = _learnt(), _learnt()
    with pytest.raises(ValueError, match="infinite"):
        one.advance([{"p": 1.0, "q": "a"}, {"r": 2.0}, {"x0": math.inf}], [1.0, 1.0, 1.0])
    for model in (one, other):
        for i in range(20):
            model.learn_one({"q": "b" if i % 2 else "a"}, float(i))
            model.learn_one({"r": i / 3, "x0": 1.0}, float(i))
            model.learn_one({"p": i / 7}, float(i))
    assert one.input_names == other.input_names
    assert one.state_digest() == other.state_digest()


# Names ----------------------------------------------------------------------------------------------------------------


def test_names_of_different_types_stay_apart():
    model = _learnt(n=0)
    model.learn_one({"1": 0.5, 1: 2.0, 2.5: 1.0, "2.5": 1.0, None: 1.0, "None": 1.0, ("a", 1): 1.0}, 1.0)
    assert sorted(model.input_names) == sorted(["1", "1", "2.5", "2.5", "None", "None", "('a', 1)"])
    assert len(set(_keys(model))) == 7


def test_a_name_equals_what_python_says_it_equals():
    model = _learnt(n=0)
    for name in ("a", np.str_("a")):
        model.learn_one({name: 0.5}, 1.0)
    for name in (1, 1.0, np.int64(1), True):
        model.learn_one({name: 0.5}, 1.0)
    assert model.input_names == ["a", "1"]


@pytest.mark.parametrize("name", [frozenset(), b"a", datetime.date(2020, 1, 1), math.nan, (1, math.nan)], ids=str)
def test_a_name_that_cannot_be_kept_is_refused_and_changes_nothing(name):
    model = _learnt()
    before = model.state_digest()
    for value in (1.0, "text"):
        for call in (model.predict_one, lambda x: model.learn_one(x, 1.0)):
            with pytest.raises(ValueError, match="names and labels"):
                call({"new": 1.0, name: value})
    assert model.state_digest() == before


class Colour(str, enum.Enum):  # noqa: UP042 - its str() is "Colour.RED", not its value
    RED = "red"


def test_a_string_of_a_subclass_is_its_text():
    one, other = _learnt(n=0), _learnt(n=0)
    for _ in range(5):
        one.learn_one({"c": Colour.RED, Colour.RED: 1.0, "n": np.str_("n")}, 1.0)
        other.learn_one({"c": "red", "red": 1.0, "n": "n"}, 1.0)
    assert one.input_names == other.input_names
    assert one.state_digest() == other.state_digest()


def test_a_name_may_be_a_number_and_an_indicator():
    model = _learnt(n=0)
    model.learn_one({"a": 1.0}, 1.0)
    model.learn_one({"a": "x"}, 1.0)
    model.learn_one({"a=x": 2.0}, 1.0)
    assert model.input_names == ["a", "a=x", "a=x"]
    assert len(set(_keys(model))) == 3


@pytest.mark.parametrize("text", ["", "\0", "\ud800", "é", "e\u0301", "x" * 100_000])
def test_any_text_is_a_name_and_a_value(text):
    model = _learnt(n=0)
    model.learn_one({text: text}, 1.0)
    model.learn_one({text: 1.0}, 1.0)
    assert model.input_names == [f"{text}={text}", text]
    assert len(model.state_digest()) == 64


def test_keys_are_part_of_every_checkpoint():
    """Frequencies are drawn by these: another key is another format of the state."""
    assert key_of(["number", ["str", "x"]]) == 0x902CE1789BAADF6E
    assert key_of(["indicator", ["int", 7], "é"]) == 0x2BFABB59C66270A2


def test_new_inputs_of_one_record_take_their_columns_in_the_order_of_their_keys():
    names = [f"n{i}" for i in range(30)]
    models = [_learnt(n=0), _learnt(n=0)]
    models[0].learn_one(dict.fromkeys(names, 1.0), 1.0)
    models[1].learn_one(dict.fromkeys(reversed(names), 1.0), 1.0)
    assert models[0].input_names == models[1].input_names
    keys = _keys(models[0])
    assert keys == sorted(keys)


# Scaling --------------------------------------------------------------------------------------------------------------

records = st.dictionaries(
    st.sampled_from(["a", "b", "c", "d"]),
    st.one_of(st.floats(-1e3, 1e3), st.booleans(), st.sampled_from(["u", "v"]), st.none(), st.just(math.nan)),
    max_size=4,
)


@given(
    st.lists(st.tuples(records, st.one_of(st.none(), st.floats(-5, 5))), min_size=1, max_size=25),
    st.sampled_from([None, False]),
)
def test_predict_one_then_learn_one_is_advance(stream, standardize):
    one, other = (_model(standardize=standardize, batch_size=3) for _ in range(2))
    for x, y in stream:
        predicted = one.predict_one(x)
        one.learn_one(x, y)
        outcome = other.advance([x], [y])
        assert outcome.predictions == [predicted]
    assert one.state_digest() == other.state_digest()


def test_an_absent_number_is_its_mean():
    model = _learnt(200)
    mean = dict(zip(model.input_names, model.__getstate__()["input_moments"][:, MEAN], strict=True))
    # To the bit only where the moments do not move: the mean itself moves the deviation of what is present.
    assert model.predict_one({"x0": 1.0}) == pytest.approx(model.predict_one({"x0": 1.0, "x1": mean["x1"]}), abs=1e-6)
    assert model.predict_one({}) == pytest.approx(model.predict_one(mean), abs=1e-6)


def test_moments_count_only_what_was_observed_and_learnt():
    model = _model()
    values = [3.0, None, 5.0, math.nan, 10.0]
    model.advance([{"a": v} for v in values], [1.0, 1.0, 1.0, 1.0, None])
    moments = model.__getstate__()["input_moments"]
    assert moments[:, [COUNT, MEAN, M2]].tolist() == [[2, 4.0, 2.0]]


def test_unlabelled_records_change_nothing():
    model = _learnt()
    before = model.state_digest()
    model.advance([{"x0": 100.0, "late": 1.0, "text": "new"}] * 40, [None] * 40)
    model.learn_one({"x0": 100.0, "late": 1.0, "text": "new"}, None)
    model.learn_many(pd.DataFrame({"x0": [1.0, 2.0], "late": ["a", "b"]}), [None, None])
    assert model.state_digest() == before
    assert model.n_records == 50
    # Nor the scores of the records among which they stand.
    xs = _stream(60, seed=3)
    other = _learnt()
    mixed = model.advance(
        [x for pair in zip(xs, [{"x9": 50.0}] * 60, strict=True) for x in pair],
        [y for x in xs for y in (x["x1"], None)],
    )
    alone = other.advance(xs, [x["x1"] for x in xs])
    assert mixed.predictions[::2] == alone.predictions
    assert model.state_digest() == other.state_digest()


def test_indicators_and_their_values_are_never_scaled():
    inputs = Inputs(max_inputs=10, standardize=True)
    rows = inputs.encode([{"c": "a", "n": 1.0}, {"c": "b", "n": 3.0}, {"n": 8.0}], [True] * 3)
    scaled = inputs.scale(rows, np.ones(3, np.bool_), np.dtype("float64"))
    columns = {tuple(name[:1]) + tuple(name[2:]): scaled[:, i].tolist() for i, name in enumerate(inputs.columns)}
    assert columns[("indicator", "a")] == [1, 0, 0]
    assert columns[("indicator", "b")] == [0, 1, 0]
    assert columns[("number",)] == pytest.approx([0, 1, (8 - 4) / math.sqrt(26 / 3)])


def test_a_boolean_is_a_number_that_is_scaled():
    inputs = Inputs(max_inputs=10, standardize=True)
    rows = inputs.encode([{"b": False}, {"b": True}], [True] * 2)
    assert inputs.scale(rows, np.ones(2, np.bool_), np.dtype("float64")).tolist() == [[0], [1]]


@given(st.floats(allow_nan=False, allow_infinity=False), st.booleans())
def test_scaled_values_are_bounded_and_finite(value, standardize):
    model = _learnt(n=60, standardize=standardize)
    prediction = model.predict_one({"x0": value})
    model.learn_one({"x0": value, "new": value}, 1.0)
    for x in _stream(12, seed=1):
        model.learn_one(x, 1.0)
    inputs = inputs_of(model)
    limit = SCALED_LIMIT if standardize else RAW_LIMIT
    rows = inputs.encode([{"x0": value, "new": -value}], [False])
    assert np.abs(inputs.scale(rows, np.zeros(1, np.bool_), np.dtype("float32"))).max() <= np.float32(limit)
    assert math.isfinite(prediction)
    assert math.isfinite(model.predict_one({"x0": 1.0, "x1": 1.0}))


def test_without_standardize_values_are_used_as_they_are():
    inputs = Inputs(max_inputs=10, standardize=False)
    rows = inputs.encode([{"a": 5.0}, {"a": 7.0}, {}], [True] * 3)
    assert inputs.scale(rows, np.ones(3, np.bool_), np.dtype("float32")).tolist() == [[5], [7], [0]]
    assert not inputs.moments.any()


# Limits ---------------------------------------------------------------------------------------------------------------


def test_inputs_past_the_limit_are_ignored_counted_and_warned_of_once():
    model = _model(max_inputs=2)
    model.learn_one({"a": 1.0, "b": 2.0}, 1.0)
    with pytest.warns(RuntimeWarning, match="inputs past max_inputs=2 are ignored, counted in n_") as caught:
        model.learn_one({"a": 1.0, "c": 2.0, "d": "text"}, 1.0)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert model.n_ignored_inputs == 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.learn_one({"c": 2.0}, 1.0)
        model.predict_one({"c": 2.0, "e": 1.0})
        model.learn_one({"c": 2.0}, None)
    assert model.n_ignored_inputs == 3
    assert sorted(model.input_names) == ["a", "b"]


@pytest.mark.parametrize(
    "call",
    [
        lambda model: model.learn_one({"a": 1.0, "b": 2.0}, 1.0),
        lambda model: model.learn_many(pd.DataFrame({"a": [1.0], "b": [2.0]}), [1.0]),
        lambda model: model.advance([{"a": 1.0, "b": 2.0}], [1.0]),
    ],
    ids=["learn_one", "learn_many", "advance"],
)
def test_the_warning_points_at_the_caller(call):
    with pytest.warns(RuntimeWarning, match="max_inputs") as caught:
        call(_model(max_inputs=1))
    # The lambda's own line, not that of its caller.
    assert caught[0].lineno == call.__code__.co_firstlineno


def test_what_is_past_the_limit_does_not_touch_scores():
    model = _model(max_inputs=2, standardize=False)
    xs = _stream(40)
    model.advance(xs, [x["x0"] for x in xs])
    assert model.predict_one({"x0": 1.0, "x1": 2.0, "z": 5.0}) == model.predict_one({"x0": 1.0, "x1": 2.0})


@given(
    st.lists(
        st.dictionaries(
            st.sampled_from(["x0", "x1"]),
            st.one_of(st.floats(allow_infinity=False), st.integers(-(2**70), 2**70)),
            min_size=1,
        ),
        min_size=1,
        max_size=9,
    ),
    st.booleans(),
)
def test_records_of_known_numbers_are_encoded_as_any_others(xs, in_another_order):
    if in_another_order:
        xs = [dict(reversed(x.items())) for x in xs]
    models = [_learnt() for _ in range(2)]
    models[0].advance(xs, [1.0] * len(xs))
    with mock.patch.object(Inputs, "encode_plain", return_value=None):  # the general way in
        for x in xs:
            models[1].learn_one(x, 1.0)
    assert models[0].state_digest() == models[1].state_digest()


@pytest.mark.parametrize("value", [math.inf, -math.inf, HUGE, math.nan, True, None])
def test_a_long_call_checks_what_its_sum_would_hide(value):
    model = _learnt()
    before = model.state_digest()
    xs = [{"x0": 1e308, "x1": 1e308}] * SLICE + [{"x0": math.nan, "x1": value}]
    if value in (math.inf, -math.inf, HUGE):
        with pytest.raises(ValueError, match="input 'x1' is infinite"):
            model.advance(xs, [1.0] * len(xs))
        assert model.state_digest() == before
    else:
        model.advance(xs, [1.0] * len(xs))
        assert model.n_records == 50 + SLICE + 1


def test_a_user_who_makes_warnings_errors_is_not_left_with_half_a_call():
    models = [_model(max_inputs=1) for _ in range(2)]
    calls = [[{"a": 1.0}, {"b": 1.0}, {"a": 3.0}], [1.0, 2.0, 3.0]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RuntimeWarning):
            models[0].advance(*calls)
        warnings.simplefilter("ignore")
        models[1].advance(*calls)
    assert models[0].state_digest() == models[1].state_digest()


def test_a_fault_at_the_end_of_a_long_call_is_found_before_its_first_record_is_learnt():
    model = _learnt()
    before = model.state_digest()
    good = [{"x0": 1.0, "text": f"value {i}"} for i in range(2 * SLICE)]
    for bad in ({"x0": math.inf}, {"x0": HUGE}, {"x0": b""}, {b"name": 1.0}, {math.nan: "text"}, {"new": math.inf}):
        with pytest.raises(ValueError, match=r"infinite|of type|names and labels"):
            model.advance([*good, bad], [1.0] * (2 * SLICE + 1))
        assert model.state_digest() == before


@pytest.mark.parametrize("targets", [[None], [1.0]], ids=["predicted", "learnt"])
def test_a_long_call_of_strings_that_never_come_twice_takes_no_more_memory_than_a_short_one(targets):
    """A row has a column for each of them, so that all rows at once would take the square of their number."""
    model = _model(cache_bytes=0, max_features=4)
    xs = [{"id": str(i)} for i in range(3000)]
    tracemalloc.start()
    model.advance(xs, targets * len(xs))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 40e6


def test_a_long_call_to_a_model_of_many_inputs_takes_no_more_memory_than_a_short_one():
    model = _model(cache_bytes=0, max_features=4)
    model.advance([{"n": 1.0}] + [{"id": str(i)} for i in range(2000)], [1.0] * 2001)
    xs = [{"n": float(i)} for i in range(5000)]
    tracemalloc.start()
    model.advance(xs, [None] * len(xs))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 40e6


def test_thousands_of_values_of_a_string_stay_within_the_limit():
    model = _model(max_inputs=100)
    with pytest.warns(RuntimeWarning, match="max_inputs=100"):
        model.advance([{"id": str(i)} for i in range(3000)], [1.0] * 3000)
    assert len(model.input_names) == 100
    assert model.n_ignored_inputs == 2900


def test_a_late_input_has_frequencies_at_once_and_an_old_one_may_vanish():
    model = _learnt(100)
    seen = {model.predict_one({"x0": 0.3, "late": v}) for v in (1.0, 2.0)}
    assert len(seen) == 1  # a number seen for the first time is its own mean
    model.advance([{"late": float(i % 5)} for i in range(40)], [float(i % 5) for i in range(40)])
    assert model.predict_one({"late": 4.0}) > model.predict_one({"late": 0.0}) + 0.5


def test_the_callers_dict_is_neither_changed_nor_kept():
    model = _learnt()
    x = {"x0": 1.0, "x1": None, "c": "a"}
    copy = dict(x)
    model.learn_one(x, 1.0)
    model.predict_one(x)
    assert x == copy
    before = model.state_digest()
    x["x0"] = 99.0
    x.clear()
    assert model.state_digest() == before


def test_a_classifier_takes_the_same_records():
    model = KernelClassifier(seed=1, batch_size=2)
    model.advance([{}, {"a": None}, {"a": 1, "b": "x"}, {"b": "y"}], ["p", "q", "p", "q"])
    assert model.n_records == 4
    assert set(model.predict_proba_one({})) == {"p", "q"}


# Keys that two names share --------------------------------------------------------------------------------------------


@pytest.fixture
def few_keys(monkeypatch):
    """Keys of two bits, so that names share them."""
    for module in (streamkernel.records.inputs, streamkernel.records.placement):
        monkeypatch.setattr(module, "key_of", lambda tagged: key_of(tagged) % 4)


@pytest.mark.usefixtures("few_keys")
@pytest.mark.filterwarnings("ignore:inputs past max_inputs")
@pytest.mark.parametrize("learnt", [1.0, 0.5])
def test_of_two_inputs_with_one_key_the_second_is_ignored_and_counted(learnt):
    """However they come, and as restore has it."""
    rng = np.random.default_rng(3)
    names = [f"n{i}" for i in range(9)]
    xs = [{str(name): float(rng.normal()) for name in rng.permutation(names)[:3]} for _ in range(40)]
    ys = [float(i % 3) if rng.random() < learnt else None for i in range(40)]
    one, turned, at_once, framed = (_model() for _ in range(4))
    for x, y in zip(xs, ys, strict=True):
        one.advance([x], [y])
        turned.advance([dict(reversed(x.items()))], [y])
    at_once.advance(xs, ys)
    framed.learn_many(pd.DataFrame(xs, columns=names), ys)
    keys = [key % 4 for key in _keys(one)]
    assert len(set(keys)) == len(keys) <= 4
    assert one.n_ignored_inputs > 0
    assert {model.state_digest() for model in (one, turned, at_once, framed)} == {one.state_digest()}
    restored = pickle.loads(pickle.dumps(one))
    assert restored.state_digest() == one.state_digest()
    assert [restored.predict_one(x) for x in xs] == [one.predict_one(x) for x in xs]


# Very many names ------------------------------------------------------------------------------------------------------


def test_no_more_names_than_there_is_room_for_in_a_smaller_copy():
    model = _learnt()
    for name in "abcdef":
        model.learn_one({name: 1.0}, 1.0)
    smaller = model.clone({"max_inputs": 3}, include_attributes=True)
    before = smaller.input_names
    with pytest.warns(RuntimeWarning, match="inputs past max_inputs=3"):
        smaller.learn_one({f"new{i}": 1.0 for i in range(9)}, 1.0)
    assert smaller.input_names == before
    assert smaller.n_ignored_inputs == 9
    assert math.isfinite(smaller.predict_one({"another": 1.0}))


def test_unknown_names_are_looked_at_once(monkeypatch):
    """A record of very many names costs as much as its names, and next to nothing where there is no room."""
    asked = []
    monkeypatch.setattr(streamkernel.records.inputs, "key_of", lambda tagged: asked.append(tagged) or key_of(tagged))
    inputs = Inputs(2_000, True)
    xs = [{f"name{r}.{j}": 1.0 for j in range(3_000)} for r in range(3)]
    rows = inputs.encode(xs, [False] * 3)
    assert rows.extras.shape == (3, 6_000)
    assert (np.count_nonzero(np.signbit(rows.extras), axis=1) == 2_000).all()
    assert len(asked) == 9_000
    full = Inputs(1, True)
    full.encode([{"only": 1.0}], [True])
    asked.clear()
    assert full.encode(xs, [False, True, True]).extras.shape == (3, 0)
    assert full.n_ignored == 6_000
    assert asked == []


def test_a_part_has_the_layout_of_the_whole():
    """Compiled code of another layout would be compiled anew, for half a minute."""
    extras = np.arange(12.0).reshape(4, 3) % 3
    whole = Rows(np.zeros((4, 2)), extras, np.arange(3, dtype=np.uint64), np.full(4, 2))
    part = whole.part(slice(1, 4))
    assert part.extras.tolist() == [[1.0, 2.0]] * 3
    assert part.extras.flags.c_contiguous


def test_records_of_many_names_are_taken_few_at_a_time(monkeypatch):
    """Each might bring columns of its own, and all of them times all records is what memory must hold."""
    monkeypatch.setattr(streamkernel.records.intake, "CELLS", 10_000)
    intake = Intake(Inputs(10, True), Numbers(Squared()))
    xs = [dict.fromkeys(map(str, range(100)), 1.0)] * 30 + [{"a": 1.0}] * 300
    parts = [part for part, _ in intake.encoded(xs, [None] * 330)]
    assert [part.start for part in parts][1:] == [part.stop for part in parts][:-1]
    assert parts[-1].stop == 330
    assert max(part.stop - part.start for part in parts[:-1]) <= 256
    assert [part.stop for part in parts[:3]] == [10, 20, 30]


@given(st.text(), st.one_of(st.none(), st.text()))
def test_a_key_is_that_of_the_name_in_json(name, value):
    """Frequencies follow from it, in every checkpoint."""
    tagged = ["number", ["str", name]] if value is None else ["indicator", ["str", name], value]
    text = json.dumps(tagged, separators=(",", ":"), ensure_ascii=False)
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    assert key_of(tagged) == int.from_bytes(digest, "little")
