"""The source over a cluster in memory: what it hands out, in which order, and where it begins."""

from __future__ import annotations

from typing import Any

import pytest
from fake_kafka import STREAM, FakeCluster, Make, buffers_of, drain, places, until, values

from streamkernel.connectors import Position, SourceError
from streamkernel.connectors.kafka.reading import buffers, reader
from streamkernel.connectors.kafka.reading.source import KafkaSource


class TestReading:
    def test_everything_comes_once_and_in_order(self, cluster: FakeCluster, make: Make) -> None:
        cluster.produce(values(1000))
        source = make()
        source.open()
        records = drain(source, 1000, most=70)
        assert [record.x["n"] for record in records] == list(range(1000))
        assert [record.position for record in records] == [Position(STREAM, 0, offset) for offset in range(1000)]
        assert [record.next.offset for record in records] == list(range(1, 1001))
        assert source.poll(10, 0.01) == []
        cluster.produce(values(3))
        assert len(drain(source, 3)) == 3
        assert (source.exhausted, source.resumable, source.total, source.health_problem) == (False, True, None, None)

    def test_it_must_be_open(self, make: Make) -> None:
        with pytest.raises(SourceError, match="the source is not open"):
            make().poll(1, 0)
        assert make().lag == make().known == {}

    @pytest.mark.parametrize(
        ("options", "level"),
        [({}, "read_committed"), ({"isolation_level": "read_uncommitted"}, "read_uncommitted")],
    )
    def test_what_may_be_taken_back_is_not_read(
        self, cluster: FakeCluster, options: dict[str, str], level: str
    ) -> None:
        made: list[Any] = []

        def connect(_: str, settings: Any, *rest: object) -> Any:
            made.append(settings)
            return cluster.connect(*rest)

        with KafkaSource("t", "broker:9092", options=options, connect=connect) as source:
            source.open()
        assert [settings["isolation_level"] for settings in made] == [level]
        assert made[0]["enable_auto_commit"] is False

    def test_only_the_chosen_partitions_are_read(self, cluster: FakeCluster, make: Make) -> None:
        cluster.__init__(3)  # type: ignore[misc]
        for partition in range(3):
            cluster.produce(values(10), partition)
        source = make(partitions=[2, 0])
        source.open()
        assert {record.position.partition for record in drain(source, 20)} == {0, 2}

    def test_a_partition_that_is_not_there(self, make: Make) -> None:
        with pytest.raises(SourceError, match=r"no partition 1, 7.* 0 to 0"):
            make(partitions=[0, 1, 7]).open()

    def test_what_is_buffered_is_bounded(
        self, cluster: FakeCluster, make: Make, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        cluster.produce([b'{"a": "%s"}' % (b"x" * 1000)] * 3000)
        monkeypatch.setattr(buffers, "MOST_BYTES", 500_000)
        source = make()
        source.open()
        source.poll(1, 1.0)
        waiting = buffers_of(source)
        # It stops at the first hundred, as they are read, that reach half a megabyte.
        until(lambda: waiting.waiting(0) == (499, 500))
        assert not waiting.wait_for_room(0.05)
        assert source.lag == {("t", 0): 2999}
        drain(source, 2999)
        assert source.lag == {("t", 0): 0}

    @pytest.mark.parametrize("parts", [{"key": b"k" * 10_000}, {"headers": [("h", b"v" * 9999)]}])
    def test_keys_and_headers_count(
        self, cluster: FakeCluster, make: Make, monkeypatch: pytest.MonkeyPatch, parts: dict[str, Any]
    ) -> None:
        cluster.produce([None] * 1000, **parts)
        monkeypatch.setattr(buffers, "MOST_BYTES", 500_000)
        source = make()
        source.open()
        source.poll(1, 1.0)
        waiting = buffers_of(source)
        until(lambda: waiting.waiting(0) == (99, 100))
        assert not waiting.wait_for_room(0.05)
        drain(source, 999)
        monkeypatch.setattr(buffers, "MOST_BYTES", 1)
        until(lambda: waiting.wait_for_room(0.0))  # there is room only for nothing

    def test_lag_counts_what_was_read_ahead_and_what_was_not(self, cluster: FakeCluster, make: Make) -> None:
        cluster.__init__(2)  # type: ignore[misc]
        cluster.produce(values(10_000), 0)
        cluster.produce(values(5), 1)
        source = make()
        source.open()
        assert source.lag == {("t", 0): 10_000, ("t", 1): 5}
        taken = {0: 0, 1: 0}
        for _ in range(40):
            for record in source.poll(100, 1.0):
                taken[record.position.partition] += 1
            assert source.lag == {("t", 0): 10_000 - taken[0], ("t", 1): 5 - taken[1]}
            assert source.known == {("t", 0): 10_000, ("t", 1): 5}

    def test_lag_grows_while_nothing_is_taken(
        self, cluster: FakeCluster, make: Make, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(reader, "END_SECONDS", 0.05)
        cluster.produce(values(6000))
        source = make()
        source.open()
        waiting = buffers_of(source)
        until(lambda: not waiting.wait_for_room(0.0))
        cluster.produce(values(500))
        until(lambda: source.lag == {("t", 0): 6500})

    def test_holes_in_the_offsets_are_passed_over(self, cluster: FakeCluster, make: Make) -> None:
        cluster.produce(values(10))
        cluster.skip(0, [3, 4, 9])
        source = make()
        source.open()
        assert [record.position.offset for record in drain(source, 7)] == [0, 1, 2, 5, 6, 7, 8]
        until(lambda: source.lag == {("t", 0): 0})  # what stands at the end is not a record

    def test_what_cannot_be_read_is_a_fault_at_its_place(
        self, cluster: FakeCluster, make: Make, caplog: pytest.LogCaptureFixture
    ) -> None:
        cluster.produce(values(250))
        cluster.damage(0, [0, 120, 121, 249])
        source = make()
        source.open()
        records = drain(source, 250, most=50)
        assert [record.position.offset for record in records] == list(range(250))
        faults = {record.position.offset: record.fault for record in records if record.fault is not None}
        assert list(faults) == [0, 120, 121, 249]
        assert {fault.reason for fault in faults.values()} == {"corrupt"}
        assert "partition 0: offsets 120 to 120 cannot be read and are dead letters: it is damaged" in caplog.text


class TestBeginning:
    def test_the_first_run_begins_with_the_first_record_there_is(self, cluster: FakeCluster, make: Make) -> None:
        cluster.produce(values(10))
        cluster.remove(0, 4)
        source = make()
        source.open()
        assert source.starting_offsets == places(4)
        assert drain(source, 6)[0].position.offset == 4

    def test_or_with_the_next_one_to_come(self, cluster: FakeCluster, make: Make) -> None:
        cluster.produce(values(10))
        source = make(start="latest")
        source.open()
        assert source.starting_offsets == places(10)
        cluster.produce(values(2))
        assert drain(source, 2)[0].position.offset == 10

    def test_later_runs_go_on_where_the_checkpoint_says(self, cluster: FakeCluster, make: Make) -> None:
        cluster.produce(values(10))
        source = make(start="latest")
        source.open(places(7))
        assert source.starting_offsets == {}
        assert [record.position.offset for record in drain(source, 3)] == [7, 8, 9]

    @pytest.mark.parametrize("start", ["earliest", "latest"])
    def test_a_partition_that_is_new_to_the_checkpoint_is_read_whole(
        self, cluster: FakeCluster, make: Make, start: str
    ) -> None:
        cluster.__init__(2)  # type: ignore[misc]
        cluster.produce(values(10), 0)
        cluster.produce(values(5), 1)
        source = make(start=start)
        source.open({0: Position(STREAM, 0, 10)})
        assert source.starting_offsets == {1: Position(STREAM, 1, 0)}
        assert [record.position[1:3] for record in drain(source, 5)] == [(1, offset) for offset in range(5)]

    @pytest.mark.parametrize(
        ("stream", "message"),
        [
            ("other/t/1", "the checkpoint was taken from the cluster other, this is cluster: use that one"),
            ("cluster/u/2", "the checkpoint was taken from the topic u: use that one again, or start over"),
            (
                "cluster/t/0",
                "the topic was deleted and created again since the checkpoint: use that one again, or start",
            ),
        ],
    )
    def test_a_checkpoint_of_something_else(self, make: Make, stream: str, message: str) -> None:
        with pytest.raises(SourceError, match=message):
            make().open({0: Position(stream, 0, 0)})

    def test_a_checkpoint_beyond_the_end(self, cluster: FakeCluster, make: Make) -> None:
        cluster.produce(values(5))
        with pytest.raises(SourceError, match=r"partition 0 ends at offset 5, before offset 6, where"):
            make().open(places(6))
