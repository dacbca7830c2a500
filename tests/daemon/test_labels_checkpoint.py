"""What waits for labels in a checkpoint: what is written is read, and what would be refused is not written."""

from __future__ import annotations

import json
import math
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.ports import Record
from streamkernel.daemon.base.errors import CheckpointError
from streamkernel.daemon.base.events import Prediction
from streamkernel.daemon.base.moments import Moments
from streamkernel.daemon.labels.join import LabelJoin
from streamkernel.daemon.labels.packed import Packer, PendingRecord
from streamkernel.daemon.labels.snapshot import dump
from tests.daemon.labels_kept import LABEL, TEXT, predictions, taken, typed
from tests.daemon.labels_twin import Counting, Daemon, event


def join_with(**given: Any) -> LabelJoin:
    """A join in which a record, a label and a settled key stand, as it would be with something odd in it."""
    daemon = Daemon(6, Counting(), LabelJoin("id", "y", 3600.0, 6, clock=lambda: 0.0))
    daemon.take([event(False, 0, "p", None, "good"), event(True, 0, "q", "a", "good")])
    if "label" in given:
        early = daemon.join.waiting.pop("q")
        assert early is not None
        daemon.join.waiting.put("q", early._replace(y=given["label"]))
    if "predicted" in given:
        entry = daemon.join.pending.get("p")
        assert entry is not None
        assert entry.data is not None
        daemon.join.release(entry)
        entry.data = daemon.join.packer.pack(PendingRecord("p", 0.0, {"a": 1.0}, Prediction(*given["predicted"])))
    daemon.join.moments = given.get("moments", daemon.join.moments)
    daemon.join.counts.taken += given.get("taken", 0)
    return daemon.join


@pytest.mark.parametrize(
    ("odd", "reason"),
    [
        ({"label": math.nan}, "nan is no label"),
        ({"label": -math.inf}, "-inf is no label"),
        ({"label": None}, "None is no label"),
        ({"label": ["a"]}, "is no label"),
        ({"predicted": (None, {math.nan: 1.0})}, "a name or label is NaN"),
        ({"moments": Moments(3, math.nan, 1.0)}, "the moments of the targets are no numbers"),
        ({"moments": Moments(3, 1.0, math.inf)}, "the moments of the targets are no numbers"),
        ({"taken": 1}, "the account does not add up"),
    ],
)
def test_what_would_be_refused_is_not_written(odd: dict[str, Any], reason: str) -> None:
    with pytest.raises(CheckpointError, match="cannot be written to a checkpoint: ") as caught:
        dump(join_with(**odd))
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)


@given(
    st.floats() | LABEL | st.none() | st.lists(st.integers(), max_size=1),
    st.builds(Moments, st.integers(0), st.floats(), st.floats()),
    predictions(),
)
def test_what_is_written_is_read(label: Any, moments: Moments, predicted: Prediction) -> None:
    odd = join_with(label=label, moments=moments, predicted=predicted)
    try:
        header, blob = dump(odd)
    except CheckpointError:
        return
    again = taken(json.loads(json.dumps(header)), blob)
    assert typed(tuple(again.moments)) == typed((moments.n, moments.mean, moments.m2))
    assert [typed(early.y) for _, early in again.waiting] == [typed(label)]


INPUT = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**80), 2**80) | st.booleans() | TEXT


@st.composite
def kept_records(draw: st.DrawFn) -> PendingRecord:
    """Draw a record that waits; where several models predicted it, the prediction of the first one is published."""
    named = draw(st.dictionaries(st.sampled_from("abcd"), predictions(), max_size=4))
    published = next(iter(named.values())) if named else draw(predictions())
    x = draw(st.dictionaries(TEXT, INPUT, max_size=8))
    lags = draw(st.lists(LABEL | st.floats(allow_nan=False, allow_infinity=False), max_size=3))
    return PendingRecord(draw(TEXT), draw(st.floats(0.0, 1e12)), x, published, named, tuple(lags))


@given(st.lists(kept_records(), max_size=6))
def test_every_bit_comes_back(many: list[PendingRecord]) -> None:
    packer = Packer()
    packed = [packer.pack(kept) for kept in many]
    for kept, data in zip(many, packed, strict=True):
        assert typed(packer.unpack(data)) == typed(kept)
    again = Packer()
    assert typed(tuple(again.load(json.loads(json.dumps(packer.dump())), packed))) == typed(tuple(many))
    assert again.dump() == packer.dump()
    for data in packed:
        packer.release(data)
        again.release(data)
    assert packer.dump() == again.dump() == {"names": [], "classes": []}


def test_a_label_that_equals_a_class_comes_back_as_that_class() -> None:
    packer = Packer()
    kept = PendingRecord("k", 0.0, {}, Prediction(False, {0: 0.25, 1: 0.75}))
    assert typed(packer.unpack(packer.pack(kept)).prediction) == typed(Prediction(0, {0: 0.25, 1: 0.75}))


def test_what_many_share_is_kept_once() -> None:
    packer = Packer()
    draw = random.Random(1)
    sizes = []
    for number in range(1000):
        x = {f"a_field_with_a_name_{i}": draw.gauss(0, 1) for i in range(20)}
        kept = PendingRecord(f"order {number}", 1000.5 * number, x, Prediction("fraud", {"fine": 0.25, "fraud": 0.75}))
        sizes.append(len(packer.pack(kept)))
    assert max(sizes) < 220  # of which the 22 numbers take 176
    tables = packer.dump()
    assert (len(tables["names"]), len(tables["classes"])) == (1, 1)


def test_the_cost_of_a_pending_record_is_bounded() -> None:
    daemon = Daemon(1000, Counting())
    draw = random.Random(2)
    records: list[Record] = []
    for number in range(1000):
        x = {"id": f"transaction-{number:08d}", **{f"field_{i}": draw.gauss(0, 1) for i in range(20)}}
        records.append(event(False, number, None, None, "good")._replace(x=x))
    daemon.take(records)
    header, blob = dump(daemon.join)
    assert header["pending"] == 1000
    assert header["bytes"] == len(blob) < 225 * 1000
