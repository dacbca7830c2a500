"""The sink of Kafka with a schema registry, over a topic in memory and a registry of ours."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from fake_output import FakeTopic, at, flushed, made

from streamkernel.connectors.ports import OutageError, SinkError
from streamkernel.connectors.registry import writing
from streamkernel.connectors.registry.line_schema import LineField, LineSchema, file_descriptor, schema_text
from streamkernel.connectors.registry.settings import ValueFormat
from streamkernel.connectors.registry.writing import LineEncoder
from tests.registry.needs import needed
from tests.registry.schemas import LINE, record
from tests.registry.server import RegistryServer, base64_descriptor

fastavro = needed("fastavro")
needed("google.protobuf")

from streamkernel.connectors.registry.protobuf import MessageTypes  # noqa: E402 - what may be missing

LINES: list[dict[str, Any]] = [
    {"position": {"offset": 1}, "prediction": "a", "sure": True, "probabilities": {"a": 0.5, "b": 0.5}, "std": 1},
    {
        "position": {"offset": 2},
        "prediction": None,
        "probabilities": {True: 0.5, 3: float("nan")},
        "id": [7],
        "to": "x",
    },
    {"position": {"offset": 3}, "prediction": 12, "sure": False},
]
FITTED: list[dict[str, Any]] = [
    {**LINES[0], "std": 1.0, "extra": {}},
    {
        "position": {"offset": 2},
        "prediction": None,
        "sure": None,
        "probabilities": {"true": 0.5, "3": "nan"},
        "std": None,
        "extra": {"id": "[7]", "to": "x"},
    },
    {**LINES[2], "prediction": "12", "probabilities": None, "std": None, "extra": {}},
]

pytestmark = pytest.mark.usefixtures("short_naps")


def avro_lines(values: list[bytes], schema: Any) -> list[Any]:
    parsed = fastavro.parse_schema(schema)
    return [fastavro.schemaless_reader(io.BytesIO(value[5:]), parsed, None) for value in values]


def standing(topic: FakeTopic) -> list[bytes]:
    return topic.values()


def write(sink: Any, lines: list[dict[str, Any]] = LINES, start: int = 0) -> None:
    sink.write(lines, [at(start + number) for number in range(len(lines))])


def comparable(value: Any) -> Any:
    """Lines with the one number that equals nothing as a word."""
    return json.loads(json.dumps(value).replace("NaN", '"nan"'))


class TestSink:
    def test_avro(self, registry: RegistryServer) -> None:
        topic = FakeTopic()
        with made(topic, value_format="avro", registry=registry.settings(), schema=LINE) as sink:
            sink.open()
            write(sink)
            sink.flush()
        assert registry.subjects == {"out-value": [1]}
        schema = json.loads(registry.schemas[1]["schema"])
        assert [value[:5] for value in standing(topic)] == [b"\0\0\0\0\1"] * 3
        assert comparable(avro_lines(standing(topic), schema)) == FITTED
        assert topic.lines() == {0: [at(0), at(1), at(2)]}

    @pytest.mark.parametrize("value_format", ["avro", "protobuf"])
    def test_an_integer_that_its_schema_has_no_place_for_is_null(
        self, registry: RegistryServer, value_format: ValueFormat, caplog: pytest.LogCaptureFixture
    ) -> None:
        """Else one label of 20 digits would end the daemon at each start."""
        schema, topic = LineSchema("Line", (*LINE.fields, LineField("id", "integer"))), FakeTopic()
        numbers = [2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 10**30, None]
        lines = [{"position": {"offset": 1}, "id": number} for number in numbers]
        writing._warn_of_integers.cache_clear()
        with made(topic, value_format=value_format, registry=registry.settings(), schema=schema) as sink:
            sink.open()
            write(sink, lines)
            sink.flush()
        if value_format == "avro":
            found = [line["id"] for line in avro_lines(standing(topic), json.loads(registry.schemas[1]["schema"]))]
        else:
            descriptor = file_descriptor(schema)
            make = MessageTypes([descriptor], descriptor.name).message_class("streamkernel.Line")
            messages = [make.FromString(value[6:]) for value in standing(topic)]
            found = [one.id if one.HasField("id") else None for one in messages]
        assert found == [2**63 - 1, None, -(2**63), None, None, None]
        assert caplog.text.count("integers of more than 64 bits") == 1

    def test_json_schema(self, registry: RegistryServer) -> None:
        topic = FakeTopic()
        more = registry.settings(subject="mine")
        with made(topic, value_format="json_schema", registry=more, schema=LINE) as sink:
            sink.open()
            write(sink)
            sink.flush()
        assert registry.subjects == {"mine": [1]}
        assert standing(topic)[2] == b'\0\0\0\0\1{"position":{"offset":3},"prediction":12,"sure":false}'
        schema = json.loads(registry.schemas[1]["schema"])
        assert schema["properties"]["prediction"] == {"type": ["string", "null"]}
        assert schema["required"] == ["position"]

    def test_protobuf(self, registry: RegistryServer) -> None:
        from google.protobuf import json_format

        topic = FakeTopic()
        with made(topic, value_format="protobuf", registry=registry.settings(), schema=LINE) as sink:
            sink.open()
            write(sink)
            sink.flush()
        assert registry.schemas[1]["schema"] == schema_text(LINE, "protobuf")
        descriptor = file_descriptor(LINE)
        make = MessageTypes([descriptor], descriptor.name).message_class("streamkernel.Line")
        assert [value[:6] for value in standing(topic)] == [b"\0\0\0\0\1\0"] * 3
        found = [
            json_format.MessageToDict(make.FromString(value[6:]), preserving_proto_field_name=True)
            for value in standing(topic)
        ]
        assert found == [
            {**LINES[0], "position": {"offset": "1"}},
            {
                "position": {"offset": "2"},
                "probabilities": {"true": 0.5, "3": "NaN"},
                "extra": {"id": "[7]", "to": "x"},
            },
            {"position": {"offset": "3"}, "prediction": "12", "sure": False},
        ]

    @pytest.mark.parametrize("value_format", ["avro", "json_schema", "protobuf"])
    def test_the_bytes_are_the_same_however_lines_are_cut(self, registry: RegistryServer, value_format: Any) -> None:
        found = []
        for size in (1, 2, 3):
            topic = FakeTopic()
            with made(topic, value_format=value_format, registry=registry.settings(), schema=LINE) as sink:
                sink.open()
                for place in range(0, 3, size):
                    write(sink, LINES[place : place + size], place)
                sink.flush()
            found.append(standing(topic))
        assert found[0] == found[1] == found[2]
        assert len(registry.schemas) == 1

    @pytest.mark.usefixtures("impatient")
    def test_an_outage_is_waited_for(self, registry: RegistryServer) -> None:
        topic = FakeTopic()
        registry.answer = 503, b""
        sink = made(topic, value_format="avro", registry=registry.settings(), schema=LINE)
        sink.open()
        write(sink)
        assert sink.waiting == 3
        assert sink.waiting_bytes > 3 * 250
        with pytest.raises(OutageError, match=r"\(no answer: HTTP 503.* 3 lines wait"):
            sink.flush()
        write(sink, start=3)
        assert topic.lines() == {}
        registry.answer = None
        waiting(lambda: flushed(sink))
        assert sink.waiting == sink.waiting_bytes == 0
        assert topic.lines() == {0: [at(number) for number in range(6)]}
        sink.close()

    @pytest.mark.usefixtures("impatient")
    def test_closing_while_no_registry_answers(self, registry: RegistryServer) -> None:
        registry.answer = 503, b""
        sink = made(FakeTopic(), value_format="avro", registry=registry.settings(), schema=LINE)
        sink.open()
        write(sink)
        with pytest.raises(OutageError):
            sink.close()
        sink.close()

    @pytest.mark.parametrize(
        ("answer", "said"),
        [
            ((409, b'{"message": "incompatible"}'), r"refuses the request \(HTTP 409: incompatible\)"),
            ((401, b""), "refuses the credentials"),
        ],
    )
    def test_a_refusal_ends_it(self, registry: RegistryServer, answer: Any, said: str) -> None:
        registry.answer = answer
        with (
            made(FakeTopic(), value_format="avro", registry=registry.settings(), schema=LINE) as sink,
            pytest.raises(SinkError, match=f"kafka topic out at broker:9092: .*{said}"),
        ):
            sink.open()

    def test_a_schema_that_must_be_there(self, registry: RegistryServer) -> None:
        more = {"auto_register_schemas": False, "unknown_seconds": 0.05}
        topic = FakeTopic()
        sink = made(topic, value_format="avro", registry=registry.settings(**more), schema=LINE)
        with pytest.raises(SinkError, match=r"does not know .* subject out-value"):
            sink.open()
        sink.close()
        registry.add(schema_text(LINE, "avro"), subject="out-value")
        with made(topic, value_format="avro", registry=registry.settings(**more), schema=LINE) as again:
            again.open()
            write(again)
            again.flush()
        assert len(standing(topic)) == 3

    def test_the_latest_schema_of_the_subject(self, registry: RegistryServer) -> None:
        point = {**record("Where", offset="long"), "namespace": "geo"}
        registry.add(point, subject="where")
        schema = record("Mine", prediction=["string", "null", "int"], position="geo.Where")
        reference = {"name": "geo.Where", "subject": "where", "version": 1}
        registry.add(schema, subject="out-value", references=[reference])
        topic = FakeTopic()
        latest = registry.settings(use_latest_version=True)
        with made(topic, value_format="avro", registry=latest, schema=LINE) as sink:
            sink.open()
            write(sink)
            sink.flush()
        named: dict[str, Any] = {}
        fastavro.parse_schema(point, named)
        parsed = fastavro.parse_schema(schema, named)
        found = [fastavro.schemaless_reader(io.BytesIO(value[5:]), parsed, None) for value in standing(topic)]
        assert found == [{name: line[name] for name in ("prediction", "position")} for line in LINES]
        assert standing(topic)[0][:5] == b"\0\0\0\0\2"

    def test_the_latest_message_of_the_subject(self, registry: RegistryServer) -> None:
        descriptor = file_descriptor(LineSchema("Mine", LINE.fields[1:3]))
        registry.add("the text", "PROTOBUF", subject="out-value")
        registry.serialized["the text"] = base64_descriptor(descriptor)
        topic = FakeTopic()
        latest = registry.settings(use_latest_version=True)
        with made(topic, value_format="protobuf", registry=latest, schema=LINE) as sink:
            sink.open()
            write(sink, LINES[:1])
            sink.flush()
        assert standing(topic) == [b"\0\0\0\0\1\0" + b"\x0a\x01a\x10\x01"]

    def test_a_line_that_does_not_fit(self, registry: RegistryServer) -> None:
        registry.add(record("Mine", prediction="int"), subject="out-value")
        latest = registry.settings(use_latest_version=True)
        sink = made(FakeTopic(), value_format="avro", registry=latest, schema=LINE)
        sink.open()
        with pytest.raises(SinkError, match=r"does not fit .* subject out-value \(.*\)"):
            write(sink)
        sink.close()

    def test_what_check_says(self, registry: RegistryServer) -> None:
        def probed(**more: Any) -> str:
            return LineEncoder("avro", registry.settings(**more), "out", LINE, "here").probe()

        there = f"by the subject out-value of the schema registry {registry.url}"
        assert probed() == f"{there}, new"
        with pytest.raises(SinkError, match=r"no schema: .*use_latest_version"):
            probed(use_latest_version=True)
        with pytest.raises(SinkError, match=r'register this one: {"namespace":"streamkernel","type":"record"'):
            probed(auto_register_schemas=False)
        assert registry.subjects == {}
        registry.add(schema_text(LINE, "avro"), subject="out-value")
        assert probed() == f"{there}, version 1 or a new one"
        assert probed(use_latest_version=True) == f"{there}, version 1"
        assert probed(auto_register_schemas=False) == there
        registry.compatible = False
        with pytest.raises(SinkError, match=r"version 1,.* not compatible"):
            probed()


def waiting(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
