"""The sink of Kafka on a topic in memory: what it keeps, sends, suppresses and says. No broker is needed."""

from __future__ import annotations

import hashlib
import json
import logging
import threading
import time
from collections.abc import Callable, Sequence
from inspect import Parameter, signature
from typing import Any

import pytest
from fake_output import Clock, FakeSession, FakeTopic
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from connectors import Position, SinkError
from connectors.kafka.writing import backlog, delivery
from connectors.kafka.writing.provenance import Provenance
from connectors.kafka.writing.session import Broken
from connectors.kafka.writing.sink import KafkaSink
from connectors.ports import ConnectorError, OutageError, Sink

CALM = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)


def at(offset: int, partition: int = 0) -> Position:
    return Position("source", partition, offset)


def made(topic: FakeTopic, **more: Any) -> KafkaSink:
    return KafkaSink("out", "broker:9092", connect=topic.connect, clock=Clock(), **more)


def put(sink: KafkaSink, *positions: Position) -> None:
    sink.write([{"n": position.offset} for position in positions], positions)


def put_in_chunks(sink: KafkaSink, positions: list[Position], size: int) -> None:
    for place in range(0, len(positions), size):
        put(sink, *positions[place : place + size])


def until(holds: Callable[[], bool], sink: KafkaSink) -> None:
    """Let the sink's threads get on."""
    deadline = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < deadline
        sink.write((), ())
        time.sleep(0.001)


def settle(sink: KafkaSink) -> None:
    until(lambda: sink.waiting == 0, sink)


@pytest.fixture(autouse=True)
def _short_naps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery, "_NAP_SECONDS", 0.001)


class TestWriting:
    def test_lines_stand_there_in_order_when_flush_returns(self) -> None:
        topic = FakeTopic(partitions=2)
        with made(topic) as sink:
            sink.open()
            put(sink, at(3), at(5), at(0, 1), at(7), at(1, 3))
            sink.flush()
            assert topic.lines() == {0: [at(3), at(5), at(7)], 1: [at(0, 1)], 3: [at(1, 3)]}
            assert [entry.line.value for entry in topic.logs[0] if entry] == [b'{"n":3}', b'{"n":5}', b'{"n":7}']
            assert len(topic.logs[1]) == 2  # partitions 1 and 3 of the source
            assert sink.waiting == 0
        assert sink.exactly_once

    def test_a_mark_is_json_and_tells_where_the_topic_ends(self) -> None:
        topic = FakeTopic(partitions=2)
        with made(topic) as sink:
            sink.open()
            assert sink.flush()["ends"] == {"0": 0, "1": 0}  # type: ignore[index]
            put(sink, at(3), at(5))
            mark = sink.flush()
            assert mark == json.loads(json.dumps(mark))
            assert mark["ends"] == {"0": 2, "1": 0}  # type: ignore[index]

    def test_a_line_needs_the_position_of_its_record(self) -> None:
        with made(FakeTopic()) as sink:
            sink.open()
            with pytest.raises(ValueError, match="shorter than"):
                sink.write([{"n": 1}], [])

    def test_so_the_port_asks_for_it_too(self) -> None:
        for one in (Sink, KafkaSink):
            assert signature(one.write).parameters["positions"].default is Parameter.empty

    def test_closing_writes_what_waits(self) -> None:
        topic = FakeTopic()
        sink = made(topic)
        sink.open()
        put(sink, at(1))
        sink.close()
        sink.close()
        assert topic.lines() == {0: [at(1)]}
        with pytest.raises(SinkError, match="kafka topic out at broker:9092: the sink is not open"):
            put(sink, at(2))
        with pytest.raises(SinkError, match="not open"):
            sink.flush()

    def test_it_can_be_opened_again(self) -> None:
        topic = FakeTopic()
        sink = made(topic)
        sink.open()
        put(sink, at(1))
        mark = sink.flush()
        sink.open(mark)
        put(sink, at(2))
        sink.close()
        assert topic.lines() == {0: [at(1), at(2)]}

    def test_the_mark_of_a_file_is_refused(self) -> None:
        with made(FakeTopic()) as sink, pytest.raises(SinkError, match="not of a topic: start anew with --fresh"):
            sink.open(4711)

    @pytest.mark.parametrize(
        "broken", [{}, {"written": 3}, {"ends": []}, {"producer": [1]}, {"written": [["s", 0, 1]]}]
    )
    def test_a_mark_that_makes_no_sense_is_refused(self, broken: dict[str, Any]) -> None:
        topic = FakeTopic()
        with made(topic) as sink:
            sink.open()
            mark = sink.flush()
        assert isinstance(mark, dict)
        with made(topic) as sink, pytest.raises(SinkError, match="not of a topic"):
            sink.open({**mark, **broken} if broken else {})

    def test_a_mark_cannot_fill_the_memory(self) -> None:
        topic = FakeTopic()
        with made(topic) as sink:
            sink.open()
            mark = sink.flush()
        assert isinstance(mark, dict)
        with made(topic) as sink, pytest.raises(SinkError, match="not of a topic"):
            sink.open({**mark, "written": [["s", 0, [[0, 10**15]]]]})

    def test_a_mark_of_an_earlier_version_is_read(self) -> None:
        topic = FakeTopic()
        with made(topic) as sink:
            sink.open()
            put(sink, at(0))
            mark = sink.flush()
        assert isinstance(mark, dict)
        for name in ("sequences", "passed", "existing"):
            del mark[name]
        with made(topic, transactional_id="me") as sink:
            sink.open({**mark, "producer": None, "transactional_id": "me"})
            put(sink, at(1))
        assert topic.lines() == {0: [at(0), at(1)]}


class TestKeys:
    def test_no_two_lines_share_one(self) -> None:
        places = [at(5), at(5, 1), at(6), Position("labels:source", 0, 5), Position("cluster/other/1", 0, 5)]
        keys = {Provenance(writer).key(place) for writer in ("a1b2c3d4", "e5f6a7b8") for place in places}
        assert len(keys) == 2 * len(places)

    def test_the_same_line_has_the_same_one_whatever_came_before(self) -> None:
        places = [at(5), Position("labels:source", 0, 5), at(5), at(5, 1), at(5)]
        provenance = Provenance("me")
        assert [provenance.key(place) for place in places] == [Provenance("me").key(place) for place in places]
        assert [provenance.headers(place) for place in places] == [Provenance("me").headers(place) for place in places]


class TestExisting:
    """Lines for the same records, and no mark that says how far they go: as where the checkpoints were lost."""

    @pytest.fixture
    def topic(self) -> FakeTopic:
        topic = FakeTopic(partitions=2)
        with made(topic) as sink:
            sink.open()
            put(sink, *map(at, range(7)), at(0, 1))
        return topic

    def test_are_not_doubled(self, topic: FakeTopic) -> None:
        sink = made(topic)
        sink.open()
        mark = sink.flush()
        sentence = (
            "7 of the last lines there are for records of the same source, partition 0, and no checkpoint says which: "
            ".*existing: append"
        )
        with pytest.raises(SinkError, match=sentence):
            put(sink, at(0))
        sink.close()
        # Nor by the restart, which has a mark.
        sink = made(topic)
        sink.open(json.loads(json.dumps(mark)))
        with pytest.raises(SinkError, match=sentence):
            put(sink, at(0))
        sink.close()
        assert topic.lines()[0] == [*map(at, range(7))]

    def test_are_where_that_is_wished_and_told(self, topic: FakeTopic, caplog: pytest.LogCaptureFixture) -> None:
        with made(topic, existing="append") as sink:
            sink.open()
            put(sink, *map(at, range(9)))
            assert sink.flush()["existing"] == [["source", 1, 1]]  # type: ignore[index]
        assert topic.lines()[0] == [*map(at, range(7)), *map(at, range(9))]
        [told] = [record for record in caplog.records if record.levelname == "WARNING"]
        assert "7 of the last lines there are for records of the same source, partition 0" in told.getMessage()

    def test_those_of_others_hold_up_nobody(self, topic: FakeTopic) -> None:
        others = [at(0, 2), Position("cluster/other/1", 0, 0), Position("labels:source", 0, 3)]
        with made(topic) as sink:
            sink.open()
            put(sink, *others)
            sink.flush()


def in_file(rows: Sequence[bytes], header: bytes = b"", whole: int = 4096) -> list[Position]:
    """The positions of the lines of a file, as a source of files names them."""
    head, places = header, []
    for row in rows:
        named = head[:whole]
        places.append(Position(f"{len(named)}:{hashlib.sha256(named).hexdigest()}", 0, len(head)))
        head += row
    return places


class TestExistingLinesForFiles:
    """A file is named by what was read of it: its first records have other names than the ones behind them."""

    mine, yours = ([b"%030d,%d\n" % (number, seed) for number in range(300)] for seed in (1, 2))

    @pytest.mark.parametrize("header", [b"", b"a,b\n"])
    @pytest.mark.parametrize("count", [1, 5, 300])
    @pytest.mark.parametrize("chunk", [1, 16])
    @pytest.mark.parametrize("alike", [0, 1])
    def test_those_for_another_file_hold_up_nobody(self, header: bytes, count: int, chunk: int, alike: int) -> None:
        topic = FakeTopic()
        yours = [*self.mine[:alike], *self.yours[alike:count]]
        with made(topic) as sink:
            sink.open()
            put(sink, *in_file(self.mine[:count], header))
        places = in_file(yours, header)
        with made(topic) as sink:
            sink.open()
            put_in_chunks(sink, places, chunk)
        assert topic.lines()[0][count:] == places

    @pytest.mark.parametrize("header", [b"", b"a,b\n"])
    @pytest.mark.parametrize("left", [0, 200])
    def test_those_for_the_same_file_are_not_doubled(self, header: bytes, left: int) -> None:
        topic = FakeTopic()
        places = in_file(self.mine, header)
        with made(topic) as sink:
            sink.open()
            put(sink, *places[left:])  # the earlier ones are not among the last that are looked at
        sink = made(topic)
        sink.open()
        with pytest.raises(SinkError, match="of the last lines there are for records of the same source"):
            put_in_chunks(sink, places, 16)
        sink.close()
        assert topic.lines()[0] == places[left:]

    def test_a_line_alone_is_not_held_back(self) -> None:
        topic = FakeTopic()
        with made(topic) as sink:
            sink.open()
            put(sink, *in_file(self.mine))
        places = in_file(self.yours)
        with made(topic) as sink:
            sink.open()
            put(sink, places[0])
            settle(sink)
            put(sink, places[1])
            sink.flush()
            assert topic.lines()[0][-2:] == places[:2]

    def test_appending_is_told_once(self, caplog: pytest.LogCaptureFixture) -> None:
        topic = FakeTopic()
        places = in_file(self.mine)
        for _ in range(2):
            with made(topic, existing="append") as sink:
                sink.open()
                put(sink, *places)
        assert topic.lines()[0] == [*places, *places]
        assert len([record for record in caplog.records if record.levelname == "WARNING"]) == 1


class TestOptions:
    @pytest.mark.parametrize(
        ("options", "sentence"),
        [
            ({"acks": 1}, "options: acks cannot be set: every line is acknowledged by all replicas that are in sync"),
            ({"transactional_id": "x"}, "options: transactional_id cannot be set: it is written beside options"),
            ({"value_serializer": str}, "options: value_serializer cannot be set: lines are written as JSON"),
        ],
    )
    def test_some_are_not_the_users(self, options: dict[str, Any], sentence: str) -> None:
        with pytest.raises(ValueError, match=sentence):
            KafkaSink("out", "broker:9092", options=options)

    def test_a_compression_that_is_not_installed_is_told_at_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from kafka import codec

        monkeypatch.setattr(codec, "has_snappy", lambda: False)
        with pytest.raises(ValueError, match="compression snappy is not installed: pip install 'streamkernel"):
            KafkaSink("out", "broker:9092", compression="snappy")


class TestGoingOn:
    """After a restart, lines that are there are not written again."""

    def restarted(self, topic: FakeTopic, mark: Any) -> KafkaSink:
        sink = made(topic)
        sink.open(mark)
        return sink

    def test_lines_behind_the_mark_are_left_out_once(self) -> None:
        topic = FakeTopic()
        sink = self.restarted(topic, None)
        put(sink, at(0), at(1))
        mark = sink.flush()
        put(sink, at(2), at(3))
        sink.flush()  # and killed before the checkpoint
        again = self.restarted(topic, mark)
        put(again, at(2), at(3), at(4))
        again.flush()
        assert topic.lines() == {0: [at(0), at(1), at(2), at(3), at(4)]}
        put(again, at(2))  # the same place once more is another line: nothing is remembered for ever
        again.flush()
        assert topic.lines()[0][-1] == at(2)

    def test_what_was_not_written_again_yet_is_in_the_mark(self) -> None:
        topic = FakeTopic()
        sink = self.restarted(topic, None)
        mark = sink.flush()
        put(sink, *map(at, range(10)))
        sink.flush()
        again = self.restarted(topic, mark)
        put(again, *map(at, range(4)))
        mark = again.flush()  # this checkpoint covers four records, ten lines are there
        assert isinstance(mark, dict)
        assert mark["written"] == [["source", 0, [[4, 9]]]]
        third = self.restarted(topic, mark)
        put(third, *map(at, range(4, 12)))
        assert third.flush()["written"] == []  # type: ignore[index]
        assert topic.lines() == {0: [at(offset) for offset in range(12)]}

    def test_lines_of_others_are_none_of_ours(self) -> None:
        topic = FakeTopic()
        mine, yours = self.restarted(topic, None), made(topic, existing="append")
        put(mine, at(0))
        mark = mine.flush()
        yours.open()
        put(yours, at(1))
        yours.flush()
        again = self.restarted(topic, mark)
        put(again, at(1))
        again.flush()
        assert [entry.writer for entry in topic.logs[0] if entry] == ["writer 1", "writer 2", "writer 1"]

    def test_a_record_and_a_label_at_one_place_are_two(self) -> None:
        topic = FakeTopic()
        sink = self.restarted(topic, None)
        mark = sink.flush()
        label = Position("labels:source", 0, 5)
        put(sink, at(5))
        sink.flush()
        again = self.restarted(topic, mark)
        put(again, label, at(5))
        again.flush()
        assert topic.lines() == {0: [at(5), label]}

    def test_the_first_line_to_each_partition_is_verified_alone(self) -> None:
        topic = FakeTopic(partitions=2)
        mark = self.restarted(topic, None).flush()
        again = self.restarted(topic, mark)
        put(again, at(0), at(1), at(0, 1), at(1, 1), at(2))
        again.flush()
        session = topic.sessions[-1]
        assert [line.position for line in session.verified] == [at(0), at(0, 1)]
        assert [call for call in session.calls if "wait" not in call] == [
            "send_verified",
            "send",
            "send_verified",
            "send",
            "send",
        ]
        assert topic.lines() == {0: [at(0), at(1), at(2)], 1: [at(0, 1), at(1, 1)]}

    def test_a_line_of_a_killed_process_that_comes_late_is_found(self) -> None:
        topic = FakeTopic()
        mark = self.restarted(topic, None).flush()
        again = self.restarted(topic, mark)
        session = topic.sessions[-1]

        def late(line: Any) -> int:
            topic.logs[0].append(module_entry(session.writer, line))
            session.send_verified = FakeSession.send_verified.__get__(session)  # type: ignore[method-assign]
            raise Broken("another one was there first")

        session.send_verified = late  # type: ignore[method-assign]
        put(again, at(0), at(1))
        again.flush()
        assert len(topic.sessions) == 3
        assert topic.lines() == {0: [at(0), at(1)]}


def module_entry(writer: str, line: Any) -> Any:
    from fake_output import Entry

    return Entry(writer, line)


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
            with pytest.raises(OutageError, match=r"nothing is acknowledged \(connection refused\), 49 lines wait"):
                sink.flush()
            for _ in range(3):
                with pytest.raises(OutageError):
                    sink.flush()
                sink._clock.now += 2  # type: ignore[attr-defined]
                put(sink, at(100 + sink.waiting))
            topic.down = False
            topic.sessions[0].deliver()
            sink.flush()
            assert [place.offset for place in topic.lines()[0]] == [*range(50), 149, 150, 151]
        told = [record.getMessage() for record in caplog.records]
        assert len(told) == 2
        assert told[0].endswith("nothing is acknowledged (connection refused): lines wait in memory until it is")
        assert "lines are acknowledged again after" in told[1]

    def test_while_nobody_is_there_at_the_start_too(self, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.INFO)
        topic = FakeTopic()
        topic.down = True
        with made(topic) as sink:
            sink.open()
            put(sink, at(0), at(1))
            with pytest.raises(OutageError, match=r"nothing is acknowledged \(it is down\), 2 lines wait"):
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
        monkeypatch.setattr(backlog, "_MOST_SENT", 10)
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
        monkeypatch.setattr(backlog, "_MOST_SENT_BYTES", 1000)
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
                topic.logs[0].append(module_entry(topic.sessions[1].writer, line))
                ended.wait(30)
                raise Broken("it is closed")

            topic.sessions[1].send_verified = send_verified  # type: ignore[method-assign]
            put(sink, at(0), at(1))
            until(lambda: bool(topic.logs[0]), sink)
            sink._clock.now += 61  # type: ignore[attr-defined]
            until(lambda: sink.waiting == 0, sink)
            ended.set()
            assert len(topic.sessions) == 3
            assert topic.lines() == {0: [at(0), at(1)]}

    def test_after_a_minute_it_connects_anew(self) -> None:
        topic = FakeTopic()
        with made(topic) as sink:
            sink.open()
            topic.deaf = True
            put(sink, at(0), at(1))
            sink._clock.now += 61  # type: ignore[attr-defined]
            topic.deaf = False
            until(lambda: sink.waiting == 0, sink)
            assert len(topic.sessions) == 2
            assert topic.lines() == {0: [at(0), at(1)]}  # they stood there, and were found

    def test_very_many_attempts_to_connect_do_not_end_it(self) -> None:
        topic = FakeTopic()
        topic.down = True
        with made(topic) as sink:
            sink.open()
            connector = sink._delivery._connector
            connector._attempt = 2000
            sink._clock.now += 10  # type: ignore[attr-defined]
            put(sink, at(0))
            until(lambda: connector._attempt > 2000, sink)
            topic.down = False
            sink._clock.now += 10  # type: ignore[attr-defined]
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
            sink._clock.now += 10  # type: ignore[attr-defined]
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
        put_failed = pytest.raises(SinkError, match=r"refuses the lines again and again.*it does not want to")
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
        topic.sessions[0].fail(SinkError("not authorised"))
        with pytest.raises(SinkError, match=r"^kafka topic out at broker:9092: not authorised$"):
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


class TestTransactions:
    @pytest.fixture
    def topic(self) -> FakeTopic:
        return FakeTopic(transactional=True)

    def test_one_a_checkpoint(self, topic: FakeTopic) -> None:
        with made(topic, transactional_id="me") as sink:
            sink.open()
            sink.flush()
            put(sink, at(0), at(1))
            put(sink, at(2))
            assert topic.lines() == {}
            sink.flush()
            assert topic.lines() == {0: [at(0), at(1), at(2)]}
            sink.flush()  # nothing new: nothing to commit
            put(sink, at(3))
            assert sink.flush()["ends"] == {"0": 5}  # type: ignore[index] # the fourth offset is the mark of a transaction
        assert topic.sessions[0].commits == 2
        calls = [call for call in topic.sessions[0].calls if not call.startswith("wait")]
        assert calls == ["begin", "send", "send", "send", "commit", "begin", "send", "commit", "abandon"]

    def test_closing_commits(self, topic: FakeTopic) -> None:
        with made(topic, transactional_id="me") as sink:
            sink.open()
            put(sink, at(0))
        assert topic.lines() == {0: [at(0)]}

    def test_a_commit_that_hangs_holds_nothing_up(self, topic: FakeTopic) -> None:
        with made(topic, transactional_id="me") as sink:
            sink.open()
            put(sink, at(0))
            topic.sessions[0].committing.clear()
            with pytest.raises(OutageError, match="the end of a transaction waits"):
                sink.flush()
            put(sink, at(1), at(2))  # they wait for the next one
            with pytest.raises(OutageError, match="2 lines wait"):
                sink.flush()
            assert topic.sessions[0].calls.count("commit") == 1
            topic.sessions[0].committing.set()
            until(lambda: sink.waiting == 0, sink)
            sink.flush()
            assert topic.lines() == {0: [at(0), at(1), at(2)]}
            assert topic.sessions[0].commits == 2

    def test_one_that_never_ends_ends_the_sink(self, topic: FakeTopic) -> None:
        sink = made(topic, transactional_id="me")
        sink.open()
        put(sink, at(0))
        topic.sessions[0].committing.clear()
        for _ in range(12):
            with pytest.raises(OutageError):
                sink.flush()
            sink._clock.now += 90  # type: ignore[attr-defined]
        sentence = r"^kafka topic out at broker:9092: nothing was acknowledged for \d+ s, though the broker answers: .*"
        with pytest.raises(SinkError, match=f"{sentence}start again, nothing is lost$") as caught:
            put(sink, at(1))
        assert not isinstance(caught.value, OutageError)
        sink.close()  # says nothing more
        assert topic.sessions[0].over

    def test_one_that_waits_for_a_broker_may_take_for_ever(self, topic: FakeTopic) -> None:
        with made(topic, transactional_id="me") as sink:
            sink.open()
            put(sink, at(0))
            topic.sessions[0].committing.clear()
            for answers in [*5 * [True], *20 * [False], *5 * [True]]:
                topic.down = not answers
                with pytest.raises(OutageError):
                    sink.flush()
                sink._clock.now += 100  # type: ignore[attr-defined]
            topic.sessions[0].committing.set()
            until(lambda: sink._delivery.idle, sink)
            sink.flush()
            assert topic.lines() == {0: [at(0)]}

    def test_the_crash_between_commit_and_checkpoint(self, topic: FakeTopic) -> None:
        sink = made(topic, transactional_id="me")
        sink.open()
        mark = sink.flush()
        put(sink, at(0), at(1))
        sink.flush()
        put(sink, at(2))  # never committed
        again = made(topic, transactional_id="me")
        again.open(mark)
        put(again, at(0), at(1), at(2))
        again.flush()
        assert topic.lines() == {0: [at(0), at(1), at(2)]}

    @pytest.mark.parametrize("committed", [True, False])
    def test_one_the_broker_forgot_before_it_took_a_line_is_begun_anew(self, topic: FakeTopic, committed: bool) -> None:
        with made(topic, transactional_id="me") as sink:
            sink.open()
            put(sink, at(0))
            sink.flush()
            topic.sessions[0].spoil(ValueError("not known any more"), committed)
            put(sink, at(1), at(2))
            sink.flush()
            assert topic.before == topic.sessions[0].producer
        assert topic.lines() == {0: [at(0), at(1), at(2)]}

    @pytest.mark.parametrize("when", ["lines", "the end"])
    def test_one_that_was_committed_too_early_is_gone_on_from(self, topic: FakeTopic, when: str) -> None:
        with made(topic, transactional_id="me") as sink:
            sink.open()
            put(sink, at(0))
            sink.flush()
            put(sink, at(1), at(2))
            put(sink, at(3))
            topic.sessions[0].spoil(ValueError("it is over"), committed=True)
            if when == "lines":
                put(sink, at(4))
            mark = sink.flush()
            assert isinstance(mark, dict)
            assert mark["written"] == []
            put(sink, at(5))
        last = 4 if when == "lines" else 3
        assert topic.lines() == {0: [*map(at, range(last + 1)), at(5)]}

    def test_one_whose_lines_are_gone_ends_it(self, topic: FakeTopic) -> None:
        sink = made(topic, transactional_id="me")
        sink.open()
        put(sink, at(0))
        mark = sink.flush()
        put(sink, at(1), at(2))
        put(sink, at(3))
        topic.sessions[0].spoil(ValueError("it is over"), committed=False)
        with pytest.raises(
            SinkError, match=r"3 lines that were acknowledged are not there.*\(it is over\); start again"
        ):
            sink.flush()
        sink.close()
        with made(topic, transactional_id="me") as sink:
            sink.open(mark)
            put(sink, at(1), at(2), at(3))
        assert topic.lines() == {0: [*map(at, range(4))]}

    def test_who_is_shut_out_ends(self, topic: FakeTopic) -> None:
        first, second = made(topic, transactional_id="me"), made(topic, transactional_id="me")
        first.open()
        put(first, at(0))
        second.open()
        with pytest.raises(SinkError, match="another one is in"):
            first.flush()
        first.close()
        put(second, at(0))
        second.close()
        assert topic.lines() == {0: [at(0)]}


@CALM
@given(data=st.data(), transactional=st.booleans(), partitions=st.integers(1, 3))
def test_whatever_happens_each_line_stands_there_once_and_in_order(
    data: st.DataObject, transactional: bool, partitions: int
) -> None:
    topic = FakeTopic(partitions, transactional)
    sources = 2
    name = "me" if transactional else None

    def opened(mark: Any) -> KafkaSink:
        topic.down = topic.deaf = False
        sink = made(topic, transactional_id=name)
        sink.open(mark)
        return sink

    sink = opened(None)
    saved: tuple[Any, list[int]] = (sink.flush(), [0] * sources)
    reached, furthest = [0] * sources, [0] * sources
    steps = st.sampled_from(["write", "write", "write", "save", "flush", "crash", "down", "up", "deaf", "break"])
    for step in data.draw(st.lists(steps, max_size=25)):
        session = topic.sessions[-1]
        if step == "write":
            which = data.draw(st.integers(0, sources - 1))
            count = data.draw(st.integers(1, 5))
            put(sink, *(at(reached[which] + number, which) for number in range(count)))
            reached[which] += count
            furthest[which] = max(furthest[which], reached[which])
        elif step in ("save", "flush") and not topic.down:
            topic.deaf = False
            session.deliver()
            try:
                mark = sink.flush()
            except OutageError:
                continue  # what nobody hears of stays unheard, until a minute is over
            if step == "save":
                saved = mark, list(reached)
        elif step == "crash":
            session.over = True
            sink = opened(saved[0])
            reached = list(saved[1])
        elif step == "down":
            topic.down = True
        elif step == "up":
            topic.down = False
            session.deliver()
        elif step == "deaf" and not transactional:
            topic.deaf = True
        elif step == "break" and not transactional and session.pending:
            session.fail(ValueError("no reason"))
        elif step == "break" and transactional and not topic.down:
            session.spoil(ValueError("no reason"), committed=data.draw(st.booleans()))
            try:
                put(sink, at(reached[0]))
                settle(sink)
            except SinkError:  # what it had acknowledged is gone: the next process writes it again
                sink = opened(saved[0])
                reached = list(saved[1])
            else:
                reached[0] += 1
                furthest[0] = max(furthest[0], reached[0])
    topic.down = topic.deaf = False
    topic.sessions[-1].deliver()
    for which in range(sources):
        put(sink, *(at(offset, which) for offset in range(reached[which], furthest[which] + 1)))
    sink._clock.now += 100  # type: ignore[attr-defined]
    until(lambda: sink.waiting == 0, sink)
    sink.flush()
    sink.close()
    wanted = {which: [at(offset, which) for offset in range(furthest[which] + 1)] for which in range(sources)}
    assert topic.lines() == wanted
