"""The sink on a real broker: what stands in the topic, and how it goes on from a mark."""

from __future__ import annotations

import contextlib
import json
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaProducer

from streamkernel.connectors import JsonLinesSink, SinkError
from streamkernel.connectors.kafka.base import client
from streamkernel.connectors.kafka.consumer import topic as kafka_topic
from streamkernel.connectors.kafka.writing.provenance import Provenance
from streamkernel.connectors.kafka.writing.sink import KafkaSink
from tests.kafka.broker import Broker
from tests.kafka.cluster import Cluster
from tests.kafka.producing import consume, produce
from tests.kafka.sinking import STREAM, at, opened, put, settle, standing

MakeTopic = Callable[..., str]


class TestLines:
    def test_a_line_is_that_of_a_file_with_its_origin_beside_it(
        self, broker: Cluster, topic: MakeTopic, tmp_path: Path
    ) -> None:
        name = topic()
        lines: list[dict[str, Any]] = [
            {"prediction": "ja", "probabilities": {True: 0.5, 2: float("nan")}},
            {"prediction": "né\n", "target": 2**70},
        ]
        with JsonLinesSink(tmp_path / "lines.jsonl") as file, opened(broker, name) as sink:
            file.open()
            file.write(lines)
            sink.write(lines, [at(7, 3), at(9, 3)])
        records = consume(broker.bootstrap, name)[0]
        assert [record.value for record in records] == (tmp_path / "lines.jsonl").read_bytes().splitlines()
        headers = [dict(record.headers) for record in records]
        provenance = Provenance(str(headers[0]["writer"], "ascii"))
        assert [record.key for record in records] == [provenance.key(at(7, 3)), provenance.key(at(9, 3))]
        assert [(each["source.stream"], each["source.partition"], each["source.offset"]) for each in headers] == [
            (STREAM.encode(), b"3", b"7"),
            (STREAM.encode(), b"3", b"9"),
        ]
        assert len({each["writer"] for each in headers}) == 1

    def test_a_partition_of_the_source_keeps_its_order(self, broker: Cluster, topic: MakeTopic) -> None:
        name = topic(partitions=3)
        with opened(broker, name, options={"batch_size": 500, "linger_ms": 0}) as sink:
            for offset in range(0, 500, 100):
                for partition in range(5):
                    put(sink, [at(number, partition) for number in range(offset, offset + 100)])
        found = consume(broker.bootstrap, name)
        assert {
            partition: {record.key.split(b":")[2] for record in records} for partition, records in found.items()
        } == {
            0: {b"0", b"3"},
            1: {b"1", b"4"},
            2: {b"2"},
        }
        assert standing(broker, name) == {partition: [*range(500)] for partition in range(5)}

    @pytest.mark.parametrize("compression", ["gzip", "snappy", "lz4", "zstd"])
    def test_codecs(self, broker: Cluster, topic: MakeTopic, compression: str) -> None:
        name = topic()
        with opened(broker, name, compression=compression) as sink:
            put(sink, map(at, range(2000)))
        assert standing(broker, name) == {0: [*range(2000)]}
        [records] = consume(broker.bootstrap, name).values()
        assert [json.loads(record.value)["n"] for record in records] == [*range(2000)]

    def test_a_batch_larger_than_the_topic_takes_is_parted(self, broker: Cluster, topic: MakeTopic) -> None:
        name = topic(max_message_bytes=3000)
        with opened(broker, name) as sink:
            put(sink, map(at, range(1000)))
        assert standing(broker, name) == {0: [*range(1000)]}


@pytest.mark.parametrize("transactional_id", [None, "me"], ids=["at once", "transactions"])
class TestGoingOn:
    @pytest.fixture
    def ways(self, transactional_id: str | None, topic: MakeTopic) -> tuple[str, dict[str, Any]]:
        name = topic(partitions=2)
        return name, {} if transactional_id is None else {"transactional_id": f"{transactional_id}-{name}"}

    def test_what_stands_behind_the_mark_is_not_written_again(
        self, broker: Cluster, ways: tuple[str, dict[str, Any]]
    ) -> None:
        name, more = ways
        with opened(broker, name, **more) as sink:
            put(sink, [*map(at, range(10)), at(0, 1)])
            mark = json.loads(json.dumps(sink.flush()))
            put(sink, [*map(at, range(10, 20)), at(1, 1)])
            sink.flush()
            put(sink, map(at, range(20, 25)))
            sink.flush()
        with opened(broker, name, mark, **more) as sink:
            put(sink, map(at, range(10, 15)))
            halfway = sink.flush()
        # Killed once more, after a checkpoint on the way through what is there.
        with opened(broker, name, json.loads(json.dumps(halfway)), **more) as sink:
            put(sink, [*map(at, range(15, 30)), at(1, 1), at(2, 1)])
        assert standing(broker, name) == {0: [*range(30)], 1: [0, 1, 2]}

    def test_no_mark_appends_and_says_so(
        self, broker: Cluster, ways: tuple[str, dict[str, Any]], caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.INFO, "streamkernel.connectors")
        name, more = ways
        for _ in range(2):
            with opened(broker, name, existing="append", **more) as sink:
                put(sink, map(at, range(3)))
        assert standing(broker, name) == {0: [0, 1, 2, 0, 1, 2]}
        assert [record.levelname for record in caplog.records] == ["INFO", "WARNING"]
        assert caplog.messages[0] == f"kafka topic {name} holds lines already: new ones are appended to them"
        assert "3 of the last lines there are for records of the same source, partition 0" in caplog.messages[1]

    def test_no_mark_and_lines_for_the_same_records_is_refused(
        self, broker: Cluster, ways: tuple[str, dict[str, Any]]
    ) -> None:
        name, more = ways
        with opened(broker, name, **more) as sink:
            put(sink, [*map(at, range(3)), at(0, 1)])
        for mark in (None, None):
            sink = opened(broker, name, mark, **more)
            mark = sink.flush()
            put(sink, [at(0, 2)])  # of a partition that nobody wrote for yet
            with pytest.raises(SinkError, match=r"3 of the last lines there .* partition 0, .*existing: append"):
                put_all(sink, [at(0)])
            sink.close()
        with opened(broker, name, mark, **more) as sink, pytest.raises(SinkError, match="1 of the last lines there"):
            put_all(sink, [at(0, 1)])
        assert standing(broker, name)[0] == [0, 1, 2]

    def test_transactions_of_others_are_not_waited_for(
        self, broker: Cluster, ways: tuple[str, dict[str, Any]], caplog: pytest.LogCaptureFixture
    ) -> None:
        name, more = ways
        mark: Any = None
        with opened(broker, name, **more) as sink:
            put(sink, map(at, range(3)))
            mark = sink.flush()
            with open_transaction(broker, name):
                put(sink, map(at, range(3, 6)))
                sink.flush()
                with opened(broker, name, mark, **more) as again:
                    put(again, map(at, range(3, 9)))
                    mark = again.flush()
                    put(again, [at(9)])
                    again.flush()
                with opened(broker, name, mark, **more) as again:
                    put(again, map(at, range(9, 12)))
        assert standing(broker, name) == {0: [*range(12)]}
        assert not caplog.records

    def test_other_writers_may_use_the_topic(self, broker: Cluster, ways: tuple[str, dict[str, Any]]) -> None:
        name, more = ways
        with opened(broker, name, **more) as sink:
            put(sink, map(at, range(3)))
            mark = sink.flush()
            put(sink, map(at, range(3, 6)))
        produce(broker.bootstrap, name, [b"no JSON", {"a": 1}], headers=lambda _: [("source.offset", b"x")])
        produce(broker.bootstrap, name, [{"a": 1}], transactional_id=f"other-{name}", abort=True)
        with opened(broker, name, mark, **more) as sink:
            put(sink, map(at, range(3, 9)))
        offsets = [
            int(headers["source.offset"])
            for record in consume(broker.bootstrap, name)[0]
            if "writer" in (headers := dict(record.headers))
        ]
        assert offsets == [*range(9)]

    def test_partitions_that_were_added_are_used(self, broker: Cluster, ways: tuple[str, dict[str, Any]]) -> None:
        name, more = ways
        with opened(broker, name, **more) as sink:
            put(sink, [at(0), at(0, 2)])
            mark = sink.flush()
            put(sink, [at(1), at(1, 2)])
        with broker.admin() as admin:
            admin.create_partitions({name: 3})
        with opened(broker, name, mark, **more) as sink:
            put(sink, [at(1), at(1, 2), at(2), at(2, 2)])
        assert standing(broker, name) == {0: [0, 1, 2], 2: [0, 1, 2]}
        assert len(consume(broker.bootstrap, name)[2]) == 1

    def test_a_topic_made_anew_is_begun_and_said(
        self, broker: Cluster, ways: tuple[str, dict[str, Any]], caplog: pytest.LogCaptureFixture
    ) -> None:
        name, more = ways
        with opened(broker, name, **more) as sink:
            put(sink, map(at, range(50)))
            mark = sink.flush()
        broker.delete_topic(name)
        broker.create_topic(name)
        with opened(broker, name, mark, **more) as sink:
            put(sink, map(at, range(50, 60)))
            sink.flush()
        with opened(broker, name, mark, **more) as sink:  # killed before a checkpoint
            put(sink, map(at, range(50, 70)))
        assert standing(broker, name) == {0: [*range(50, 70)]}
        assert caplog.messages[0] == f"kafka topic {name} was deleted and created again: its earlier lines are gone"

    def test_retention_behind_the_mark_is_told(
        self, broker: Cluster, ways: tuple[str, dict[str, Any]], caplog: pytest.LogCaptureFixture
    ) -> None:
        name, more = ways
        with opened(broker, name, **more) as sink:
            mark = sink.flush()
            put(sink, map(at, range(10)))
        broker.delete_records(name, {0: 4})
        with opened(broker, name, mark, **more) as sink:
            put(sink, map(at, range(12)))
        assert standing(broker, name) == {0: [*range(4, 10), 10, 11]}
        assert "partition 0: offsets 0 to 3 were removed since the checkpoint, 4 of our lines" in caplog.messages[0]

    def test_retention_of_what_the_mark_covers_is_no_news(
        self, broker: Cluster, ways: tuple[str, dict[str, Any]], caplog: pytest.LogCaptureFixture
    ) -> None:
        name, more = ways
        with opened(broker, name, **more) as sink:
            put(sink, [*map(at, range(10)), at(0, 1)])
            mark = sink.flush()
        # All of it, with the marks of the transactions.
        broker.delete_records(name, broker.end_offsets(name))
        with opened(broker, name, json.loads(json.dumps(mark)), **more) as sink:
            put(sink, map(at, range(10, 12)))
        assert standing(broker, name) == {0: [10, 11]}
        assert not caplog.records

    def test_retention_of_everything_is_told_with_its_number(
        self, broker: Cluster, ways: tuple[str, dict[str, Any]], caplog: pytest.LogCaptureFixture
    ) -> None:
        name, more = ways
        with opened(broker, name, **more) as sink:
            mark = sink.flush()
            put(sink, map(at, range(10)))
        broker.delete_records(name, broker.end_offsets(name))
        with opened(broker, name, mark, **more) as sink:
            put(sink, map(at, range(12)))
        assert standing(broker, name) == {0: [*range(12)]}
        assert "were removed since the checkpoint, 10 of our lines with them" in caplog.messages[0]

    def test_a_topic_that_lost_lines_is_refused(self, broker: Cluster, ways: tuple[str, dict[str, Any]]) -> None:
        name, more = ways
        with opened(broker, name, **more) as sink:
            put(sink, map(at, range(10)))
            mark = sink.flush()
        assert isinstance(mark, dict)
        mark["ends"]["0"] += 20
        with pytest.raises(SinkError, match=r"ends at offset 1[01], before offset 30 of the checkpoint.*--fresh"):
            opened(broker, name, mark, **more)

    def test_another_cluster_is_told(
        self, broker: Cluster, ways: tuple[str, dict[str, Any]], caplog: pytest.LogCaptureFixture
    ) -> None:
        name, more = ways
        with opened(broker, name, **more) as sink:
            mark = sink.flush()
            put(sink, map(at, range(3)))
        assert isinstance(mark, dict)
        mark["stream"] = f"elsewhere/{name}/1"
        with opened(broker, name, mark, existing="append", **more) as sink:
            put(sink, map(at, range(3)))
        assert standing(broker, name) == {0: [0, 1, 2, 0, 1, 2]}
        assert (
            caplog.messages[0] == f"kafka topic {name} is on another cluster than at the checkpoint: lines are appended"
        )


@contextlib.contextmanager
def open_transaction(cluster: Cluster, topic: str) -> Iterator[None]:
    """Have somebody else's transaction open in every partition of a topic, and aborted in the end."""
    producer = KafkaProducer(bootstrap_servers=cluster.bootstrap, transactional_id=f"somebody-{topic}")
    producer.init_transactions()
    producer.begin_transaction()
    for partition in producer.partitions_for(topic):
        producer.send(topic, b"{}", partition=partition).get(timeout=30)
    yield
    producer.abort_transaction()
    producer.close()


def put_all(sink: KafkaSink, positions: list[Any]) -> None:
    put(sink, positions)
    sink.flush()


class TestTransactions:
    def test_what_is_not_committed_does_not_count(self, broker: Cluster, topic: MakeTopic) -> None:
        name = topic()
        sink = opened(broker, name, transactional_id=name)
        put(sink, map(at, range(3)))
        mark = sink.flush()
        put(sink, map(at, range(3, 6)))
        settle(sink)  # they stand in the log
        assert standing(broker, name) == {0: [0, 1, 2]}
        with opened(broker, name, mark, transactional_id=name) as again:
            put(again, map(at, range(3, 7)))
        assert standing(broker, name) == {0: [*range(7)]}
        assert standing(broker, name, isolation_level="read_uncommitted") == {0: [*range(6), *range(3, 7)]}
        with pytest.raises(SinkError, match=rf"writes with the transactional_id {name} and has fenced this one off:"):
            sink.flush()
        sink.close()

    @pytest.mark.parametrize("later", [None, "another"])
    def test_another_transactional_id_ends_what_the_old_one_left(
        self, broker: Cluster, topic: MakeTopic, later: str | None
    ) -> None:
        name = topic()
        sink = opened(broker, name, transactional_id=name)
        put(sink, map(at, range(3)))
        mark = sink.flush()
        put(sink, map(at, range(3, 6)))
        settle(sink)
        more = {} if later is None else {"transactional_id": f"{later}-{name}"}
        with opened(broker, name, mark, **more) as again:
            put(again, map(at, range(3, 7)))
        assert standing(broker, name) == {0: [*range(7)]}
        with pytest.raises(SinkError, match="fenced this one off"):
            sink.flush()
        sink.close()


class TestProbe:
    def test_it_names_the_topic_and_shuts_nobody_out(self, broker: Cluster, topic: MakeTopic) -> None:
        name = topic()
        with opened(broker, name, transactional_id=name) as sink:
            put(sink, [at(0)])
            assert KafkaSink(name, broker.bootstrap, name).probe() == f"kafka topic {name} at {broker.bootstrap}"
            sink.flush()
        assert standing(broker, name) == {0: [0]}

    def test_it_says_what_is_wrong(self, local_broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(kafka_topic, "SETTLING_SECONDS", 0.1)
        monkeypatch.setattr(client, "FIRST_SECONDS", 0.5)
        with pytest.raises(SinkError, match=r"kafka topic nowhere at .*: the cluster has no such topic"):
            KafkaSink("nowhere", local_broker.bootstrap).probe()
        with pytest.raises(SinkError, match=r"kafka topic nowhere at 127\.0\.0\.1:1: .*connection refused"):
            KafkaSink("nowhere", "127.0.0.1:1").probe()
