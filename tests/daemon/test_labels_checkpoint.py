"""What waits for labels in a checkpoint: each bit comes back, and whatever a stranger writes there is refused."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamkernel.connectors.ports import Record
from streamkernel.daemon.base.errors import CheckpointError
from streamkernel.daemon.base.events import Prediction
from streamkernel.daemon.base.moments import Moments
from streamkernel.daemon.checkpoints.file import read
from streamkernel.daemon.checkpoints.store import CheckpointStore
from streamkernel.daemon.labels.join import LabelJoin
from streamkernel.daemon.labels.pending_record import PendingRecord, checked, pack, unpack
from streamkernel.daemon.labels.snapshot import dump
from tests.daemon.conftest import Home, Launcher
from tests.daemon.labels_kept import LABEL, TEXT, predictions, taken, typed
from tests.daemon.labels_stream import sections, write_pair
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
        entry.data = pack(PendingRecord("p", 0.0, {"a": 1.0}, {"": Prediction(*given["predicted"])}))
    daemon.join.moments = given.get("moments", daemon.join.moments)
    daemon.join.counts.taken += given.get("taken", 0)
    return daemon.join


@pytest.mark.parametrize(
    ("odd", "reason"),
    [
        ({"label": math.nan}, "nan is not a label"),
        ({"label": -math.inf}, "-inf is not a label"),
        ({"label": None}, "None is not a label"),
        ({"label": ["a"]}, "is not a label"),
        ({"predicted": (None, {math.nan: 1.0})}, "a record is not one: Input should be a"),
        ({"moments": Moments(3, math.nan, 1.0)}, "the moments of the targets are not numbers"),
        ({"moments": Moments(3, 1.0, math.inf)}, "the moments of the targets are not numbers"),
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
    """Draw a record that waits."""
    named = draw(st.dictionaries(st.sampled_from(["", *"abcd"]), predictions(), min_size=1, max_size=4))
    x = draw(st.dictionaries(TEXT, INPUT, max_size=8))
    lags = draw(st.lists(LABEL | st.floats(allow_nan=False, allow_infinity=False), max_size=3))
    return PendingRecord(draw(TEXT), draw(st.floats(0.0, 1e12)), x, named, tuple(lags))


@given(kept_records())
def test_every_bit_comes_back(kept: PendingRecord) -> None:
    row = pack(kept)
    assert typed(unpack(row)) == typed(checked(row)) == typed(kept)


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
    assert len(blob) < 750 * 1000


def full() -> tuple[dict[str, Any], bytes]:
    """A join with some of everything, as a checkpoint has it."""
    daemon = Daemon(6, Counting(), LabelJoin("id", "y", 3600.0, 6, clock=lambda: 0.0))
    keys = [("p", None), ("q", "a"), ("r", None), ("s", None), (None, None), ("t", None), ("u", None), ("p", None)]
    records = [event(False, number, key, y, "good") for number, (key, y) in enumerate(keys)]
    records = [record._replace(x={**record.x, "word": "red", "count": 3, "flag": True}) for record in records]
    labels = [event(True, number, key, "b", "good") for number, key in enumerate(["r", "v", "w", "q", "r", "v"])]
    daemon.take([*records, *labels, event(False, 99, "x", None, "good"), event(False, 100, "y", None, "good")])
    header, blob = dump(daemon.join)
    assert (header["pending"], header["waiting"]) == (6, 2)
    return json.loads(json.dumps(header)), blob


HEAD, REST = full()[1].split(b"\n", 1)


def altered(change: Callable[[dict[str, Any]], Any]) -> tuple[dict[str, Any], bytes]:
    head = json.loads(HEAD)
    change(head)
    return full()[0], json.dumps(head).encode() + b"\n" + REST


def records_altered(change: Callable[[list[Any]], Any], index: int = 0) -> tuple[dict[str, Any], bytes]:
    """The same with one record changed."""
    rows = REST.split(b"\n")
    entry = json.loads(rows[index])
    change(entry)
    rows[index] = json.dumps(entry).encode()
    return full()[0], b"\n".join([HEAD, *rows])


def headed(change: Callable[[dict[str, Any]], Any]) -> tuple[dict[str, Any], bytes]:
    header, blob = full()
    change(header)
    return header, blob


def deep(levels: int = 100_000) -> tuple[dict[str, Any], bytes]:
    return full()[0], b"[" * levels + b"]" * levels + b"\n"


HOSTILE = {
    "empty": lambda: (full()[0], b""),
    "no json": lambda: (full()[0], b"{\n" + REST),
    "nested": deep,
    "cut short": lambda: (full()[0], full()[1][:-1]),
    "a version that is none": lambda: altered(lambda head: head.update(version=True)),
    "nothing known": lambda: altered(lambda head: head.pop("known")),
    "more records": lambda: altered(lambda head: head.update(records=10**15)),
    "no count": lambda: altered(lambda head: head.update(records="6")),
    "a key twice": lambda: altered(lambda head: head["settled"].__setitem__(0, "s")),
    "a waiting key twice": lambda: altered(lambda head: head["waiting"].append(head["waiting"][0])),
    "no outcome": lambda: altered(lambda head: head.update(labeled="")),
    "a label that is none": lambda: altered(lambda head: head["waiting"][0].__setitem__(1, ["a"])),
    "a label without end": lambda: altered(lambda head: head["waiting"][0].__setitem__(1, math.nan)),
    "a stream that is none": lambda: altered(lambda head: head["waiting"][0].__setitem__(3, 5)),
    "an offset that is none": lambda: altered(lambda head: head["waiting"][0].__setitem__(5, -1)),
    "from the future": lambda: altered(lambda head: head["waiting"][0].__setitem__(2, 1e9)),
    "a record that is none": lambda: records_altered(lambda entry: entry.clear()),
    "a record without key": lambda: records_altered(lambda entry: entry.__setitem__(0, "")),
    "a record from the future": lambda: records_altered(lambda entry: entry.__setitem__(1, 1e9)),
    "no prediction": lambda: records_altered(lambda entry: entry.__setitem__(3, [])),
    "two predictions of one model": lambda: records_altered(lambda entry: entry[3].append(entry[3][0])),
    "a label in a list": lambda: records_altered(lambda entry: entry[3].__setitem__(0, [["a"], []])),
    "inputs in a list": lambda: records_altered(lambda entry: entry.__setitem__(2, [1.0])),
    "values nested": lambda: records_altered(lambda entry: entry[2].update(a={"a": 1})),
    "inputs without end": lambda: records_altered(lambda entry: entry[2].update(a=math.inf)),
    "lags that are none": lambda: records_altered(lambda entry: entry.__setitem__(5, [None])),
    "values missing": lambda: records_altered(lambda entry: entry.pop()),
    "an account that does not add up": lambda: headed(lambda header: header["account"].update(kept=99)),
    "a count that is none": lambda: headed(lambda header: header["account"].update(kept=True)),
    "another number of records": lambda: headed(lambda header: header.update(pending=5)),
    "a turn that is none": lambda: headed(lambda header: header.update(label_next=1)),
    "a clock that is none": lambda: headed(lambda header: header.update(clock=math.inf)),
    "moments that are none": lambda: headed(lambda header: header.update(moments=[1, 0.0, -1.0])),
    "endless moments": lambda: headed(lambda header: header.update(moments=[1, 10**400, 1.0])),
    "positions that are none": lambda: headed(lambda header: header.update(positions=[["a", 0]])),
    "dead letters that are none": lambda: headed(lambda header: header.update(recent_dead=["x"])),
}


def test_what_is_whole_is_taken() -> None:
    join = taken(*full())
    assert (len(join.pending), len(join.waiting), len(join.settled)) == (6, 2, 2)
    assert dump(join)[1] == full()[1]
    assert dump(taken(*records_altered(lambda _: None)))[0]["pending"] == 6


def test_what_is_not_is_refused(subtests: pytest.Subtests) -> None:
    for how in HOSTILE:
        with subtests.test(how=how):
            header, blob = HOSTILE[how]()
            with pytest.raises(CheckpointError, match="cannot be restored: ") as caught:
                taken(header, blob)
            assert len(str(caught.value)) < 300


@given(st.data())
def test_damage_is_refused_or_does_not_show(data: st.DataObject) -> None:
    header, blob = full()
    damaged = bytearray(blob)
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(damaged) - 1))
        how = data.draw(st.sampled_from(["set", "cut", "insert"]))
        if how == "set":
            damaged[place] = data.draw(st.integers(0, 255))
        elif how == "cut":
            del damaged[place : place + data.draw(st.integers(1, 5))]
        else:
            damaged[place:place] = data.draw(st.binary(min_size=1, max_size=5))
    try:
        join = taken(header, bytes(damaged))
    except CheckpointError:
        return
    assert join.counts.balances(len(join.pending), len(join.waiting))
    for key, entry in join.pending:
        assert entry.data is not None
        assert unpack(entry.data).key == key


def test_a_forged_checkpoint_is_passed_over_with_one_line(home: Home, launcher: Launcher) -> None:
    write_pair(home.folder, "jsonl", 1000)
    home.configure(**sections())
    assert launcher.call(home, "run", "config.yaml", "--max-records", "700").returncode == 0
    newest = read(sorted((home.folder / "out/state").glob("*.skc"))[-1])
    store = CheckpointStore(home.folder / "out/state", keep=9)
    labels = newest.header["labels"]
    start = newest.header["payload"]["models"]
    reasons = (
        (labels, newest.payload[:start] + b"X" + newest.payload[start + 1 :], "Expecting value: line 1 column 1"),
        ({**labels, "pending": 3}, newest.payload, "the account does not add up"),
    )
    store.lock()
    for forged, payload, _ in reasons:
        store.write({**newest.header, "labels": forged}, payload)
    store.close()
    ended = launcher.call(home, "run", "config.yaml", "--max-records", "0")
    assert ended.returncode == 0
    for _, _, reason in reasons:
        assert f"the late labels of the checkpoint cannot be restored: {reason}" in ended.stderr
    assert ended.stderr.count("the next older checkpoint is tried") == 2
    assert "Traceback" not in ended.stderr
    assert "from record 701 on" in ended.stderr
