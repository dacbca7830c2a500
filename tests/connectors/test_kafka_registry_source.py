"""The source of Kafka with a schema registry, over a topic in memory and a registry of ours."""

from __future__ import annotations

import random
import time
from typing import Any

import pytest
from fake_kafka import FakeCluster, Make, drain, failing, places, until

from streamkernel.connectors.registry import lookup
from streamkernel.connectors.registry.line_schema import file_descriptor
from tests.registry.needs import needed
from tests.registry.schemas import LINE, avro_value, record
from tests.registry.server import RegistryServer, base64_descriptor

needed("fastavro")
needed("google.protobuf")

from streamkernel.connectors.registry.protobuf import MessageTypes  # noqa: E402 - what may be missing

CLICK = record("Click", n="long", y=["null", "string"])


def clicks(count: int, number: int = 1, start: int = 0) -> list[bytes]:
    return [avro_value(CLICK, {"n": n, "y": str(n % 2)}, number) for n in range(start, start + count)]


class TestSource:
    def test_records_come_as_those_of_json(self, cluster: FakeCluster, make: Make, registry: RegistryServer) -> None:
        registry.add(CLICK)
        cluster.produce([*clicks(3), None, b"", b'{"n": 1}', clicks(1)[0] + b"!", *clicks(1, start=9)])
        with make(value_format="avro", registry=registry.settings(), target="y") as source:
            source.open()
            records = drain(source, 8)
        assert [record.x for record in records] == [{"n": 0}, {"n": 1}, {"n": 2}, {}, {}, {}, {}, {"n": 9}]
        assert [record.y for record in records[:3]] == ["0", "1", "0"]
        assert [record.blank for record in records] == [False, False, False, True, True, False, False, False]
        assert [record.fault and record.fault.reason for record in records[5:]] == ["schema", "schema", None]
        assert [path for _, path, _ in registry.requests] == ["/schemas/ids/1"]

    @pytest.mark.parametrize("most", [1, 7, 1000])
    def test_however_it_is_cut(
        self, cluster: FakeCluster, make: Make, registry: RegistryServer, most: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Schemas come and go in the cache, and the registry fails now and then."""
        monkeypatch.setattr(lookup, "MOST_KEPT", 2)
        draw = random.Random(most)
        versions = [record(f"R{version}", n="long", **{f"v{version}": "int"}) for version in range(5)]
        for version in versions:
            registry.add(version)
        numbers = [draw.randrange(5) for _ in range(300)]
        cluster.produce(avro_value(versions[v], {"n": n, f"v{v}": v}, v + 1) for n, v in enumerate(numbers))
        with make(value_format="avro", registry=registry.settings()) as source:
            source.open()
            records = drain(source, 300, most)
        assert [record.x for record in records] == [{"n": n, f"v{v}": v} for n, v in enumerate(numbers)]
        assert [record.position.offset for record in records] == list(range(300))

    def test_an_outage_is_waited_for(self, cluster: FakeCluster, make: Make, registry: RegistryServer) -> None:
        registry.add(CLICK)
        registry.answer = 503, b""
        cluster.produce(clicks(100))
        with make(value_format="avro", registry=registry.settings()) as source:
            source.open()
            assert source.poll(1000, 0.05) == []
            until(lambda: source.health_problem is not None and "503" in source.health_problem)
            assert source.health_problem == (
                "kafka topic t at broker:9092: schema id 1 is not known yet (no answer: HTTP 503 Service Unavailable)"
            )
            until(lambda: source.poll(10, 0.01) == [] and source.lag == {("t", 0): 100})
            assert source.known == {("t", 0): 100}
            registry.answer = None
            assert len(drain(source, 100, most=30)) == 100
            assert source.health_problem is None
            assert source.lag == {("t", 0): 0}
            assert source.known == {("t", 0): 100}

    @pytest.mark.usefixtures("processes")
    def test_a_stop_does_not_wait(self, cluster: FakeCluster, make: Make, registry: RegistryServer) -> None:
        registry.add(CLICK)
        registry.drip = 1.0
        cluster.produce(clicks(1))
        source = make(value_format="avro", registry=registry.settings())
        source.open()
        assert source.poll(1, 0.1) == []
        before = time.monotonic()
        source.close()
        assert time.monotonic() - before < 8
        registry.drip = 0.0
        source.open(places(0))
        assert len(drain(source, 1)) == 1

    @pytest.mark.usefixtures("processes")
    def test_an_unknown_id_ends_it_behind_what_came_before(
        self, cluster: FakeCluster, make: Make, registry: RegistryServer
    ) -> None:
        registry.add(CLICK)
        cluster.produce([*clicks(3), *clicks(1, number=9), *clicks(2)])
        with make(value_format="avro", registry=registry.settings(unknown_seconds=0.1)) as source:
            source.open()
            assert len(drain(source, 3)) == 3
            failing(
                source,
                "kafka topic t at broker:9092: the schema registry does not know schema id 9 (HTTP 404: Schema 9 not "
                "found): register it, or check schema_registry.url; to continue without such records, set "
                "schema_registry.on_unknown_schema: dead_letter",
            )
            registry.schemas[9] = registry.schemas[1]  # too late for this run, and not for the next one
            time.sleep(0.1)
            source.open(places(3))
            assert len(drain(source, 3)) == 3

    def test_an_unknown_id_is_a_dead_letter_on_request(
        self, cluster: FakeCluster, make: Make, registry: RegistryServer
    ) -> None:
        registry.add(CLICK)
        registry.add("{}", "JSON")
        cluster.produce([*clicks(1), *clicks(2, number=9), *clicks(1, number=2), *clicks(1)])
        bearing = registry.settings(unknown_seconds=0.1, on_unknown_schema="dead_letter")
        with make(value_format="avro", registry=bearing) as source:
            source.open()
            records = drain(source, 5)
        assert [record.fault and record.fault.reason for record in records] == [None, *["schema"] * 3, None]
        assert "its type is JSON, and value_format is avro" in str(records[3].fault)

    def test_protobuf_by_the_registry_and_by_a_file(
        self, cluster: FakeCluster, make: Make, registry: RegistryServer, tmp_path: Any
    ) -> None:
        from google.protobuf import descriptor_pb2

        descriptor = file_descriptor(LINE)
        files = MessageTypes([descriptor], descriptor.name)
        message = files.message_class("streamkernel.Line")(prediction="a", std=0.5)
        message.position.offset = 3
        cluster.produce([b"\0\0\0\0\1\0" + message.SerializeToString()])
        text = "the text, which the server cannot read"
        registry.add(text, "PROTOBUF")
        registry.serialized[text] = base64_descriptor(descriptor)
        path = tmp_path / "line.desc"
        path.write_bytes(descriptor_pb2.FileDescriptorSet(file=[descriptor]).SerializeToString())
        named = {"descriptor_set": str(path), "message": "streamkernel.Line"}
        for more in ({}, named):
            with make(value_format="protobuf", registry=registry.settings(**more)) as source:
                source.open()
                (one,) = drain(source, 1)
                assert one.fault is not None
                assert one.fault.detail == "input 'position' is a dict, not a number or a string"
        registry.knows_serialized = False
        with make(value_format="protobuf", registry=registry.settings()) as source:
            source.open()
            failing(
                source, "schema id 1 cannot be used: the registry has the schema as text only: name a file of protoc"
            )
        with make(value_format="protobuf", registry=registry.settings(**named)) as source:
            source.open()
            assert drain(source, 1)[0].fault == one.fault

    @pytest.mark.parametrize(
        ("value_format", "more", "said"),
        [
            ("avr", {}, "value_format must be one of json, avro, json_schema, protobuf, got 'avr'"),
            ("avro", {"descriptor_set": "x"}, "descriptor_set: works only with value_format protobuf"),
            ("avro", {"message": "x"}, "message: works only with value_format protobuf"),
            ("protobuf", {"descriptor_set": "x"}, "message: required with schema_registry.descriptor_set"),
            ("protobuf", {"descriptor_set": "none", "message": "x"}, "descriptor_set: none: cannot be read"),
        ],
    )
    def test_settings_that_cannot_be(
        self, make: Make, registry: RegistryServer, value_format: Any, more: dict[str, str], said: str
    ) -> None:
        with pytest.raises(ValueError, match=said):
            make(value_format=value_format, registry=registry.settings(**more))
