"""Records of known numbers have a way of their own: all that comes of it is what the general way makes of them."""

import copy
import math
import pickle
from collections import Counter, OrderedDict, defaultdict
from types import MappingProxyType
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamkernel import AdaptiveKernelClassifier, AdaptiveKernelRegressor, KernelClassifier, KernelRegressor
from streamkernel.kernels import Gaussian
from streamkernel.losses import Log
from streamkernel.records.batches import BatchEncoder
from streamkernel.records.rows import PlainRecords

NAMES = ["a", "b", "1", 1, ("c", 2), 2.5]
#: Other names, some of which are equal to one of those, as dictionaries see it.
OTHER_NAMES = ["late", True, np.str_("a"), np.int64(1), 1.0]


class Eager(dict):
    """Has an answer to every name, and keeps it."""

    def __missing__(self, name):
        self[name] = 7.0
        return 7.0


#: What a record may come as; only the first is plain.
FORMS = [dict, OrderedDict, Counter, lambda x: defaultdict(float, x), Eager, lambda x: MappingProxyType(dict(x))]

finite = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([0.0, -0.0, 1e308, -1e308, 5e-324]),
    st.integers(-(10**20), 10**20),
    st.sampled_from([10**300, -(10**300)]),
)
odd = st.one_of(
    st.just(math.nan),
    st.none(),
    st.booleans(),
    st.sampled_from(["", "x", "nan", "1"]),
    st.sampled_from([np.float64(0.5), np.float32(1.5), np.float64("nan"), np.int8(-3), np.uint64(2**64 - 1), np.True_]),
)
refused = st.sampled_from([math.inf, -math.inf, 10**400, -(10**400), np.float64("-inf"), [1], b"1"])


@st.composite
def records(draw, names, values=(finite, odd, refused), plain_ones=3):
    """Records of these names, most of them plain; others lack some, have more, or hold and come as anything."""
    order = draw(st.permutations(names))
    x = {name: draw(finite) for name in order}
    if draw(st.integers(0, plain_ones)):
        return x
    for name in draw(st.lists(st.sampled_from([*names, *NAMES, *OTHER_NAMES]), max_size=3)):
        x[name] = draw(st.one_of(*values))
    for name in draw(st.lists(st.sampled_from(names), max_size=2)):
        x.pop(name, None)
    return draw(st.sampled_from(FORMS))(x)


some_names = st.lists(st.sampled_from(NAMES), min_size=1, max_size=4, unique=True)


def _is_plain(x, names):
    return (
        type(x) is dict
        and x.keys() == set(names)
        and all(type(v) in (float, int) and abs(v) <= 1.7976931348623157e308 for v in x.values())
    )


def _shown(xs):
    """All that is in some records; a Counter would sort what it shows, and cannot always compare it."""
    return [repr(list(x.items())) for x in xs]


def _bits(values):
    """One NaN for all of them; -0 is not 0."""
    return np.where(np.isnan(values), np.nan, values).tobytes()


# The reader -----------------------------------------------------------------------------------------------------------


@given(st.data())
def test_read_one_takes_finite_numbers_under_exactly_these_names(data):
    names = data.draw(some_names)
    reader = PlainRecords(tuple(names))
    reader.values[:] = 3.25
    x = data.draw(records(names, plain_ones=1))
    before = _shown([x])
    taken = reader.read_one(x)
    assert _shown([x]) == before
    if taken:
        assert _is_plain(x, names)
        assert _bits(reader.values) == _bits(np.array([[float(x[name]) for name in names]]))
    else:
        assert (reader.values == 3.25).all()
        # Sums that overflow are left to the general way, as NaN is.
        assert not _is_plain(x, names) or math.isinf(sum(abs(float(value)) for value in x.values()))


@given(st.data())
def test_read_is_read_one_for_many_and_takes_nan(data):
    names = data.draw(some_names)
    reader = PlainRecords(tuple(names))
    xs = data.draw(st.lists(records(names, (finite, st.just(math.nan), odd, refused)), min_size=1, max_size=6))
    before = _shown(xs)
    values = reader.read(xs)
    assert _shown(xs) == before
    without_nan = [
        {name: 0.0 if type(v) is float and math.isnan(v) else v for name, v in x.items()} if type(x) is dict else x
        for x in xs
    ]
    if all(_is_plain(x, names) for x in without_nan):
        assert _bits(values) == _bits(np.array([[float(x[name]) for name in names] for x in xs]))
    else:
        assert values is None


# Learning -------------------------------------------------------------------------------------------------------------

ARGUMENTS = {"kernel": Gaussian(1.5), "max_features": 32, "block_size": 8, "batch_size": 4, "seed": 1}
ADAPTIVE = {"n_features": 8, "metric_schedule": (7, 20), "seed": 1}
MODELS = {
    "softmax": lambda: KernelClassifier(**ARGUMENTS),
    "log": lambda: KernelClassifier(loss=Log(), **ARGUMENTS),
    "regressor": lambda: KernelRegressor(**ARGUMENTS),
    "float64": lambda: KernelRegressor(**ARGUMENTS, dtype="float64", standardize=False, max_inputs=3),
    "adaptive classifier": lambda: AdaptiveKernelClassifier(**ADAPTIVE),
    "adaptive regressor": lambda: AdaptiveKernelRegressor(**ADAPTIVE),
}
KINDS = pytest.mark.parametrize("kind", MODELS)
LABELS = {"softmax": ["p", 1, "q", True], "log": [False, True], "adaptive classifier": ["p", "q", np.str_("r"), 2]}
numbers = st.one_of(st.floats(-1e3, 1e3), st.integers(-5, 5), st.sampled_from([True, np.float64(2.0), np.int8(1)]))


def _targets(kind):
    known = st.sampled_from(LABELS[kind]) if kind in LABELS else numbers
    return st.one_of(known, known, known, st.none())


@pytest.mark.filterwarnings("ignore:inputs past max_inputs")
@KINDS
@settings(max_examples=6)
@given(data=st.data())
def test_one_by_one_is_all_at_once(kind, data):
    """Whatever is asked between, whatever is refused, and however often the model goes through a file."""
    names = data.draw(some_names)
    xs = data.draw(st.lists(records(names, (finite, odd), plain_ones=8), min_size=1, max_size=40))
    ys = data.draw(st.lists(_targets(kind), min_size=len(xs), max_size=len(xs)))
    ws = data.draw(st.lists(st.sampled_from([1.0, 1, 1.0, 0.5]), min_size=len(xs), max_size=len(xs)))
    between = st.sampled_from(["", "", "", "asked", "refused", "stored", "copied"])
    before = _shown(xs)
    model = MODELS[kind]()
    for x, y, w in zip(xs, ys, ws, strict=True):
        match data.draw(between):
            case "asked":
                digest = model.state_digest()
                model.predict_one(x)
                model.predict_one({**x, "unseen": 2.0})
                assert model.state_digest() == digest
            case "refused":
                bad = data.draw(refused)
                digest = model.state_digest()
                with pytest.raises(ValueError, match=r"^input "):
                    model.learn_one({**x, data.draw(st.sampled_from(names)): bad}, y, w=w)
                assert model.state_digest() == digest
            case "stored":
                model = pickle.loads(pickle.dumps(model))
            case "copied":
                copy.deepcopy(model).learn_one(x, y)
        model.learn_one(x, y, w=w)
    assert _shown(xs) == before
    at_once = MODELS[kind]()
    at_once.advance(xs, ys, ws)
    assert model.state_digest() == at_once.state_digest()


def _stream(kind, n, names, seed=0):
    rng = np.random.default_rng(seed)
    xs = [dict(zip(names, row, strict=True)) for row in rng.normal(size=(n, len(names))).tolist()]
    ys = [sum(x.values()) for x in xs]
    return xs, [LABELS[kind][y > 0] for y in ys] if kind in LABELS else ys


class GeneralWay(Exception):
    """A record went it."""


def _is_learned_at_once(model, x, y):
    """Whether `learn_one` takes the short way; a record that asks for the general one is not learned."""
    with mock.patch.object(BatchEncoder, "take", side_effect=GeneralWay):
        try:
            model.learn_one(x, y)
        except GeneralWay:
            return False
    return True


@KINDS
def test_which_records_are_learned_at_once(kind):
    """Else nothing is done, and the general way has them."""
    xs, ys = _stream(kind, 60, ("a", "b"))
    model = MODELS[kind]()
    assert not _is_learned_at_once(model, xs[0], ys[0])  # no input is known yet
    model.advance(xs, ys)
    digest = model.state_digest()
    x, y = xs[0], ys[0]
    for other in (
        {"a": 1.0},
        {"a": 1.0, "c": 1.0},
        {**x, "c": 1.0},
        {**x, "a": None},
        {**x, "a": "text"},
        {**x, "a": True},
        {**x, "a": np.float64(1)},
        {**x, "a": math.inf},
        {**x, "a": 10**400},
        {"a": 10**400, "b": -(10**400)},
        Counter(x),
        defaultdict(float, a=1.0),
        Eager(a=1.0),
        {},
    ):
        names = list(other)
        assert not _is_learned_at_once(model, other, y), other
        assert list(other) == names
    unknown = ["new", np.str_("p"), None] if kind in LABELS else [math.nan, math.inf, 10**400, np.float64(1), "1", None]
    for target in unknown:
        assert not _is_learned_at_once(model, x, target), target
    assert model.state_digest() == digest
    for plain in (x, {"b": x["b"], "a": x["a"]}, {"a": 1, "b": 2.5}, {"a": -0.0, "b": 10**300}):
        before = model.n_records
        assert _is_learned_at_once(model, plain, y)
        assert model.n_records == before + 1


@pytest.mark.parametrize("kind", ["softmax", "adaptive classifier"])
def test_a_late_input_or_class_goes_the_general_way_and_the_next_record_the_short_one(kind):
    xs, ys = _stream(kind, 40, ("a", "b"))
    model = MODELS[kind]()
    model.advance(xs, ys)
    model.learn_one({**xs[0], "late": 1.0}, "late class")
    assert not _is_learned_at_once(model, xs[0], "late class")
    assert _is_learned_at_once(model, {**xs[0], "late": 2.0}, "late class")
    twin = MODELS[kind]()
    twin.advance([*xs, {**xs[0], "late": 1.0}, {**xs[0], "late": 2.0}], [*ys, "late class", "late class"])
    assert model.state_digest() == twin.state_digest()
