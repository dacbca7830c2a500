"""Partitions that are added to a topic, and where the first run begins in those that are idle."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from fake_kafka import STREAM, FakeCluster, FakeTopic, Make, drain, failing, places, until, values

from streamkernel.connectors import Position
from streamkernel.connectors.kafka.base.client import Unreachable

PLACE = "kafka topic t at broker:9092"


class TestAdded:
    @pytest.mark.parametrize("start", ["earliest", "latest"])
    def test_they_are_read_from_their_first_record_on(
        self, cluster: FakeCluster, make: Make, caplog: pytest.LogCaptureFixture, start: str
    ) -> None:
        caplog.set_level(logging.INFO)
        source = make(start=start)
        source.open()
        cluster.add(1, 2)
        cluster.produce(values(5), 1)
        records = drain(source, 5)
        cluster.produce(values(3), 2)
        cluster.produce(values(2), 0)
        records += drain(source, 5)
        assert sorted(record.position[1:3] for record in records) == sorted(
            [(1, offset) for offset in range(5)] + [(2, offset) for offset in range(3)] + [(0, 0), (0, 1)]
        )
        assert source.starting_offsets == places(0, 0, 0)
        assert source.lag == {("t", 0): 0, ("t", 1): 0, ("t", 2): 0}
        assert source.known == {("t", 0): 2, ("t", 1): 5, ("t", 2): 3}
        assert [record.message for record in caplog.records] == [
            f"{PLACE} has new partitions, which are read from their first record on: 1, 2"
        ]

    def test_their_beginnings_are_known_before_their_records(self, cluster: FakeCluster, make: Make) -> None:
        source = make()
        source.open(places(0))
        assert source.starting_offsets == {}
        cluster.produce(values(5))
        drain(source, 5)
        with cluster.changed:
            cluster.add(1)
            cluster.produce(values(5), 1)
        drain(source, 5)
        assert source.starting_offsets == {1: Position(STREAM, 1, 0)}

    @pytest.mark.parametrize("down", [False, True])
    @pytest.mark.parametrize("on_gap", ["stop", "skip"])
    def test_what_retention_took_of_them_first_is_a_gap(
        self, cluster: FakeCluster, make: Make, caplog: pytest.LogCaptureFixture, on_gap: str, down: bool
    ) -> None:
        source = make(on_gap=on_gap)
        if not down:
            source.open(places(0))
        with cluster.changed:
            cluster.add(1)
            cluster.produce(values(800), 1)
            cluster.remove(1, 200)
        gap = "partition 1: offsets 0 to 199 (200 of them) were removed by retention before they were read"
        if down and on_gap == "stop":
            with pytest.raises(Exception, match="offsets 0 to 199"):
                source.open(places(0))
            return
        if down:
            source.open(places(0))
        if on_gap == "stop":
            failing(source, gap)
        else:
            assert drain(source, 600)[0].position == Position(STREAM, 1, 200)
            assert gap in caplog.text

    def test_one_that_is_chosen_later_begins_with_what_is_there(self, cluster: FakeCluster, make: Make) -> None:
        """It was left out before, and what it lost meanwhile is nobody's loss."""
        cluster.add(1)
        cluster.produce(values(10), 1)
        cluster.remove(1, 4)
        source = make(partitions=[0, 1])
        source.open(places(0))
        assert drain(source, 6)[0].position == Position(STREAM, 1, 4)

    def test_those_that_nobody_asked_for_are_left_out(
        self, cluster: FakeCluster, make: Make, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.INFO)
        source = make(partitions=[0])
        source.open()
        cluster.add(1)
        cluster.produce(values(5), 1)
        cluster.produce(values(5), 0)
        assert {record.position.partition for record in drain(source, 5)} == {0}
        assert source.poll(10, 0.1) == []
        assert caplog.records == []

    def test_one_that_was_added_after_the_group_began_is_read_whole(self, cluster: FakeCluster, make: Make) -> None:
        cluster.add(1)
        cluster.produce(values(10), 1)
        source = make(partitions=[1], start="latest")
        source.came_later = True
        source.open()
        assert source.starting_offsets == {1: Position(STREAM, 1, 0)}
        assert len(drain(source, 10)) == 10

    def test_an_outage_while_they_come(self, cluster: FakeCluster, make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
        """Nobody says yet where the new partition begins: it is asked again, and read whole."""
        asked: list[int] = []
        bounds = FakeTopic.bounds

        def fail(topic: FakeTopic, partitions: object) -> object:
            if list(partitions) == [1] and len(asked) < 3:  # type: ignore[call-overload]
                asked.append(1)
                raise Unreachable("no answer")
            return bounds(topic, partitions)  # type: ignore[arg-type]

        monkeypatch.setattr(FakeTopic, "bounds", fail)
        source = make()
        source.open()
        cluster.add(1)
        cluster.produce(values(5), 1)
        assert [record.position.partition for record in drain(source, 5)] == [1] * 5
        assert len(asked) == 3

    def test_the_order_is_logged_from_then_on(self, cluster: FakeCluster, make: Make, tmp_path: Path) -> None:
        log = tmp_path / "order.log"
        cluster.produce(values(300))
        source = make(order_log=log)
        source.open()
        before = drain(source, 300, most=70)
        with cluster.changed:
            cluster.add(1)
            for number in range(10):
                cluster.produce(values(20), number % 2)
        before += drain(source, 200, most=13)
        source.close()
        for done in (1, 70, 299, 300, 350, 499):
            source.open(places(0, 0) | {record.next.partition: record.next for record in before[:done]})
            assert [one.position for one in drain(source, 500 - done, most=29)] == [
                one.position for one in before[done:]
            ]
            source.close()


class TestIdle:
    def test_where_it_begins_is_asked_once(
        self, cluster: FakeCluster, make: Make, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The connection is lost when the end of the topic is known, and by the next one it has moved."""
        add = FakeTopic.add
        failed: list[int] = []

        def fail(topic: FakeTopic, offsets: dict[int, int]) -> None:
            if not failed:
                failed.append(1)
                cluster.produce(values(10))
                raise Unreachable("the connection was ended")
            add(topic, offsets)

        monkeypatch.setattr(FakeTopic, "add", fail)
        cluster.produce(values(20))
        source = make(start="latest")
        source.open()
        records = drain(source, 10)
        assert records[0].position.offset == 20
        assert source.starting_offsets == places(20)


class TestOpenTransactions:
    def test_what_waits_for_one_is_told_and_when_it_goes_on(
        self, cluster: FakeCluster, make: Make, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("streamkernel.connectors.kafka.reading.open_transactions.TOLD_AFTER_SECONDS", 0.1)
        caplog.set_level(logging.INFO)
        cluster.add(1)
        cluster.produce(values(30))
        cluster.produce(values(5), 1)
        cluster.committed[0] = 10
        source = make()
        source.open()
        drain(source, 15)
        until(lambda: source.health_problem is not None)
        assert source.health_problem == (
            f"{PLACE}: reading waits for a transaction that is still open (partition 0 at offset 10)"
        )
        assert source.lag == {("t", 0): 20, ("t", 1): 0}
        assert source.poll(10, 0.3) == []
        cluster.committed[0] = 30
        drain(source, 20)
        until(lambda: source.health_problem is None)
        waits, goes_on = (record.message for record in caplog.records)
        assert f"{PLACE}, partition 0: the transaction that began at offset 10 has been open for more than 0 s" in waits
        assert "the 20 offsets from there on are not read until it ends" in waits
        assert f"{PLACE}, partition 0: the transaction at offset 10 has ended, reading continues after " in goes_on

    def test_what_only_takes_long_is_not_told(
        self, cluster: FakeCluster, make: Make, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """There is more, it is committed, and it does not come: a broker that is slow has no transaction open."""
        monkeypatch.setattr("streamkernel.connectors.kafka.reading.open_transactions.TOLD_AFTER_SECONDS", 0.05)
        caplog.set_level(logging.INFO)
        cluster.produce(values(30))
        source = make()
        source.open()
        drain(source, 30)
        looked: list[int] = []
        bounds = FakeTopic.bounds
        monkeypatch.setattr(FakeTopic, "end", lambda *_: 31)
        monkeypatch.setattr(FakeTopic, "committed_end", lambda *_: 31)
        monkeypatch.setattr(
            FakeTopic,
            "bounds",
            lambda topic, some: looked.append(1) or bounds(topic, some),  # type: ignore[func-returns-value]
        )
        monkeypatch.setattr(FakeTopic, "find", lambda _: {})
        until(lambda: len(looked) > 2)
        assert caplog.records == []
        assert source.health_problem is None

    def test_one_that_was_read_before_it_ended_is_waited_for(
        self, cluster: FakeCluster, make: Make, caplog: pytest.LogCaptureFixture
    ) -> None:
        """The checkpoint is of a run that read what is not committed: nothing is wrong with the topic."""
        cluster.produce(values(30))
        cluster.committed[0] = 10
        source = make()
        source.open(places(20))
        assert source.poll(10, 0.1) == []
        (line,) = caplog.records
        assert line.levelno == logging.WARNING
        assert "a transaction that began at offset 10 is still open, and offsets 10 to 19 were read" in line.message
        assert "--fresh" not in line.message
        assert source.health_problem is not None
        del cluster.committed[0]
        assert drain(source, 10)[0].position.offset == 20
        until(lambda: source.health_problem is None)
