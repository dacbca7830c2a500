"""Records that wait for labels as bytes: every bit comes back, and what many share is kept once."""

from __future__ import annotations

import json
import random
from types import MappingProxyType

from hypothesis import given
from hypothesis import strategies as st

from connectors.ports import Record
from streamkernel.daemon.base.events import Prediction
from streamkernel.daemon.labels.packed import Packer, PendingRecord
from streamkernel.daemon.labels.snapshot import dump
from tests.daemon.labels_kept import LABEL, TEXT, predictions, typed
from tests.daemon.labels_twin import Counting, Daemon, event

INPUT = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**80), 2**80) | st.booleans() | TEXT

# What each of several models predicted is in test_several_models_elsewhere.
KEPT = st.builds(
    PendingRecord,
    TEXT,
    st.floats(0.0, 1e12),
    st.dictionaries(TEXT, INPUT, max_size=8),
    predictions(),
    named=st.just(MappingProxyType({})),
    lags=st.lists(LABEL | st.floats(allow_nan=False, allow_infinity=False), max_size=3).map(tuple),
)


@given(st.lists(KEPT, max_size=6))
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
