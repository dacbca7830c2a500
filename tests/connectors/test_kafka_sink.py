"""The sink of Kafka, over a topic in memory."""

from __future__ import annotations

import base64
import json
import logging
import zlib
from typing import Any

import pytest
from fake_output import FakeTopic, at, finish, flushed, made, put
from hypothesis import example, given, settings
from hypothesis import strategies as st

from streamkernel.connectors import SinkError
from streamkernel.connectors.kafka.writing import delivery
from streamkernel.connectors.kafka.writing import sink as module
from streamkernel.connectors.kafka.writing.line import Provenance
from streamkernel.connectors.kafka.writing.mark import OutputMark
from streamkernel.connectors.kafka.writing.sink import KafkaSink
from streamkernel.connectors.pass_through import MessageLine, SourceMessage
from streamkernel.connectors.ports import ConnectorError, OutageError, Position
from tests.processes import wait_until

pytestmark = pytest.mark.usefixtures("short_naps")


class TestWriting:
    @pytest.mark.parametrize("transactional_id", [None, "me"])
    def test_lines_count_in_order(self, transactional_id: str | None) -> None:
        topic = FakeTopic(2)
        with made(topic, transactional_id=transactional_id) as sink:
            sink.open()
            put(sink, at(0), at(0, 1), at(1))
            mark = sink.flush()
            assert sink.unpublished == (0 if transactional_id is None else 3)
            assert json.loads(json.dumps(mark)) == mark
            sink.commit()
            wait_until(lambda: not sink.unpublished, "the commit")
            assert topic.lines() == {0: [at(0), at(1)], 1: [at(0, 1)]}
            assert sink.waiting == sink.waiting_bytes == 0
            assert sink.exactly_once == (transactional_id is not None)

    def test_closing_writes_what_waits_without_transactions(self) -> None:
        topic = FakeTopic()
        with made(topic) as sink:
            sink.open()
            put(sink, at(0))
        sink.close()
        assert topic.lines() == {0: [at(0)]}

    @pytest.mark.usefixtures("impatient")
    def test_closing_leaves_to_the_checkpoint_what_cannot_be_committed(self, caplog: pytest.LogCaptureFixture) -> None:
        topic = FakeTopic()
        sink = made(topic, transactional_id="me")
        sink.open()
        put(sink, at(0))
        mark = sink.flush()
        topic.down = True
        sink.commit()
        sink.close()
        assert "1 lines are not committed" in caplog.text
        topic.down = False
        with made(topic, transactional_id="me") as sink:
            sink.open(mark)
            assert flushed(sink)
        assert topic.lines() == {0: [at(0)]}

    @pytest.mark.parametrize("mark", [7, {"stream": "c/out/1"}, {"lines": "?"}, {"number": -1}])
    def test_a_mark_that_makes_no_sense_is_refused(self, mark: Any) -> None:
        with made(FakeTopic()) as sink:
            sink.open()
            good = sink.flush()
        assert isinstance(good, dict)
        with made(FakeTopic()) as sink, pytest.raises(SinkError, match="not from a topic"):
            sink.open({**good, **mark} if isinstance(mark, dict) and "stream" not in mark else mark)

    @pytest.mark.parametrize(
        "head",
        [
            '[[1],[["s",1180591620717411303424]],[[0,1]],[5],[[null,1]]]',
            '[[1],[["s",1]],[[0,1]],[1e999],[[null,1]]]',
            '[[1],[["s",1]],[[0,1]],[5],[[[true,"k",[],1e999],1]]]',
            '[[1],[["s",1]],[[0,1]],[5],[[[true,"k",[],9223372036854775808],1]]]',
            '[[1],[["s",1]],[[0,1]],[5],[[[true,5,[],1],1]]]',
            '[[1],[["s",1]],[[0,1]],[5],[[0,1]]]',
            '[[2],[["s",1]],[[0,1]],[5],[[null,1]]]',
            "[" * 100_000,
        ],
    )
    def test_lines_that_make_no_sense_are_refused(self, head: str) -> None:
        mark = OutputMark("c/out/1", "me", "id", 6, 7).to_json()
        mark["lines"] = base64.b64encode(zlib.compress(head.encode() + b"\na")).decode()
        with pytest.raises(SinkError, match="not from a topic"):
            OutputMark.from_json(mark)

    def test_what_is_copied_survives_a_restart(self) -> None:
        topic = FakeTopic()
        more: Any = {"transactional_id": "me", "key": "source", "pass_through": ["headers", "timestamp"]}
        message = SourceMessage(b"\xff", (("trace", b"1"), *Provenance("other").headers(at(99))), 1500)
        sink = made(topic, **more)
        sink.open()
        sink.write([MessageLine({"n": 1}, message)], [at(1)])
        with made(topic, **more) as again:
            again.open(sink.flush())
            assert flushed(again)
        sink.close()
        (found,) = topic.messages[0]
        assert (found["value"], found["key"], found["timestamp_ms"]) == (b'{"n":1}', b"\xff", 1500)
        assert [name for name, _ in found["headers"]].count("source.offset") == 1
        assert topic.lines() == {0: [at(1)]}


OPERATIONS = [
    "put",
    "flush",
    "checkpoint",
    "checkpoint",
    "kill",
    "older",
    "lost commit",
    "lost answer",
    "outage",
    "break",
]


def borne(operations: list[str]) -> list[str]:
    """Leave out what would be the sixth lost commit: a sink gives up that meets with no answer as often."""
    lost = "lost commit"
    return [one for place, one in enumerate(operations) if one != lost or operations[:place].count(lost) < 5]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(OPERATIONS), max_size=25).map(borne))
@example(["put", "checkpoint", "put", "checkpoint", "put", "checkpoint", "older", "put", "checkpoint", "kill", "put"])
@example(["put", "checkpoint", "put", "checkpoint", "older", "older"])
def test_whatever_happens_each_line_stands_there_once_and_in_order(operations: list[str]) -> None:
    """A daemon writes, makes checkpoints, dies, and loses the newest one; a broker goes away, and loses answers."""
    topic = FakeTopic(2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(delivery, "_NAP_SECONDS", 0.0005)
        patch.setattr(delivery, "_LONGEST_PAUSE", 0.001)
        patch.setattr(module, "PATIENCE_SECONDS", 0.01)
        patch.setattr(module, "_CLOSE_SECONDS", 0.01)
        sink = made(topic, transactional_id="me")
        sink.open()
        durable, saved, written = sink.flush(), 0, 0
        older = durable, saved
        for operation in [*operations, *operations.count("put") * ["put"], "checkpoint"]:
            if operation == "put":
                put(sink, *(at(offset, offset % 3) for offset in range(written, written + 3)))
                written += 3
            elif operation == "flush":  # and the disk is full
                flushed(sink)
            elif operation == "checkpoint":
                if (mark := flushed(sink)) is not None:
                    older, durable, saved = (durable, saved), json.loads(json.dumps(mark)), written
                    sink.commit()
            elif operation in ("kill", "older"):
                if operation == "older":
                    durable, saved = older
                sink.close()
                topic.down = False
                sink = made(topic, transactional_id="me")
                sink.open(durable)
                written = saved
            elif operation == "outage":
                topic.down = not topic.down
            elif operation == "break":
                topic.down = True
                wait_until(lambda: topic.down, "the outage")
                topic.down = False
            else:
                topic.doubtful.append(operation == "lost answer")
        topic.down = False
        wait_until(lambda: flushed(sink), "an answer")
        finish(sink)
        sink.close()
    assert topic.lines() == {
        partition: [at(offset, partition) for offset in range(partition, written, 3)]
        for partition in range(min(3, written))
    }


class TestFailures:
    def test_lines_wait_for_a_broker(self, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
        caplog.set_level(logging.INFO, "streamkernel.connectors")
        for name in ("SILENT_SECONDS", "_LONGEST_PAUSE"):
            monkeypatch.setattr(delivery, name, 0.1)
        for name in ("OPEN_SECONDS", "PATIENCE_SECONDS"):
            monkeypatch.setattr(module, name, 0.1)
        topic = FakeTopic()
        topic.down = True
        with made(topic, transactional_id="me") as sink:
            sink.open()
            put(sink, at(0))
            wait_until(lambda: caplog.messages, "the outage to be logged")
            with pytest.raises(OutageError, match=r"nothing is acknowledged \(connection refused\), 1 lines wait"):
                sink.flush()
            assert (sink.waiting, sink.waiting_bytes > 250) == (1, True)
            topic.down = False
            wait_until(lambda: flushed(sink), "the broker to be found")
            finish(sink)
        assert topic.lines() == {0: [at(0)]}
        assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]

    def test_what_breaks_again_and_again_ends_it(self) -> None:
        topic = FakeTopic()
        with made(topic, transactional_id="me") as sink:
            sink.open()
            topic.doubtful = 10 * [False]
            put(sink, at(0))
            sink.flush()
            sink.commit()
            with pytest.raises(SinkError, match=r"refuses the lines again and again \(the answer is lost\)"):
                wait_until(lambda: flushed(sink), "the end")

    def test_what_cannot_be_reached_for_good_is_told_when_it_is_opened(self) -> None:
        topic = FakeTopic()
        topic.refusal = ConnectorError("there is no such topic")
        with made(topic) as sink, pytest.raises(SinkError, match="at broker:9092: there is no such topic"):
            sink.open()

    def test_a_line_too_large_ends_it_unless_it_can_be_shortened(self) -> None:
        topic = FakeTopic()
        sink = made(topic)
        sink.open()
        sink.write([{"raw": 2000 * "x"}], [at(7)])
        with pytest.raises(SinkError, match="the line of offset 7 is too large"):
            sink.flush()
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
        assert topic.values() == [b'{"raw":"xxxxxxxxxx"}', b'{"raw":"short"}']


class TestKeys:
    def test_no_two_lines_share_one(self) -> None:
        places = [at(5), at(5, 1), at(6), Position("labels:source", 0, 5), Position("cluster/other/1", 0, 5)]
        keys = {Provenance(writer).key(place) for writer in ("a1b2c3d4", "e5f6a7b8") for place in places}
        assert len(keys) == 2 * len(places)


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
