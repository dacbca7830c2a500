"""Records of state: digest, bytes, names and labels, and what a model says to a record that does not fit."""

import enum
import itertools
import json
import math
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from river.optim.losses import Huber
from river.optim.schedulers import Constant, InverseScaling

from streamkernel import AdaptiveKernelClassifier, AdaptiveKernelRegressor, KernelClassifier, KernelRegressor, losses
from streamkernel.growth import CDSG, DSG
from streamkernel.kernels import Gaussian
from streamkernel.state import arguments, digest, from_bytes, rebuild, tag, to_bytes, untag

plain = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(), inner, max_size=3)),
    max_leaves=5,
)
arrays = st.sampled_from(["<f8", "<f4", "<i8", "<u8", "|b1", ">f8", ">u4"]).flatmap(
    lambda dtype: hnp.arrays(dtype, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4))
)
records = st.dictionaries(st.text(), st.one_of(arrays, plain), max_size=6)
labels = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text()),
    lambda inner: st.lists(inner, max_size=3).map(tuple),
    max_leaves=4,
)


# Bytes and digest -----------------------------------------------------------------------------------------------------


@given(records)
def test_bytes_bring_back_the_record(record):
    back = from_bytes(to_bytes(record))
    assert list(back) == list(record)
    for name, value in record.items():
        if isinstance(value, np.ndarray):
            assert back[name].dtype == value.dtype.newbyteorder("=")
            assert back[name].shape == value.shape
            assert back[name].tobytes() == value.astype(back[name].dtype).tobytes()
            assert back[name].flags.writeable
            assert back[name].flags.owndata or back[name].base.flags.owndata
        else:
            assert back[name] == value
            assert type(back[name]) is type(value)
    assert digest(back) == digest(record)
    assert to_bytes(back) == to_bytes(record)


@given(records, st.data())
def test_bytes_that_are_cut_or_continued_are_refused(record, data):
    written = to_bytes(record)
    cut = data.draw(st.integers(0, len(written) - 1))
    for broken in (written[:cut], written + b"\0", b"x" + written):
        with pytest.raises(ValueError, match="not a state record"):
            from_bytes(broken)


@settings(max_examples=300)
@given(records, st.data())
def test_bytes_with_a_bad_byte_are_a_record_or_refused(record, data):
    written = bytearray(to_bytes(record))
    for _ in range(data.draw(st.integers(1, 3))):
        written[data.draw(st.integers(0, len(written) - 1))] = data.draw(st.integers(0, 255))
    try:
        from_bytes(bytes(written))
    except ValueError as error:
        assert str(error).startswith("not a state record")  # noqa: PT017


def _written(heads, body=b""):
    described = heads if isinstance(heads, bytes) else json.dumps(heads).encode()
    return b"SKREC\x01" + struct.pack("<Q", len(described)) + described + body


@pytest.mark.parametrize(
    "heads",
    [
        b"[" * 100_000,
        b"{}",
        b"null",
        b"[1]",
        b'[{"name": "a"}]',
        b'[{"value": 1}]',
        b"\xff\xfe",
        [{"name": "a", "dtype": "|O", "shape": [1]}],
        [{"name": "a", "dtype": "O", "shape": []}],
        [{"name": "a", "dtype": "<f8,|O", "shape": [1]}],
        [{"name": "a", "dtype": "|S0", "shape": [3]}],
        [{"name": "a", "dtype": "|V0", "shape": [3]}],
        [{"name": "a", "dtype": "<U0", "shape": [0]}],
        [{"name": "a", "dtype": "<U1", "shape": [2]}],
        [{"name": "a", "dtype": "<M8[ns]", "shape": [1]}],
        [{"name": "a", "dtype": "(2,f4", "shape": [1]}],
        [{"name": "a", "dtype": {"names": ["x"], "formats": ["<f8"]}, "shape": [1]}],
        [{"name": "a", "dtype": None, "shape": [1]}],
        [{"name": "a", "dtype": "<f8", "shape": [-1, -1]}],
        [{"name": "a", "dtype": "<f8", "shape": [10**30]}],
        [{"name": "a", "dtype": "<f8", "shape": [0, 10**30]}],
        [{"name": "a", "dtype": "<f8", "shape": [1] * 100}],
        [{"name": "a", "dtype": "<f8", "shape": ["x"]}],
        [{"name": "a", "dtype": "<f8", "shape": None}],
        [{"name": "a", "dtype": "<f8", "shape": [0.5]}],
        b'[{"name": "a", "dtype": "<f8", "shape": [Infinity]}]',
        [{"name": ["a"], "value": 1}],
        [{"name": 1, "value": 1}],
        [{"name": "a", "value": 1}, {"name": "a", "value": 2}],
    ],
    ids=lambda heads: str(heads)[:60],
)
def test_hostile_heads_are_refused(heads):
    with pytest.raises(ValueError, match="not a state record"):
        from_bytes(_written(heads, bytes(8)))


def test_the_length_of_the_head_may_lie():
    for length in (0, 1, 2**63, 2**64 - 1):
        with pytest.raises(ValueError, match="not a state record"):
            from_bytes(b"SKREC\x01" + struct.pack("<Q", length) + b"[]" + bytes(3))


def test_digest_sees_name_order_dtype_shape_and_value():
    base = {"a": np.zeros((2, 3)), "b": 1, "c": ["x", None]}
    different = [
        {"a": np.zeros((3, 2)), "b": 1, "c": ["x", None]},
        {"a": np.zeros((2, 3), np.float32), "b": 1, "c": ["x", None]},
        {"a": np.full((2, 3), -0.0), "b": 1, "c": ["x", None]},
        {"a": np.zeros((2, 3)), "b": True, "c": ["x", None]},
        {"a": np.zeros((2, 3)), "b": 1.0, "c": ["x", None]},
        {"a": np.zeros((2, 3)), "b": 1, "c": ["x"]},
        {"a": np.zeros((2, 3)), "b": "1", "c": ["x", None]},
        {"b": 1, "a": np.zeros((2, 3)), "c": ["x", None]},
        {"A": np.zeros((2, 3)), "b": 1, "c": ["x", None]},
    ]
    assert len({digest(record) for record in [base, *different]}) == len(different) + 1
    assert digest({**base, "a": np.asfortranarray(base["a"])}) == digest(base)
    assert digest({**base, "a": base["a"].astype(">f8")}) == digest(base)


# Names and labels -----------------------------------------------------------------------------------------------------


@given(labels)
def test_tags_bring_back_value_and_type(value):
    back = untag(json.loads(json.dumps(tag(value))))
    assert back == value
    assert type(back) is type(value)
    assert repr(back) == repr(value)


@given(labels, labels)
def test_tags_keep_apart_what_differs(one, other):
    if repr(one) != repr(other):
        assert tag(one) != tag(other)


class Colour(str, enum.Enum):  # noqa: UP042 - a StrEnum's str() is its value, this one's is not
    RED = "red"


class Size(enum.IntEnum):
    SMALL = 1


class Name(str):
    __slots__ = ()

    def __str__(self):
        return "another"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.int8(3), 3),
        (np.float32(0.5), 0.5),
        (np.bool_(True), True),
        (np.str_("a"), "a"),
        (Colour.RED, "red"),
        (Size.SMALL, 1),
        (Name("b"), "b"),
    ],
    ids=repr,
)
def test_subclasses_are_stored_as_plain_values(value, expected):
    back = untag(tag(value))
    assert (type(back), back) == (type(expected), expected)
    assert all(type(part) in (str, int, bool) for part in tag(value))


@pytest.mark.parametrize("value", [b"a", 1j, [1], object(), (1, [2]), frozenset(), np.datetime64("2020-01-01")])
def test_a_name_of_another_type_is_refused(value):
    with pytest.raises(ValueError, match="names and labels are strings, booleans or numbers"):
        tag(value)


@pytest.mark.parametrize("value", [math.nan, np.float64("nan"), (1, math.nan)])
def test_a_name_that_is_nan_is_refused_as_it_equals_nothing(value):
    with pytest.raises(ValueError, match="NaN"):
        tag(value)


# Arguments ------------------------------------------------------------------------------------------------------------


def test_arguments_are_plain_values_all_the_way_down():
    model = KernelRegressor(
        kernel=Gaussian(2.0), loss=Huber(1.0), growth=CDSG(3.0), step=InverseScaling(1.0, 0.5), seed=np.int64(3)
    )
    described = arguments(model)
    assert described == json.loads(json.dumps(described))
    assert described["kernel"] == {"streamkernel.kernels.gaussian.Gaussian": {"bandwidth": 2.0, "structured": False}}
    assert described["seed"] == 3


def test_rebuild():
    model = rebuild(KernelClassifier, {"growth": DSG(), "seed": 4})
    assert (type(model.growth), model.seed, model.block_size) == (DSG, 4, 32)


# A model's record -----------------------------------------------------------------------------------------------------


DEFAULTS = {
    KernelClassifier: {"loss": losses.Log(), "block_size": 4, "batch_size": 8, "seed": 1},
    AdaptiveKernelClassifier: {"n_features": 4, "buffer_size": 90, "seed": 1},
    AdaptiveKernelRegressor: {"n_features": 4, "buffer_size": 90, "seed": 1},
}
KINDS = pytest.mark.parametrize("kind", DEFAULTS)


def _learnt(n=150, kind=KernelClassifier, **given):
    model = kind(**{**DEFAULTS[kind], **given})
    rng = np.random.default_rng(0)
    xs = [{"a": v, "b": v * w, "c": "pqr"[i % 3]} for i, (v, w) in enumerate(rng.normal(size=(n, 2)))]
    model.advance(xs, [bool(x["b"] > 0) for x in xs])
    return model


@KINDS
def test_the_record_is_a_snapshot(kind):
    model = _learnt(n=210, kind=kind)
    record = model.__getstate__()
    before = digest(record)
    for i in range(100):
        model.learn_one({"a": i / 7, "d": 1.0, "c": str(i)}, i % 2 == 0)
    assert digest(record) == before
    model.__setstate__(record)
    assert model.state_digest() == before


@KINDS
def test_a_restored_model_shares_nothing(kind):
    model, other = _learnt(kind=kind), _learnt(n=0, kind=kind)
    record = model.__getstate__()
    other.__setstate__(record)
    before = model.state_digest(), digest(record)
    for i in range(100):
        other.learn_one({"a": i / 7, "d": 1.0, "c": str(i)}, i % 2 == 0)
    assert (model.state_digest(), digest(record)) == before


@KINDS
def test_a_record_of_another_version_is_refused(kind):
    model = _learnt(kind=kind)
    before = model.state_digest()
    for version in (None, 0, 1, 4, "2", 2.0, True):
        with pytest.raises(ValueError, match=f"this state is of version {version}, and this streamkernel reads"):
            model.__setstate__({**model.__getstate__(), "version": version})
    assert model.state_digest() == before


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("growth", DSG()),
        ("growth", CDSG(cap=3.0)),
        ("loss", losses.SquaredHinge()),
        ("kernel", Gaussian(1.0)),
        ("block_size", 8),
        ("dtype", "float64"),
        ("seed", 2),
        ("step", InverseScaling(0.1)),
        ("max_features", None),
        ("regularization", 1e-3),
        ("standardize", False),
        ("max_inputs", 5),
        ("max_classes", 5),
        ("batch_size", 2),
        ("cache_bytes", 0),
    ],
    ids=str,
)
def test_a_record_of_other_arguments_is_refused_by_name(name, value):
    _assert_other_arguments_are_refused(KernelClassifier, name, value)


@pytest.mark.parametrize("kind", [AdaptiveKernelClassifier, AdaptiveKernelRegressor])
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("kernel", Gaussian(1.0)),
        ("n_features", 5),
        ("ridge", 0.7),
        ("drift_rates", (0.0, 1e-3)),
        ("drift_rates", (0.0, 1e-3, 3e-3)),
        ("metric_schedule", (100,)),
        ("metric_schedule", None),
        ("buffer_size", 91),
        ("standardize", False),
        ("max_inputs", 5),
        ("seed", 2),
    ],
    ids=str,
)
def test_a_record_of_other_adaptive_arguments_is_refused_by_name(kind, name, value):
    _assert_other_arguments_are_refused(kind, name, value)


def _assert_other_arguments_are_refused(kind, name, value):
    other = _learnt(n=0, kind=kind, **{name: value})
    before = other.state_digest()
    for record in (_learnt(kind=kind).__getstate__(), from_bytes(to_bytes(_learnt(kind=kind).__getstate__()))):
        with pytest.raises(ValueError, match=f"this state is of a model with {name}="):
            other.__setstate__(record)
    assert other.state_digest() == before


@KINDS
def test_a_record_comes_back_from_its_bytes(kind):
    """As from a checkpoint: JSON knows no tuples."""
    model, other = _learnt(kind=kind), _learnt(n=0, kind=kind)
    other.__setstate__(from_bytes(to_bytes(model.__getstate__())))
    assert other.state_digest() == model.state_digest()


def test_a_record_of_another_estimator_is_refused():
    models = [_learnt(), KernelRegressor(seed=1), _learnt(kind=AdaptiveKernelClassifier)]
    models.append(_learnt(kind=AdaptiveKernelRegressor))
    for one, other in itertools.permutations(models, 2):
        with pytest.raises(ValueError, match="this state is of"):
            other.__setstate__(one.__getstate__())


def _changed(value):
    if isinstance(value, np.ndarray):
        changed = np.nan_to_num(value)
        last = changed.flat[-1]
        changed.flat[-1] = {"b": lambda: ~last, "f": lambda: np.nextafter(last, np.inf)}.get(
            value.dtype.kind, lambda: last + 1
        )()
        return changed
    if isinstance(value, list):
        return value[:-1]
    if isinstance(value, dict):
        return {**value, "more": 1}
    return 1 if value is None else value + 1


@pytest.mark.parametrize(
    "model",
    [
        *(_learnt(kind=kind) for kind in DEFAULTS),
        KernelRegressor(seed=1),
        KernelClassifier(seed=1),
        AdaptiveKernelClassifier(seed=1),
        AdaptiveKernelRegressor(seed=1),
    ],
    ids=lambda model: f"{type(model).__name__}-{model.n_records}",
)
def test_the_digest_sees_every_field(model):
    record = model.__getstate__()
    assert model.state_digest() == digest(record)
    seen = {digest(record)}
    for name, value in record.items():
        empty = value.size == 0 if isinstance(value, np.ndarray) else value == []
        seen.add(digest({**record, name: ["other"] if empty else _changed(value)}))
    assert len(seen) == len(record) + 1


def _reshaped(record):
    """Records that do not fit together, one fault each."""
    for name, value in record.items():
        if not isinstance(value, np.ndarray):
            continue
        yield name, {**record, name: value[:-1]}
        yield name, {**record, name: np.concatenate([value, value[-1:]])}
        yield name, {**record, name: value[..., None]}
        yield name, {**record, name: value.astype("U")}
        yield name, {**record, name: value.tolist()}
        if value.ndim > 1:
            yield name, {**record, name: value[..., :-1]}
            yield name, {**record, name: np.concatenate([value, value[..., -1:]], axis=-1)}


@KINDS
@pytest.mark.parametrize("n", [150, 210])
def test_a_record_whose_arrays_do_not_fit_is_refused_and_changes_nothing(n, kind):
    """Compiled code does not check bounds: a forged checkpoint must not reach it."""
    record = _learnt(n=n, kind=kind).__getstate__()
    other = _learnt(n=50, kind=kind)
    before = other.state_digest()
    cases = list(_reshaped(record))
    assert len(cases) > 30
    for name, forged in cases:
        # It has the inputs that there were at the last metric, fewer where some came later.
        if (
            name == "importance"
            and isinstance(forged[name], np.ndarray)
            and forged[name].shape == (len(record[name]) - 1,)
        ):
            continue
        with pytest.raises(ValueError, match=r"^this state record does not fit: its field"):
            other.__setstate__(forged)
        assert other.state_digest() == before


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_records", "3"),
        ("n_records", -1),
        ("columns", [["number"]]),
        ("columns", [["number", ["str", "a"]], ["number", ["str", "a"]]]),
        ("columns", None),
        ("labels", "ab"),
        ("seed", -1),
        ("seed", 2**64),
        ("seed", 0.5),
        ("bandwidth", math.nan),
        ("bandwidth", -1.0),
        ("scale", 0.0),
        ("scale", math.inf),
        ("t", -1),
        ("n_grown", 10**9),
        ("gamma_0", None),
        ("rehearsal_targets", [["str", "x"]]),
    ],
    ids=str,
)
def test_a_record_with_an_impossible_value_is_refused_and_changes_nothing(name, value):
    _assert_impossible(KernelClassifier, name, value)


def _assert_impossible(kind, name, value):
    record = _learnt(kind=kind).__getstate__()
    other = _learnt(n=50, kind=kind)
    before = other.state_digest()
    with pytest.raises(ValueError, match=r"^this state record does not fit: its field"):
        other.__setstate__({**record, name: value})
    assert other.state_digest() == before


@pytest.mark.parametrize("kind", [AdaptiveKernelClassifier, AdaptiveKernelRegressor])
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_records", "3"),
        ("n_records", -1),
        ("columns", [["number"]]),
        ("columns", None),
        ("seed", -1),
        ("seed", 2**64),
        ("d0", 10**9),
        ("n_linear", 10**9),
        ("bandwidth", 0.0),
        ("bandwidth", math.nan),
        ("bandwidth", -1.0),
    ],
    ids=str,
)
def test_an_adaptive_record_with_an_impossible_value_is_refused_and_changes_nothing(kind, name, value):
    _assert_impossible(kind, name, value)


@pytest.mark.parametrize("value", [-1.0, 2.0, 0.5, 1e18])
def test_a_buffered_label_that_no_class_has_is_refused(value):
    """It would index an array at the next metric, weeks after the checkpoint was read."""
    targets = _learnt(kind=AdaptiveKernelClassifier).__getstate__()["recent_targets"]
    _assert_impossible(AdaptiveKernelClassifier, "recent_targets", np.append(targets[:-1], value))


@pytest.mark.parametrize("kind", [AdaptiveKernelClassifier, AdaptiveKernelRegressor])
@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_an_adaptive_record_that_would_predict_nonsense_is_refused(kind, value):
    """Nothing that a stream does leads there, so it is damage.

    But an input of the trees' window may not have been observed, and a threshold may part those that were from those
    that were not.
    """
    record = _learnt(kind=kind).__getstate__()
    names = [name for name, field in record.items() if isinstance(field, np.ndarray) and field.dtype.kind == "f"]
    accepted = []
    for name in names:
        if (name, value) in (("window_rows", math.nan), ("tree_thresholds", math.inf)):
            continue
        damaged = record[name].copy()
        damaged.flat[0] = value
        try:
            _assert_impossible(kind, name, damaged)
        except pytest.fail.Exception:
            accepted.append(name)
    assert accepted == []


def test_a_machine_that_began_without_inputs_has_a_bandwidth():
    model = AdaptiveKernelClassifier(n_features=4, seed=1)
    model.learn_one({}, "a")
    record = model.__getstate__()
    assert record["bandwidth"] > 0
    with pytest.raises(ValueError, match="its field 'bandwidth'"):
        model.__setstate__({**record, "bandwidth": 0.0})
    model.__setstate__(record)


@pytest.mark.parametrize("step", [1e3, 1e300])
def test_a_model_that_diverges_by_its_users_steps_stays_finite_and_comes_back(step):
    model = KernelRegressor(step=Constant(step), block_size=2, batch_size=1, max_features=8, seed=1, dtype="float64")
    for i in range(200):
        model.learn_one({"a": float(i % 7)}, float(i % 5))
    assert math.isfinite(model.predict_one({"a": 1.0}))
    twin = model.clone()
    twin.__setstate__(from_bytes(to_bytes(model.__getstate__())))
    assert twin.state_digest() == model.state_digest()


@KINDS
def test_a_record_that_lacks_a_field_is_refused_and_changes_nothing(kind):
    record = _learnt(kind=kind).__getstate__()
    other = _learnt(n=50, kind=kind)
    before = other.state_digest()
    for name in record:
        rest = {key: value for key, value in record.items() if key != name}
        with pytest.raises(ValueError, match=r"state"):
            other.__setstate__(rest)
        assert other.state_digest() == before
