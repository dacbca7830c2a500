"""Columns in and out of topics with a schema registry: how they are read, and what passes through to the lines."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from fake_kafka import FakeCluster, Make, drain, until
from fake_output import FakeTopic, at, flushed, made

from streamkernel.connectors.columns.settings import ColumnSettings, InputSettings
from streamkernel.connectors.pass_through import MessageLine, PassedColumn, SourceMessage
from streamkernel.connectors.ports import Position, SourceError
from streamkernel.connectors.registry.settings import RegistrySettings
from streamkernel.daemon.stream.line_schemas import prediction_schema
from streamkernel.daemon.stream.lines import LongColumns
from tests.registry.needs import needed
from tests.registry.schemas import avro_value, record
from tests.registry.server import RegistryServer

fastavro = needed("fastavro")
needed("google.protobuf")

from streamkernel.connectors.registry.line_schema import file_descriptor  # noqa: E402
from streamkernel.connectors.registry.protobuf import MessageTypes  # noqa: E402 - what may be missing

ORDER = record(
    "Order",
    id="long",
    zip="int",
    placed={"type": "long", "logicalType": "timestamp-millis"},
    user=record("User", name="string", age=["null", "double"]),
    y="string",
)
BEGAN = 1_763_802_000
PASSED = [
    PassedColumn("id", "id", "int"),
    PassedColumn("placed", "placed_at", "timestamp"),
    PassedColumn("user.name", "name", "str"),
    PassedColumn("user", "user"),
    PassedColumn("kafka.key", "kafka.key", "str"),
]
MESSAGE = SourceMessage(b"customer 7", (("trace", b"1"),), 1500)
LINE = {
    "position": {"partition": 0, "offset": 4},
    "prediction": True,
    "target": None,
    "probabilities": {"true": 0.75, "false": 0.25},
    "checkpoint": 12,
    "id": 7,
    "placed_at": "2025-11-22T09:00:00Z",
    "name": "Ada",
    "user": {"name": "Ada", "age": 36.0},
    "kafka.key": "k",
}
EXTRA = {"user": '{"name":"Ada","age":36.0}', "kafka.key": "k"}

pytestmark = pytest.mark.usefixtures("short_naps")


def orders(count: int) -> list[bytes]:
    return [
        avro_value(
            ORDER,
            {
                "id": n,
                "zip": 2134 + n,
                "placed": 1000 * (BEGAN + n),
                "user": {"name": "Ada", "age": 36.0 if n else None},
                "y": "no",
            },
        )
        for n in range(count)
    ]


class TestSource:
    INPUTS = InputSettings(
        exclude=("id", "user.name"),
        nested="flatten",
        types={"zip": ColumnSettings("string"), "placed": ColumnSettings("date", format="unix", parts=("year",))},
    )

    def test_columns_are_read_by_their_rules(self, cluster: FakeCluster, make: Make, registry: RegistryServer) -> None:
        registry.add(ORDER)
        cluster.produce(orders(3))
        source = make(value_format="avro", registry=RegistrySettings(registry.url), target="y", inputs=self.INPUTS)
        source.open()
        records = drain(source, 3)
        assert [one.fault for one in records] == [None] * 3
        assert records[0].x == {"zip": "2134", "placed.year": 2025}
        assert records[2].x == {"zip": "2136", "placed.year": 2025, "user.age": 36}
        uses = {use.name: use.type for use in source.columns(records[2])}
        assert uses["zip"] == "string"
        assert uses["placed"] == "date"

    def test_columns_and_messages_pass_through(
        self, cluster: FakeCluster, make: Make, registry: RegistryServer
    ) -> None:
        registry.add(ORDER)
        cluster.produce(orders(2), key=b"k")
        source = make(value_format="avro", registry=RegistrySettings(registry.url), target="y", inputs=self.INPUTS)
        source.pass_through(PASSED, message=True)
        source.open()
        passed = drain(source, 2)[1].passed
        assert passed is not None
        assert passed.message is not None
        assert passed.message.key == b"k"
        assert passed.columns == {
            "id": 1,
            "placed_at": "2025-11-22T09:00:01Z",
            "name": "Ada",
            "user": {"name": "Ada", "age": 36.0},
            "kafka.key": "k",
        }

    def test_one_value_is_decoded_once_its_schema_is_there(self, make: Make, registry: RegistryServer) -> None:
        """As a replay does, which opens no topic."""
        registry.add(ORDER)
        registry.answer = 503, b""
        source = make(value_format="avro", registry=RegistrySettings(registry.url), target="y", inputs=self.INPUTS)
        (raw,) = orders(1)
        assert not source.decodable(raw, 0.05)
        registry.answer = None
        until(lambda: source.decodable(raw, 0.05))
        here, there = Position("s", 0, 5), Position("s", 0, 9)
        made = source.decode(raw, here, there)
        assert (made.x, made.y, made.position, made.next) == ({"zip": "2134", "placed.year": 2025}, "no", here, there)
        assert source.decodable(b"no frame", 0.0)
        fault = source.decode(b"no frame", here, there).fault
        assert fault is not None
        assert fault.reason == "schema"
        assert source.decodable(b"", 0.0)
        assert source.decode(b"", here, there).blank

    def test_a_schema_that_never_comes_ends_it(self, make: Make, registry: RegistryServer) -> None:
        settings = RegistrySettings(registry.url, unknown_seconds=0.05)
        source = make(value_format="avro", registry=settings)
        with pytest.raises(SourceError, match=r"topic t .* schema id 1"):
            until(lambda: source.decodable(orders(1)[0], 0.05))


class TestSink:
    SCHEMA = prediction_schema("bool", PASSED)

    def values(self, registry: RegistryServer, value_format: str) -> list[bytes]:
        topic = FakeTopic()
        settings = RegistrySettings(registry.url)
        with made(topic, value_format=value_format, registry=settings, schema=self.SCHEMA) as sink:
            sink.open()
            sink.write([LINE, {**LINE, "id": None}], [at(1), at(2)])
            sink.flush()
        return topic.values()

    def test_columns_with_a_type_are_fields_of_avro(self, registry: RegistryServer) -> None:
        value = self.values(registry, "avro")[0]
        schema = json.loads(registry.schemas[1]["schema"])
        kinds = {field["name"]: field["type"] for field in schema["fields"]}
        assert kinds["id"] == ["null", "long"]
        assert kinds["placed_at"] == kinds["name"] == ["null", "string"]
        assert not {"user", "kafka.key"} & set(kinds)
        found = fastavro.schemaless_reader(io.BytesIO(value[5:]), fastavro.parse_schema(schema), None)
        kept = {name: value for name, value in LINE.items() if name not in EXTRA}
        assert found == {**kept, "std": None, "extra": EXTRA}

    def test_columns_with_a_type_are_fields_of_protobuf(self, registry: RegistryServer) -> None:
        descriptor = file_descriptor(self.SCHEMA)
        make = MessageTypes([descriptor], descriptor.name).message_class("streamkernel.Prediction")
        first, second = (make.FromString(value[6:]) for value in self.values(registry, "protobuf"))
        assert (first.id, first.placed_at, first.name, dict(first.extra)) == (7, LINE["placed_at"], "Ada", EXTRA)
        assert (first.checkpoint, first.prediction) == (12, True)
        assert not second.HasField("id")
        numbers = {field.name: field.number for field in make.DESCRIPTOR.fields}
        # Those of our own, and of what is not known beforehand, do not move with what passes through.
        assert (numbers["checkpoint"], numbers["extra"], numbers["id"], numbers["name"]) == (6, 15, 16, 18)

    def test_json_schema_has_them_beside_the_others(self, registry: RegistryServer) -> None:
        value = self.values(registry, "json_schema")[0]
        assert json.loads(value[5:]) == LINE
        properties = json.loads(registry.schemas[1]["schema"])["properties"]
        assert properties["id"] == {"type": ["integer", "null"]}

    @pytest.mark.parametrize(
        "name", ["", "a b", "1st", "_id", "Extra", "extra_entry", "probabilities_entry", "Position", "café"]
    )
    def test_what_can_be_no_field_is_text(self, name: str) -> None:
        assert prediction_schema("str", [PassedColumn("a", name, "int")]).added == ()

    def test_names_that_are_one_in_json(self) -> None:
        columns = [PassedColumn(name, name, "int") for name in ("order_id", "orderId", "order")]
        assert [field.name for field in prediction_schema("str", columns).added] == ["order_id", "order"]

    @pytest.mark.usefixtures("impatient")
    def test_what_lines_copy_waits_with_them(self, registry: RegistryServer) -> None:
        """A registry that does not answer while lines are written must not cost them their keys."""
        topic = FakeTopic()
        registry.answer = 503, b""
        settings = RegistrySettings(registry.url)
        more: dict[str, Any] = {"key": "source", "pass_through": ["headers", "timestamp"]}
        sink = made(topic, value_format="avro", registry=settings, schema=self.SCHEMA, **more)
        sink.open()
        sink.write([MessageLine(LINE, MESSAGE), LINE], [at(1), at(2)])
        assert sink.waiting == 2
        before = sink.waiting_bytes
        sink.write([MessageLine(LINE, MESSAGE._replace(key=1000 * b"k"))], [at(3)])
        assert sink.waiting_bytes - before > 1000
        registry.answer = None
        until(lambda: flushed(sink))
        sink.close()
        first, second, third = topic.messages[0]
        assert (first["key"], first["headers"][0], first["timestamp_ms"]) == (b"customer 7", ("trace", b"1"), 1500)
        assert "timestamp_ms" not in second
        assert third["headers"][0][0] == "source.stream"  # key and headers are too long for the topic

    def test_a_line_that_is_too_long_loses_its_longest_column(self, registry: RegistryServer) -> None:
        topic = FakeTopic()
        settings = RegistrySettings(registry.url)
        shorten = LongColumns(["name", "id"])
        with made(topic, value_format="avro", registry=settings, schema=self.SCHEMA, shorten=shorten) as sink:
            sink.open()
            sink.write([MessageLine({**LINE, "name": 3000 * "x"}, MESSAGE)], [at(1)])
            sink.flush()
        schema = fastavro.parse_schema(json.loads(registry.schemas[1]["schema"]))
        (value,) = topic.values()
        found: Any = fastavro.schemaless_reader(io.BytesIO(value[5:]), schema, None)
        assert (found["name"], found["id"]) == (None, 7)
