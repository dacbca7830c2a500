"""The sink where a topic is deleted or created again, a line is too large, or a right is missing."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from streamkernel.connectors import SinkError
from streamkernel.connectors.kafka.writing.sink import KafkaSink
from streamkernel.connectors.pass_through import MessageLine, SourceMessage
from streamkernel.daemon.stream.lines import dead_letter, shortened
from tests.kafka.broker import Broker
from tests.kafka.cluster import Cluster
from tests.kafka.listeners import GUEST, login
from tests.kafka.producing import consume
from tests.kafka.sinking import at, finish, opened, place_of, put, standing, write_on

MakeTopic = Callable[..., str]

BOTH = pytest.mark.parametrize("transactional_id", [None, "me"], ids=["at once", "transactions"])


@BOTH
class TestTopics:
    def test_one_that_is_not_there(self, broker: Cluster, transactional_id: str | None) -> None:
        with pytest.raises(SinkError, match=r"^kafka topic nowhere at .*: the cluster has no such topic: check"):
            opened(broker, "nowhere", transactional_id=transactional_id)

    @pytest.mark.parametrize(
        ("again", "sentence"),
        [
            (False, "at .*: the (topic was deleted while it was|cluster has no such)"),
            (True, "was deleted and created again while it was written; start again"),
        ],
    )
    def test_one_that_is_deleted(
        self, broker: Cluster, topic: MakeTopic, transactional_id: str | None, again: bool, sentence: str
    ) -> None:
        name = topic()
        more = {"transactional_id": transactional_id and name, "options": {"metadata_max_age_ms": 200}}
        sink = opened(broker, name, **more)
        put(sink, map(at, range(5)))
        sink.flush()
        broker.delete_topic(name)
        if again:
            broker.create_topic(name)
        with pytest.raises(SinkError, match=sentence):
            write_on(sink)
        sink.close()


class TestTooLarge:
    @BOTH
    def test_the_record_and_the_limit_are_told(
        self, broker: Cluster, topic: MakeTopic, transactional_id: str | None
    ) -> None:
        name = topic(max_message_bytes=2000)
        sink = opened(broker, name, transactional_id=transactional_id and name)
        put(sink, map(at, range(5)))
        mark = finish(sink)
        sink.write([{"text": "a"}, {"text": 5000 * "x"}, {"text": "b"}], [at(5), at(6), at(7)])
        with pytest.raises(SinkError) as caught:
            sink.flush()
        assert str(caught.value) == (
            f"kafka topic {name} at {broker.bootstrap}: the line of the record at partition 0, offset 6 takes 5,011 "
            "bytes, more than the 2,000 of its max.message.bytes (or max_request_size under options): raise that, "
            "or lower limits.max_record_bytes"
        )
        sink.close()
        with broker.admin() as admin:
            from kafka.admin import ConfigResource, ConfigResourceType

            admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, name, {"max.message.bytes": "20000"})])
        with opened(broker, name, mark, transactional_id=transactional_id and name) as again:
            again.write([{"text": "a"}, {"text": 5000 * "x"}, {"text": "b"}], [at(5), at(6), at(7)])
            finish(again)
        assert sorted({*standing(broker, name)[0]}) == [*range(8)]

    def test_a_limit_of_the_clients_own(self, broker: Cluster, topic: MakeTopic) -> None:
        name = topic()
        sink = opened(broker, name, options={"max_request_size": 3000})
        with pytest.raises(
            SinkError, match=r"at partition 4, offset 6 takes 5,011 bytes, .*max_request_size under opt"
        ):
            put_whole(sink, [{"text": 5000 * "x"}], [at(6, 4)])
        sink.close()

    def test_a_dead_letter_is_shortened(self, broker: Cluster, topic: MakeTopic) -> None:
        name = topic(max_message_bytes=9000)
        with opened(broker, name, shorten=shortened) as sink:
            raws = [b"short", 20_000 * b"\xff", 20_000 * b"\n"]
            sink.write([dead_letter(at(n), "not_json", "why", raw) for n, raw in enumerate(raws)], map_at(range(3)))
            finish(sink)
        values = [record.value for record in consume(broker.bootstrap, name)[0]]
        assert [b"raw holds its first" in value for value in values] == [False, True, True]
        assert all(len(value) < 9000 for value in values)


@BOTH
def test_what_a_topic_refuses_of_messages_is_left_out(
    broker: Cluster, topic: MakeTopic, transactional_id: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    """A time far ahead, no key where the topic is compacted, headers of two megabytes: among others, and at once."""
    name = topic(**{"cleanup.policy": "compact", "message.timestamp.after.max.ms": "3600000"})
    now = 1000 * int(time.time())
    good = SourceMessage(b"k", (("h", b"v"),), now)
    odd = {
        3: good._replace(timestamp=now + 10**10),
        4: good._replace(timestamp=now + 10**9),
        7: good._replace(key=None),
        9: good._replace(headers=(("h", bytes(2**21)),)),
        12: SourceMessage(None, (("h", bytes(2**21)),), now + 10**10),
        15: good._replace(timestamp=now + 7_200_000),
    }
    messages = [odd.get(n, good._replace(key=b"k%d" % n)) for n in range(20)]
    more = {"key": "source", "pass_through": ["headers", "timestamp"]}
    with opened(broker, name, transactional_id=transactional_id and name, **more) as sink:
        for first in (0, 10):
            places = range(first, first + 10)
            sink.write([MessageLine({"n": n}, messages[n]) for n in places], map_at(places))
            finish(sink)
    records = consume(broker.bootstrap, name, isolation_level="read_committed")[0]
    assert [place_of(record)[1] for record in records] == [*range(20)]
    passed = {n: dict(record.headers).get("h") for n, record in enumerate(records)}
    assert passed == {n: None if n in (9, 12) else b"v" for n in range(20)}
    assert [n for n, record in enumerate(records) if record.key != messages[n].key] == [7, 12]
    assert [n for n, record in enumerate(records) if record.timestamp != messages[n].timestamp] == [3, 4, 12, 15]
    for part in ("key", "headers", "timestamp"):
        assert f"the topic does not accept the {part} of source messages" in caplog.text


def put_whole(sink: KafkaSink, lines: list[Any], positions: list[Any]) -> None:
    sink.write(lines, positions)
    sink.flush()


def map_at(offsets: range) -> list[Any]:
    return [at(offset) for offset in offsets]


class TestRights:
    def sink(self, broker: Broker, name: str, **more: Any) -> KafkaSink:
        return KafkaSink(name, broker.sasl, options=login(), **more)

    def test_none_at_all(self, local_broker: Broker, topic: MakeTopic) -> None:
        name = topic()
        with pytest.raises(SinkError, match="not authorized to write to the topic"):
            self.sink(local_broker, name).open()

    def test_only_to_read(self, local_broker: Broker, topic: MakeTopic) -> None:
        name = topic()
        local_broker.allow(GUEST[0], "read", "describe", topic=name)
        with pytest.raises(SinkError, match="not authorized to write to the topic: grant Write on it"):
            self.sink(local_broker, name).open()
        with pytest.raises(SinkError, match="not authorized to write to the topic: grant Write on it"):
            self.sink(local_broker, name).probe()

    def test_not_to_the_transactional_id(self, local_broker: Broker, topic: MakeTopic) -> None:
        name = topic()
        local_broker.allow(GUEST[0], topic=name)
        with pytest.raises(
            SinkError, match=f"not authorized to use the transactional_id {name}: grant Write and Describe"
        ):
            self.sink(local_broker, name, transactional_id=name).open()

    @pytest.mark.parametrize("transactional", [False, True])
    def test_what_is_needed_is_enough(self, local_broker: Broker, topic: MakeTopic, transactional: bool) -> None:
        name = topic()
        local_broker.allow(GUEST[0], "write", "describe", topic=name)
        more = {"transactional_id": name} if transactional else {}
        if transactional:
            local_broker.allow(GUEST[0], "write", "describe", transactional_id=name)
            with pytest.raises(SinkError, match=f"not authorized to use the group {name}, .* grant Read on it"):
                self.sink(local_broker, name, **more).open()
            local_broker.allow(GUEST[0], "read", group=name)
            with pytest.raises(SinkError, match=r"not authorized to read the topic, .* grant Read on it"):
                self.sink(local_broker, name, **more).open()
            local_broker.allow(GUEST[0], "read", topic=name)
        mark: Any = None
        for first in (0, 3):
            with self.sink(local_broker, name, **more) as sink:
                sink.open(mark)
                put(sink, map(at, range(first, first + 3)))
                mark = finish(sink)
        assert standing(local_broker, name) == {0: [*range(6)]}

    def test_wrong_credentials(self, local_broker: Broker, topic: MakeTopic) -> None:
        sink = KafkaSink(topic(), local_broker.sasl, options=login((GUEST[0], "a secret")))
        with pytest.raises(SinkError, match="credentials") as caught:
            sink.open()
        assert "a secret" not in str(caught.value)
