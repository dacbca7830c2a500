"""The parts late labels are made of: two sources in turn, and what is held under keys and can be put back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamkernel.connectors.memory import MemorySource
from streamkernel.connectors.ports import Position, Record, Source, SourceError
from streamkernel.daemon.base.events import LabelRecord
from streamkernel.daemon.labels import keyed_queue
from streamkernel.daemon.labels.keyed_queue import KeyedQueue, UndoLog
from streamkernel.daemon.labels.keys import key_of
from streamkernel.daemon.labels.merged_sources import MergedSources


def memory(count: int) -> MemorySource:
    source = MemorySource([({}, None)] * count)
    source.open()
    return source


def order(alternation: MergedSources, cuts: list[int]) -> str:
    """What comes, r for a record and l for a label."""
    came = ""
    while not alternation.exhausted:
        for record in alternation.poll(cuts[len(came) % len(cuts)], timeout=0.0):
            came += "l" if isinstance(record, LabelRecord) else "r"
    return came


class TestAlternation:
    @given(st.integers(0, 40), st.integers(0, 40), st.lists(st.integers(1, 9), min_size=1), st.booleans())
    def test_files_that_end_always_come_in_the_same_order(
        self, records: int, labels: int, cuts: list[int], label_next: bool
    ) -> None:
        pairs = min(records, labels)
        expected = ("lr" if label_next else "rl") * pairs + "r" * (records - pairs) + "l" * (labels - pairs)
        assert order(MergedSources(memory(records), memory(labels), label_next), cuts) == expected

    def test_positions_and_contents_stay_what_they_were(self) -> None:
        records, labels = (MemorySource([({"a": float(i)}, "y")]) for i in range(2))
        for source in (records, labels):
            source.open()
        record, label = MergedSources(records, labels).poll(2, timeout=0.0)
        assert (type(record), type(label)) == (Record, LabelRecord)
        places = Position("memory", 0, 0), Position("memory", 0, 1)
        assert tuple(label) == ({"a": 1.0}, "y", *places, label[4], None, False, None)

    def test_one_poll_has_records_of_one_partition(self) -> None:
        class Partitions(Growing):
            def poll(self, max_records: int, timeout: float) -> list[Record]:
                self.partition = 1 - self.partition
                return [
                    record._replace(position=Position("p", self.partition, 0))
                    for record in super().poll(min(3, max_records), timeout)
                ]

            partition = 0

        records, labels = Partitions(), Growing()
        records.grow(12)
        labels.grow(30)
        both = MergedSources(records, labels)
        for _ in range(5):
            came = both.poll(20, timeout=0.0)
            assert came
            assert len({record.position.partition for record in came if type(record) is Record}) <= 1

    def test_a_silent_source_holds_nobody_up(self) -> None:
        records, labels = Growing(), Growing()
        both = MergedSources(records, labels)
        assert both.poll(10, timeout=0.0) == []
        labels.grow(3)
        assert [type(one) for one in both.poll(10, timeout=0.0)] == [LabelRecord] * 3
        records.grow(4)
        assert [type(one) for one in both.poll(10, timeout=0.0)] == [Record] * 4
        records.grow(2)
        labels.grow(2)
        came = both.poll(10, timeout=0.0)
        assert sorted(type(one).__name__ for one in came) == ["LabelRecord"] * 2 + ["Record"] * 2
        assert type(came[0]) is LabelRecord  # the last one was a record
        assert not both.exhausted

    def test_a_flood_of_one_leaves_the_other_its_turns(self) -> None:
        records, labels = Growing(), Growing()
        both = MergedSources(records, labels)
        labels.grow(10_000)
        for _ in range(50):
            records.grow(1)
            came = [both.poll(100, timeout=0.0) for _ in range(2)]
            assert sum(type(one) is Record for one in came[0] + came[1]) == 1
        assert labels.handed_out >= 50

    def test_it_waits_for_either(self) -> None:
        asked: list[tuple[str, float]] = []

        class Watched(Growing):
            def __init__(self, name: str) -> None:
                super().__init__()
                self.name = name

            def poll(self, max_records: int, timeout: float) -> list[Record]:
                asked.append((self.name, timeout))
                return super().poll(max_records, timeout)

        MergedSources(Watched("records"), Watched("labels")).poll(10, timeout=0.2)
        assert [name for name, timeout in asked if timeout == 0.1] == ["records", "labels"]
        assert sum(timeout for _, timeout in asked) == pytest.approx(0.2)

    def test_a_source_that_fails_says_so(self) -> None:
        class Failing(Growing):
            def poll(self, max_records: int, timeout: float) -> list[Record]:  # noqa: ARG002
                raise SourceError("the disk is gone")

        with pytest.raises(SourceError, match="the disk is gone"):
            MergedSources(memory(5), Failing()).poll(10, timeout=0.0)


class Growing(Source):
    """A source that has what it was given, and never ends."""

    def __init__(self) -> None:
        self.left = self.handed_out = 0

    def grow(self, count: int) -> None:
        self.left += count

    def poll(self, max_records: int, timeout: float) -> list[Record]:  # noqa: ARG002
        count = min(self.left, max_records)
        self.left -= count
        self.handed_out += count
        start = Position("growing", 0, self.handed_out)
        return [Record({}, None, start, start, b"")] * count

    def open(self, positions: Mapping[int, Position] | None = None) -> None: ...

    def close(self) -> None: ...

    def describe(self) -> str:
        return "growing"

    exhausted = property(lambda _: False)
    resumable = property(lambda _: True)
    total = property(lambda _: None)


def test_a_key_that_comes_back_is_the_newest() -> None:
    values: KeyedQueue[list[int]] = KeyedQueue(UndoLog())
    values.put("a", [1])
    values.put("b", [2])
    values.pop("a")
    values.put("a", [3])
    assert list(values) == [("b", [2]), ("a", [3])]
    assert values.oldest() == values.pop_oldest() == ("b", [2])
    assert (len(values), "b" in values, values.oldest()) == (1, False, ("a", [3]))


def test_what_is_taken_out_of_the_middle_leaves_no_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keyed_queue, "FEW", 10)
    values: KeyedQueue[list[int]] = KeyedQueue(UndoLog())
    values.put("the first", [0])
    for number in range(1000):
        values.put(str(number), [number])
        values.pop(str(number))
        values.tidy()
        assert len(values._places) < 20
    assert list(values) == [("the first", [0])]


@pytest.mark.parametrize(
    ("value", "key"),
    [
        ("17", "17"),
        (17, "17"),
        (17.0, "17"),
        (-0.0, "0"),
        (0.5, "0.5"),
        ("017", "017"),
        (2.0**53 - 1, "9007199254740991"),
        (2.0**53, None),
        (-(2.0**53), None),
        (2**60 + 1, "1152921504606846977"),
        (False, "false"),
        (None, None),
        (" a", " a"),
    ],
)
def test_a_key_is_its_text(value: Any, key: str | None) -> None:
    assert key_of(value) == key
