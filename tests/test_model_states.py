"""The state of a model: a snapshot that brings back a model of the same arguments, and no other."""

import numpy as np
import pytest
from river.optim.schedulers import InverseScaling

from streamkernel import (
    KernelClassifier,
    KernelRegressor,
    losses,
)
from streamkernel.estimators.base import VERSION
from streamkernel.fields import OtherVersionError
from streamkernel.growth import CDSG, DSG
from streamkernel.kernels import Gaussian
from streamkernel.state import digest, from_bytes, to_bytes
from tests.learned import DEFAULTS, KINDS, learned, state_of, target_of


@KINDS
def test_the_record_is_a_snapshot(kind):
    model = learned(n=210, kind=kind)
    record = model.__getstate__()
    before = digest(record)
    for i in range(100):
        model.learn_one({"a": i / 7, "d": 1.0, "c": str(i)}, target_of(kind, i % 2 == 0))
    assert digest(record) == before
    model.__setstate__(record)
    assert model.state_digest() == before


@KINDS
def test_a_record_of_another_version_is_refused(kind):
    model = learned(kind=kind)
    before, before_state = model.state_digest(), model.__getstate__()
    for version in (*range(VERSION), VERSION + 1, 10**400):
        way = "learn the model again" if version < VERSION else "update streamkernel"
        with pytest.raises(OtherVersionError) as refused:
            model.__setstate__({**before_state, "version": version})
        shown = str(version) if version < 10**80 else f"1{'0' * 79}..."
        assert str(refused.value) == f"this state has version {shown}, this streamkernel reads {VERSION}: {way}"
    for version in (None, str(VERSION), float(VERSION), True):
        with pytest.raises(ValueError, match="its field 'version' is missing or impossible"):
            model.__setstate__({**before_state, "version": version})
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


def _assert_other_arguments_are_refused(kind, name, value):
    other = learned(n=0, kind=kind, **{name: value})
    before = other.state_digest()
    for record in (state_of(kind), from_bytes(to_bytes(state_of(kind)))):
        with pytest.raises(ValueError, match=f"this state is from a model with {name}="):
            other.__setstate__(record)
    assert other.state_digest() == before


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
    ("kind", "n"), [*((kind, 150) for kind in DEFAULTS), *((kind, 0) for kind in (*DEFAULTS, KernelRegressor))]
)
def test_the_digest_sees_every_field(kind, n):
    model = learned(n, kind) if n else kind(seed=1)
    record = model.__getstate__()
    assert model.state_digest() == digest(record)
    seen = {digest(record)}
    for name, value in record.items():
        empty = value.size == 0 if isinstance(value, np.ndarray) else value == []
        seen.add(digest({**record, name: ["other"] if empty else _changed(value)}))
    assert len(seen) == len(record) + 1
