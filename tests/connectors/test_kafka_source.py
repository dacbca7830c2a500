"""The source over a cluster in memory: what it hands out, in which order, and through which troubles."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fake_kafka import FakeCluster

from connectors import Position, Record, SourceError
from connectors.kafka.base.client import Unreachable
from connectors.kafka.reading import buffers, reader
from connectors.kafka.reading.source import KafkaSource

Make = Callable[..., KafkaSource]
STREAM = "cluster/t/1"


@pytest.fixture
def cluster() -> FakeCluster:
    return FakeCluster()


@pytest.fixture
def make(cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    """Sources of that cluster, which look round often."""
    monkeypatch.setattr(reader, "_LOOK_SECONDS", 0.02)
    monkeypatch.setattr(reader, "_POLL_SECONDS", 0.02)
    made: list[KafkaSource] = []

    def make(**settings: Any) -> KafkaSource:
        made.append(KafkaSource("t", "broker:9092", connect=cluster.connect, **settings))
        return made[-1]

    yield make
    for source in made:
        source.close()


def values(count: int, start: int = 0) -> list[bytes]:
    return [b'{"n": %d}' % number for number in range(start, start + count)]


def drain(source: KafkaSource, count: int, most: int = 1000) -> list[Record]:
    """Poll until so many records came; each poll is of one partition."""
    records: list[Record] = []
    deadline = time.monotonic() + 20
    while len(records) < count:
        assert time.monotonic() < deadline, f"only {len(records)} of {count} came"
        polled = source.poll(most, 0.1)
        assert len(polled) <= most
        assert len({record.position[:2] for record in polled}) <= 1
        records += polled
    assert len(records) == count
    return records


def places(*offsets: int) -> dict[int, Position]:
    return {partition: Position(STREAM, partition, offset) for partition, offset in enumerate(offsets)}


def until(condition: Callable[[], bool]) -> None:
    """Wait for something that happens on another thread."""
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def buffers_of(source: KafkaSource) -> buffers.Buffers:
    """Look at what was read and not handed out yet."""
    assert source._reader is not None
    assert source._reader.buffers is not None
    return source._reader.buffers


def failing(source: KafkaSource, message: str) -> None:
    """Poll until it fails."""
    with pytest.raises(SourceError, match=re.escape(message)):  # noqa: PT012 - how long it takes is not said
        for _ in range(200):
            source.poll(10, 0.1)


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

    def test_partitions_have_their_turns(self, cluster: FakeCluster, make: Make) -> None:
        cluster.__init__(3)  # type: ignore[misc]
        for partition in range(3):
            cluster.produce(values(2000), partition)
        source = make()
        source.open()
        records = drain(source, 6000, most=100)
        turns = [records[index].position.partition for index in range(0, 6000, 100)]
        for begin in range(0, 40, 12):
            assert {turns.count(one) > 0 for one in turns[begin : begin + 12]} == {True}
            assert len(set(turns[begin : begin + 12])) == 3
        for partition in range(3):
            offsets = [record.position.offset for record in records if record.position.partition == partition]
            assert offsets == list(range(2000))

    def test_only_the_chosen_partitions_are_read(self, cluster: FakeCluster, make: Make) -> None:
        cluster.__init__(3)  # type: ignore[misc]
        for partition in range(3):
            cluster.produce(values(10), partition)
        source = make(partitions=[2, 0])
        source.open()
        assert {record.position.partition for record in drain(source, 20)} == {0, 2}

    def test_a_partition_that_is_not_there(self, make: Make) -> None:
        with pytest.raises(SourceError, match="the topic has no partition 1, 7, only 0 to 0: look at partitions"):
            make(partitions=[0, 1, 7]).open()

    def test_what_is_buffered_is_bounded(
        self, cluster: FakeCluster, make: Make, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        cluster.produce([b'{"a": "%s"}' % (b"x" * 1000)] * 3000)
        monkeypatch.setattr(buffers, "_MOST_BYTES", 500_000)
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

    @pytest.mark.parametrize(
        "parts", [{"key": b"k" * 10_000}, {"headers": [("", None)] * 200}, {"headers": [("h", b"v" * 9999)]}]
    )
    def test_keys_and_headers_count(
        self, cluster: FakeCluster, make: Make, monkeypatch: pytest.MonkeyPatch, parts: dict[str, Any]
    ) -> None:
        cluster.produce([None] * 1000, **parts)
        monkeypatch.setattr(buffers, "_MOST_BYTES", 500_000)
        source = make()
        source.open()
        source.poll(1, 1.0)
        waiting = buffers_of(source)
        until(lambda: waiting.waiting(0) == (99, 100))
        assert not waiting.wait_for_room(0.05)
        drain(source, 999)
        until(lambda: waiting._bytes == 0)

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
        monkeypatch.setattr(reader, "_END_SECONDS", 0.05)
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
        assert [record.position[1:] for record in drain(source, 5)] == [(1, offset) for offset in range(5)]

    @pytest.mark.parametrize(
        ("stream", "message"),
        [
            ("other/t/1", "the checkpoint was taken from the cluster other, this is cluster: go back"),
            ("cluster/u/2", "the checkpoint was taken from the topic u: go back to that one, or start anew"),
            ("cluster/t/0", "the topic was deleted and made anew since the checkpoint: go back to that one, or start"),
        ],
    )
    def test_a_checkpoint_of_something_else(self, make: Make, stream: str, message: str) -> None:
        with pytest.raises(SourceError, match=message):
            make().open({0: Position(stream, 0, 0)})

    def test_a_checkpoint_beyond_the_end(self, cluster: FakeCluster, make: Make) -> None:
        cluster.produce(values(5))
        with pytest.raises(SourceError, match="partition 0 ends at offset 5, before offset 6 where it is to be"):
            make().open(places(6))


class TestGaps:
    def test_retention_passed_the_checkpoint(self, cluster: FakeCluster, make: Make) -> None:
        cluster.produce(values(2000))
        cluster.remove(0, 1500)
        message = (
            r"kafka topic t at broker:9092: partition 0: offsets 20 to 1499 \(1,480 of them\) were removed by "
            r"retention before they were read: set on_gap: skip to go on without them, or start anew with --fresh"
        )
        with pytest.raises(SourceError, match=message):
            make().open(places(20))

    def test_or_they_are_skipped(self, cluster: FakeCluster, make: Make, caplog: pytest.LogCaptureFixture) -> None:
        cluster.produce(values(2000))
        cluster.remove(0, 1500)
        source = make(on_gap="skip")
        source.open(places(20))
        assert drain(source, 500)[0].position.offset == 1500
        (line,) = [record for record in caplog.records if record.levelno == logging.ERROR]
        assert "offsets 20 to 1499 (1,480 of them) were removed by retention before they were read" in line.message

    @pytest.mark.parametrize("on_gap", ["stop", "skip"])
    def test_retention_passes_while_it_is_read(
        self, cluster: FakeCluster, make: Make, caplog: pytest.LogCaptureFixture, on_gap: str
    ) -> None:
        cluster.produce(values(100))
        source = make(on_gap=on_gap)
        source.open()
        drain(source, 100)
        with cluster.changed:
            cluster.produce(values(50))
            cluster.remove(0, 130)
        gap = "partition 0: offsets 100 to 129 (30 of them) were removed by retention"
        if on_gap == "stop":
            failing(source, gap)
        else:
            assert drain(source, 20)[0].position.offset == 130
            assert gap in caplog.text

    def test_what_came_before_a_failure_is_handed_out_first(self, cluster: FakeCluster, make: Make) -> None:
        cluster.produce(values(300))
        source = make()
        source.open()
        waiting = buffers_of(source)
        until(lambda: waiting.reached() == {0: 300})
        cluster.failure = "the topic was deleted while it was read"
        until(lambda: waiting._woken)
        assert len(drain(source, 300, most=50)) == 300
        failing(source, "kafka topic t at broker:9092: the topic was deleted while it was read")


class TestOutages:
    def test_a_broker_that_is_away_at_the_start_is_waited_for(
        self, cluster: FakeCluster, make: Make, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.INFO)
        cluster.produce(values(5))
        cluster.down = "connection refused"
        source = make(start="latest")
        source.open()
        assert source.poll(10, 0.05) == []
        assert source.health_problem == "kafka topic t at broker:9092: no broker answers (connection refused)"
        assert (source.starting_offsets, source.lag) == ({}, {})
        cluster.down = None
        until(lambda: source.health_problem is None)
        assert source.poll(10, 0.05) == []
        assert source.starting_offsets == places(5)
        lines = [record.message for record in caplog.records]
        assert len(lines) == 2
        assert lines[0] == (
            "kafka topic t at broker:9092: no broker answers (connection refused): trying again until one does"
        )
        assert re.fullmatch(r"kafka topic t at broker:9092: a broker answers again after \d+ s", lines[1])

    def test_a_broker_that_goes_away_is_waited_for(
        self, cluster: FakeCluster, make: Make, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.INFO)
        cluster.produce(values(5))
        source = make()
        source.open()
        drain(source, 5)
        for _ in range(2):
            caplog.clear()
            cluster.down = "connection refused"
            until(lambda: source.health_problem is not None)
            assert source.poll(10, 0.05) == []
            cluster.down = None
            cluster.produce(values(5))
            drain(source, 5)
            until(lambda: source.health_problem is None)
            assert [record.message.split(": ", 1)[1][:15] for record in caplog.records] == [
                "no broker answe",
                "a broker answer",
            ]
        assert cluster.connections == 1

    def test_after_a_long_silence_the_cluster_is_looked_for_anew(
        self, cluster: FakeCluster, make: Make, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(reader, "_ANEW_SECONDS", 0.4)
        cluster.produce(values(5))
        source = make()
        source.open()
        drain(source, 5)
        cluster.down = "connection refused"
        until(lambda: cluster.closed == 1)
        cluster.produce(values(5))
        cluster.down = None
        assert [record.position.offset for record in drain(source, 5)] == [5, 6, 7, 8, 9]
        assert cluster.connections == 2
        assert cluster.closed == 1

    def test_it_is_waited_for_for_months(
        self, cluster: FakeCluster, make: Make, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(reader, "_LONGEST_PAUSE", 0.0)
        attempts = []
        monkeypatch.setattr(cluster, "connect", lambda *_: attempts.append(1) or refused())

        def refused() -> None:
            raise Unreachable("connection refused")

        source = make()
        source.open()
        until(lambda: len(attempts) > 3000)
        assert source.poll(10, 0.01) == []

    def test_another_topic_after_an_outage(
        self, cluster: FakeCluster, make: Make, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(reader, "_ANEW_SECONDS", 0.4)
        source = make()
        source.open()
        cluster.down = "connection refused"
        until(lambda: cluster.closed == 1)
        cluster.identity = "cluster/t/2"
        cluster.down = None
        failing(source, "the topic was deleted and made anew")

    def test_what_is_hopeless_at_the_start_fails_at_once(self, cluster: FakeCluster, make: Make) -> None:
        cluster.failure = "the cluster has no such topic"
        source = make()
        with pytest.raises(SourceError, match="kafka topic t at broker:9092: the cluster has no such topic"):
            source.open()

    def test_an_error_nobody_thought_of_is_told(
        self, cluster: FakeCluster, make: Make, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(cluster, "connect", lambda *_: 1 / 0)
        with pytest.raises(SourceError, match="the client of Kafka failed: ZeroDivisionError: division by zero"):
            make().open()


class TestLoggedOrder:
    def test_a_restart_repeats_what_the_checkpoint_does_not_hold(
        self, cluster: FakeCluster, make: Make, tmp_path: Path
    ) -> None:
        cluster.__init__(3)  # type: ignore[misc]
        for number in range(30):
            cluster.produce(values(17), number % 3)
        log = tmp_path / "order.log"
        source = make(order_log=log)
        source.open(places(0, 0, 0))
        before = drain(source, 510, most=13)
        source.close()
        for done in (0, 100, 333, 510):
            positions = places(0, 0, 0) | {record.next.partition: record.next for record in before[:done]}
            source.open(positions)
            assert [record.position for record in drain(source, 510 - done, most=29)] == [
                record.position for record in before[done:]
            ]
            source.close()

    def test_what_is_waited_for_comes_however_much_else_is_there(
        self, cluster: FakeCluster, make: Make, tmp_path: Path
    ) -> None:
        """The buffers are full of one partition, and the log says that it is the turn of the other."""
        cluster.__init__(2)  # type: ignore[misc]
        cluster.produce(values(10_000), 1)
        log = tmp_path / "order.log"
        source = make(order_log=log)
        source.open(places(0, 0))
        first = drain(source, 1, most=1)
        cluster.produce(values(100), 0)
        before = first + drain(source, 10_099, most=500)
        source.close()
        source.open(places(0, 0))
        assert [one.position for one in drain(source, 10_100, most=500)] == [one.position for one in before]

    def test_a_checkpoint_shortens_the_log(self, cluster: FakeCluster, make: Make, tmp_path: Path) -> None:
        cluster.__init__(2)  # type: ignore[misc]
        cluster.produce(values(50), 0)
        cluster.produce(values(50), 1)
        log = tmp_path / "order.log"
        source = make(order_log=log, checkpoints_kept=1)
        source.open(places(0, 0))
        records = drain(source, 100)
        assert log.read_bytes() != b""
        source.saved({record.next.partition: record.next for record in records})
        assert log.read_bytes() == b""

    def test_one_partition_needs_no_log(self, cluster: FakeCluster, make: Make, tmp_path: Path) -> None:
        cluster.produce(values(50))
        source = make(order_log=tmp_path / "order.log")
        source.open()
        drain(source, 50)
        assert list(tmp_path.iterdir()) == []

    def test_a_folder_that_is_not_there(self, cluster: FakeCluster, make: Make, tmp_path: Path) -> None:
        cluster.__init__(2)  # type: ignore[misc]
        with pytest.raises(SourceError, match=r"order.log: cannot be written: No such file or directory"):
            make(order_log=tmp_path / "nowhere" / "order.log").open()
