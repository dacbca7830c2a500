"""The sink of Kafka on a topic in memory: what it keeps, sends, suppresses and goes on from. No broker is needed."""

from __future__ import annotations

import json
from inspect import Parameter, signature
from typing import Any

import pytest
from fake_output import Entry, FakeSession, FakeTopic, at, made, put

from streamkernel.connectors import Position, SinkError
from streamkernel.connectors.kafka.writing.provenance import Provenance
from streamkernel.connectors.kafka.writing.session import Broken
from streamkernel.connectors.kafka.writing.sink import KafkaSink
from streamkernel.connectors.ports import Sink

pytestmark = pytest.mark.usefixtures("short_naps")


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
        with pytest.raises(SinkError, match=r"topic out at broker:9092: .*not open"):
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
        with made(FakeTopic()) as sink, pytest.raises(SinkError, match="not from a topic: start over with --fresh"):
            sink.open({"length": 4711, "head": 64 * "0", "tail": 64 * "0", "file": None})

    @pytest.mark.parametrize(
        "broken", [{}, {"written": 3}, {"ends": []}, {"producer": [1]}, {"written": [["s", 0, 1]]}]
    )
    def test_a_mark_that_makes_no_sense_is_refused(self, broken: dict[str, Any]) -> None:
        topic = FakeTopic()
        with made(topic) as sink:
            sink.open()
            mark = sink.flush()
        assert isinstance(mark, dict)
        with made(topic) as sink, pytest.raises(SinkError, match="not from a topic"):
            sink.open({**mark, **broken} if broken else {})

    def test_a_mark_cannot_fill_the_memory(self) -> None:
        topic = FakeTopic()
        with made(topic) as sink:
            sink.open()
            mark = sink.flush()
        assert isinstance(mark, dict)
        with made(topic) as sink, pytest.raises(SinkError, match="not from a topic"):
            sink.open({**mark, "written": [["s", 0, [[0, 10**15]]]]})


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


class TestOptions:
    @pytest.mark.parametrize(
        ("options", "sentence"),
        [
            ({"acks": 1}, "options: acks cannot be set: every line is acknowledged by all replicas that are in sync"),
            (
                {"transactional_id": "x"},
                "options: transactional_id cannot be set: set transactional_id outside options",
            ),
            ({"value_serializer": str}, "options: value_serializer cannot be set: lines are written as JSON"),
        ],
    )
    def test_some_are_not_the_users(self, options: dict[str, Any], sentence: str) -> None:
        with pytest.raises(ValueError, match=sentence):
            KafkaSink("out", "broker:9092", options=options)

    def test_a_compression_that_is_not_installed_is_told_at_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from kafka import codec

        monkeypatch.setattr(codec, "has_snappy", lambda: False)
        with pytest.raises(ValueError, match=r"snappy.* pip install 'streamkernel"):
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
            topic.logs[0].append(Entry(session.writer, line))
            session.send_verified = FakeSession.send_verified.__get__(session)  # type: ignore[method-assign]
            raise Broken("another one was there first")

        session.send_verified = late  # type: ignore[method-assign]
        put(again, at(0), at(1))
        again.flush()
        assert len(topic.sessions) == 3
        assert topic.lines() == {0: [at(0), at(1)]}
