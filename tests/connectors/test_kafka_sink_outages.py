"""The sink of Kafka where no broker answers, or one refuses what it is sent."""

from __future__ import annotations

import logging
import sys
import threading
from typing import Any

import pytest
from fake_output import Clock, Entry, FakeTopic, at, made, put, until

from streamkernel.connectors import SinkError
from streamkernel.connectors.kafka.writing import backlog
from streamkernel.connectors.kafka.writing.session import Broken
from streamkernel.connectors.kafka.writing.sink import KafkaSink
from streamkernel.connectors.ports import ConnectorError, OutageError

pytestmark = pytest.mark.usefixtures("short_naps")


class TestOutages:
    def test_lines_wait_and_none_is_lost_or_double(self, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.INFO)
        topic = FakeTopic()
        with made(topic) as sink:
            sink.open()
            put(sink, at(0))
            topic.down = True
            for offset in range(1, 50):
                put(sink, at(offset))
            assert sink.waiting == 49
            with pytest.raises(OutageError, match=r"\(connection refused\), 49 lines"):
                sink.flush()
            for _ in range(3):
                with pytest.raises(OutageError):
                    sink.flush()
                topic.clock.now += 2
                put(sink, at(100 + sink.waiting))
            topic.down = False
            topic.sessions[0].deliver()
            sink.flush()
            assert [place.offset for place in topic.lines()[0]] == [*range(50), 149, 150, 151]
        told = [record.getMessage() for record in caplog.records]
        assert len(told) == 2
        assert told[0].endswith("nothing is acknowledged (connection refused): lines wait in memory")
        assert "lines are acknowledged again after" in told[1]

    def test_while_nobody_is_there_at_the_start_too(self, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.INFO)
        topic = FakeTopic()
        topic.down = True
        with made(topic) as sink:
            sink.open()
            put(sink, at(0), at(1))
            with pytest.raises(OutageError, match=r"\(it is down\), 2 lines"):
                sink.flush()
            topic.down = False
            until(lambda: sink.waiting == 0, sink)
            assert sink.flush()["ends"] == {"0": 2}  # type: ignore[index]
        assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]

    def test_closing_with_lines_that_cannot_go_says_so(self) -> None:
        topic = FakeTopic()
        sink = made(topic)
        sink.open()
        topic.down = True
        put(sink, at(0))
        with pytest.raises(OutageError, match="1 lines wait"):
            sink.close()
        assert topic.sessions[0].over

    def test_only_so_many_are_given_to_the_producer(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(backlog, "MOST_SENT", 10)
        topic = FakeTopic()
        with made(topic) as sink:
            sink.open()
            topic.down = True
            put(sink, *map(at, range(25)))
            assert len(topic.sessions[0].pending) == 10
            assert sink.waiting == 25
            topic.down = False
            topic.sessions[0].deliver()
            sink.flush()
            assert [place.offset for place in topic.lines()[0]] == [*range(25)]

    def test_and_only_so_many_bytes(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(backlog, "MOST_SENT_BYTES", 1000)
        topic = FakeTopic()
        topic.largest = 10_000
        with made(topic) as sink:
            sink.open()
            topic.down = True
            sink.write([{"raw": 400 * "x"} for _ in range(50)], [*map(at, range(50))])
            assert len(topic.sessions[0].pending) == 3
            assert 20_000 < sink.waiting_bytes < 40_000
            topic.down = False
            topic.sessions[0].deliver()
            sink.flush()
            assert sink.waiting == sink.waiting_bytes == 0
            # A line that is longer than that goes by itself.
            sink.write([{"raw": 2000 * "x"}, {"raw": 2000 * "x"}], [at(50), at(51)])
            sink.flush()
        assert [place.offset for place in topic.lines()[0]] == [*range(52)]

    def test_also_when_the_line_to_be_verified_is_never_heard_of(self) -> None:
        topic = FakeTopic()
        with made(topic) as sink:
            sink.open()
            mark = sink.flush()
        ended = threading.Event()
        with made(topic) as sink:
            sink.open(mark)

            def send_verified(line: Any) -> int:
                topic.logs[0].append(Entry(topic.sessions[1].writer, line))
                ended.wait(30)
                raise Broken("it is closed")

            topic.sessions[1].send_verified = send_verified  # type: ignore[method-assign]
            put(sink, at(0), at(1))
            until(lambda: bool(topic.logs[0]), sink)
            topic.clock.now += 61
            until(lambda: sink.waiting == 0, sink)
            ended.set()
            assert len(topic.sessions) == 3
            assert topic.lines() == {0: [at(0), at(1)]}

    def test_very_many_attempts_to_connect_do_not_end_it(self) -> None:
        topic = FakeTopic()
        topic.down = True
        limit = sys.getrecursionlimit()
        with made(topic) as sink:
            sink.open()
            put(sink, at(0))

            def are_made() -> bool:
                topic.clock.now += 10
                return topic.attempts > 300

            sys.setrecursionlimit(300)
            try:
                until(are_made, sink)
            finally:
                sys.setrecursionlimit(limit)
            topic.down = False
            topic.clock.now += 10
            until(lambda: not sink.waiting, sink)
        assert topic.lines() == {0: [at(0)]}


class TestFailures:
    def test_a_broken_session_is_followed_by_another(self) -> None:
        topic = FakeTopic(partitions=2)
        with made(topic) as sink:
            sink.open()
            topic.deaf = True
            put(sink, at(0), at(1))  # appended, but nobody hears of it
            topic.deaf, topic.down = False, True
            put(sink, at(2), at(0, 1), at(3))
            topic.sessions[0].fail(ValueError("out of order"))
            topic.down = False
            put(sink, at(4))
            sink.flush()
            assert topic.lines() == {0: [at(0), at(1), at(2), at(3), at(4)], 1: [at(0, 1)]}
            assert "abandon" in topic.sessions[0].calls

    def test_also_where_all_patience_was_spent_before_the_broker_said_so(self) -> None:
        topic = FakeTopic()
        with made(topic) as sink:
            sink.open()
            topic.deaf = True
            put(sink, at(0))
            topic.deaf = False
            topic.clock.now += 10
            topic.sessions[0].fail(ValueError("forgotten"))
            sink.flush()
            assert topic.lines() == {0: [at(0)]}
            assert len(topic.sessions) == 2

    def test_one_that_breaks_again_and_again_ends_it(self) -> None:
        topic = FakeTopic()
        connect = topic.connect

        def broken(*arguments: Any) -> Any:
            session: Any = connect(*arguments)
            session.breaks = Broken("it does not want to")
            return session

        sink = KafkaSink("out", "broker:9092", connect=broken, clock=Clock())
        sink.open()
        put_failed = pytest.raises(SinkError, match=r"refuses .*it does not want to")
        with put_failed:
            put(sink, at(0))
            until(lambda: False, sink)
        sink.close()  # says nothing more
        assert len(topic.sessions) == 6

    def test_the_line_that_failed_is_told_and_not_those_behind_it(self) -> None:
        topic = FakeTopic()
        sink = made(topic)
        sink.open()
        topic.down = True
        put(sink, at(0), at(1))
        topic.sessions[0].fail(SinkError("not authorized"))
        with pytest.raises(SinkError, match=r"topic out at broker:9092: not authorized$"):
            sink.flush()
        sink.close()

    def test_what_cannot_be_reached_for_good_is_told_when_it_is_opened(self) -> None:
        topic = FakeTopic()
        topic.refusal = ConnectorError("there is no such topic")
        with made(topic) as sink, pytest.raises(SinkError, match="at broker:9092: there is no such topic"):
            sink.open()

    def test_a_line_too_large_ends_it_unless_it_can_be_shortened(self) -> None:
        topic = FakeTopic()
        sink = made(topic)
        sink.open()
        with pytest.raises(SinkError, match="the line of offset 7 is too large"):
            sink.write([{"raw": 2000 * "x"}], [at(7)])
        sink.close()
        shortened: list[int] = []

        def shorten(line: Any, most: int) -> Any:
            shortened.append(most)
            return {"raw": line["raw"][:10]}

        with made(topic, shorten=shorten) as sink:
            sink.open()
            sink.write([{"raw": 2000 * "x"}, {"raw": "short"}], [at(8), at(9)])
            sink.flush()
        assert shortened == [500]
        assert [entry.line.value for entry in topic.logs[0] if entry] == [b'{"raw":"xxxxxxxxxx"}', b'{"raw":"short"}']
