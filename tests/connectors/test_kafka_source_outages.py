"""The source over a cluster in memory that fails: gaps, outages, and the logged order after them."""

from __future__ import annotations

import logging
import re
from pathlib import Path

import pytest
from fake_kafka import FakeCluster, Make, buffers_of, drain, failing, places, reader_of, until, values

from streamkernel.connectors import SourceError
from streamkernel.connectors.kafka.base.outage import Outage
from streamkernel.connectors.kafka.reading import reader
from streamkernel.connectors.kafka.reading.order_log import OPEN, OrderEntry
from streamkernel.daemon.assembly.parts import log_reading
from streamkernel.daemon.run_state.component import OpenSource


class TestGaps:
    def test_retention_passed_the_checkpoint(self, cluster: FakeCluster, make: Make) -> None:
        cluster.produce(values(2000))
        cluster.remove(0, 1500)
        message = (
            r"kafka topic t at broker:9092: partition 0: offsets 20 to 1499 \(1,480 of them\) were removed by "
            r"retention before they were read: set on_gap: skip to continue without them, or start over with --fresh"
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
        until(lambda: reader_of(source).failure is not None)
        assert len(drain(source, 300, most=50)) == 300
        failing(source, "kafka topic t at broker:9092: the topic was deleted while it was read")


def test_an_outage_is_told_each_minute(caplog: pytest.LogCaptureFixture) -> None:
    now = [0.0]
    outage = Outage(logging.getLogger("outage"), "here", "down (%s)", clock=lambda: now[0])
    for second in range(125):
        now[0] = float(second)
        outage.begin("refused")
    assert caplog.messages == ["here: down (refused)"] + [
        f"here: down (refused, for {seconds} s now)" for seconds in (60, 120)
    ]


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
        log_reading(OpenSource("source", source, {}, lambda: 0))
        assert (
            caplog.records.pop().message == "reading kafka topic t at broker:9092 from record 1 on, once it can be read"
        )
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
        monkeypatch.setattr(reader, "ANEW_SECONDS", 0.4)
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

    def test_another_topic_after_an_outage(
        self, cluster: FakeCluster, make: Make, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(reader, "ANEW_SECONDS", 0.4)
        source = make()
        source.open()
        cluster.down = "connection refused"
        until(lambda: cluster.closed == 1)
        cluster.identity = "cluster/t/2"
        cluster.down = None
        failing(source, "the topic was deleted and created again")

    def test_what_is_hopeless_at_the_start_fails_at_once(self, cluster: FakeCluster, make: Make) -> None:
        cluster.failure = "the cluster has no such topic"
        source = make()
        with pytest.raises(SourceError, match=r"topic t at broker:9092: .*no such topic"):
            source.open()

    def test_an_error_nobody_thought_of_is_told(
        self, cluster: FakeCluster, make: Make, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(cluster, "connect", lambda *_: 1 / 0)
        with pytest.raises(SourceError, match="failed: ZeroDivisionError: division by zero"):
            make().open()


class TestLoggedOrder:
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

    def test_one_partition_needs_one_line(self, cluster: FakeCluster, make: Make, tmp_path: Path) -> None:
        cluster.produce(values(50))
        source = make(order_log=tmp_path / "order.log")
        source.open()
        drain(source, 50, most=10)
        assert (tmp_path / "order.log").read_bytes() == OrderEntry(0, 0, OPEN).to_line()

    def test_a_folder_that_is_not_there(self, cluster: FakeCluster, make: Make, tmp_path: Path) -> None:
        cluster.__init__(2)  # type: ignore[misc]
        with pytest.raises(SourceError, match=r"order\.log: .*written: No such file"):
            make(order_log=tmp_path / "nowhere" / "order.log").open()
