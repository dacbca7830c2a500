"""The sink on a real broker: what stands in the topic."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from streamkernel.connectors import JsonLinesSink, SinkError
from streamkernel.connectors.kafka.base import client
from streamkernel.connectors.kafka.writing import topic as kafka_topic
from streamkernel.connectors.kafka.writing.line import Provenance
from streamkernel.connectors.kafka.writing.sink import KafkaSink
from tests.kafka.broker import Broker
from tests.kafka.cluster import Cluster
from tests.kafka.producing import consume, open_transaction
from tests.kafka.sinking import STREAM, at, finish, opened, put, standing

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
            finish(sink)
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
            finish(sink)
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
            finish(sink)
        assert standing(broker, name) == {0: [*range(2000)]}
        [records] = consume(broker.bootstrap, name).values()
        assert [json.loads(record.value)["n"] for record in records] == [*range(2000)]

    def test_a_batch_larger_than_the_topic_takes_is_parted(self, broker: Cluster, topic: MakeTopic) -> None:
        name = topic(max_message_bytes=3000)
        with opened(broker, name) as sink:
            put(sink, map(at, range(1000)))
            finish(sink)
        assert standing(broker, name) == {0: [*range(1000)]}


@pytest.mark.parametrize("transactional", [False, True], ids=["at once", "transactions"])
class TestRestarts:
    def test_transactions_of_others_are_not_waited_for(
        self, broker: Cluster, topic: MakeTopic, transactional: bool, caplog: pytest.LogCaptureFixture
    ) -> None:
        name = topic()
        more = {} if transactional else {"transactional_id": None}
        with open_transaction(broker.bootstrap, name, [{}]) as end:
            mark: Any = None
            for first in (0, 3, 6):
                with opened(broker, name, mark, **more) as sink:
                    put(sink, map(at, range(first, first + 3)))
                    mark = finish(sink)
            end()
        assert standing(broker, name) == {0: [*range(9)]}
        assert not caplog.records

    def test_partitions_that_were_added_are_used(self, broker: Cluster, topic: MakeTopic, transactional: bool) -> None:
        name = topic(2)
        more = {} if transactional else {"transactional_id": None}
        with opened(broker, name, **more) as sink:
            put(sink, [at(0), at(0, 2)])
            mark = finish(sink)
        with broker.admin() as admin:
            admin.create_partitions({name: 3})
        with opened(broker, name, mark, **more) as sink:
            put(sink, [at(1), at(1, 2)])
            finish(sink)
        assert standing(broker, name) == {0: [0, 1], 2: [0, 1]}
        assert len(consume(broker.bootstrap, name)[2]) == 1


class TestProbe:
    def test_it_names_the_topic_and_shuts_nobody_out(self, broker: Cluster, topic: MakeTopic) -> None:
        name = topic()
        with opened(broker, name, transactional_id=name) as sink:
            put(sink, [at(0)])
            assert KafkaSink(name, broker.bootstrap, name).probe() == f"kafka topic {name} at {broker.bootstrap}"
            finish(sink)
        assert standing(broker, name) == {0: [0]}

    def test_it_says_what_is_wrong(self, local_broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(kafka_topic, "_SETTLING_SECONDS", 0.1)
        monkeypatch.setattr(client, "FIRST_SECONDS", 0.5)
        with pytest.raises(SinkError, match=r"kafka topic nowhere at .*: the cluster has no such topic"):
            KafkaSink("nowhere", local_broker.bootstrap).probe()
        with pytest.raises(SinkError, match=r"kafka topic nowhere at 127\.0\.0\.1:1: .*connection refused"):
            KafkaSink("nowhere", "127.0.0.1:1").probe()
