"""Values of a schema registry, and the schemas they are read by."""

import base64
import copy
import io
import json
import random
import re
from pathlib import Path
from typing import Any

import fastavro
from google.protobuf import descriptor_pb2, json_format

from benchmarks.fuzz.mutation import altered, mutated
from benchmarks.fuzz.target import Target, unexpected
from streamkernel.connectors.ports import Position
from streamkernel.connectors.registry.avro import avro_decoder
from streamkernel.connectors.registry.framing import frame
from streamkernel.connectors.registry.objects import FramedObjects, PayloadDecoder, decode_json
from streamkernel.connectors.registry.protobuf import ProtobufDecoder, registry_types

_AVRO: dict[str, Any] = {
    "type": "record",
    "name": "Node",
    "namespace": "shop",
    "fields": [
        {"name": "a", "type": ["null", "double"]},
        {"name": "b", "type": "string"},
        {"name": "c", "type": {"type": "enum", "name": "Color", "symbols": ["red", "blue"]}},
        {"name": "d", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "e", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "f", "type": {"type": "fixed", "name": "Four", "size": 4}},
        {"name": "g", "type": ["null", {"type": "array", "items": ["null", "Node"]}]},
        {"name": "h", "type": ["null", {"type": "map", "values": "int"}]},
        {"name": "y", "type": ["null", "int", "string", "boolean"]},
    ],
}
_FLAT = {"a": None, "b": "red", "c": "blue", "d": b"\x04\xe2", "e": 17, "f": b"abcd", "g": None, "h": None, "y": "yes"}
_NESTED = {**_FLAT, "a": 0.5, "g": [None, {**_FLAT, "h": {"x": -1, "y": 2**30}}], "y": 7}
# What a decoder raised that it should not have; orjson has sentences that begin alike.
_FAILED = re.compile(r"unexpected \w+Error: ")
_FIELDS = (("a", "DOUBLE"), ("b", "STRING"), ("c", "BYTES"), ("d", "SINT64"), ("e", "BOOL"), ("f", "FIXED32"))


class Values(Target):
    """Sound values and sound schemas with some bytes or places altered, as records."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        parsed = fastavro.parse_schema(copy.deepcopy(_AVRO))
        self._avro = [_written(parsed, one) for one in (_FLAT, _NESTED)]
        self._file = _file()
        make = registry_types(_protobuf(self._file)).message_class("shop.Node")
        nodes = ({"a": 0.5, "b": "red", "y": "yes"}, {"g": [{"b": "x", "g": [{}, {}]}], "h": {"x": 1}, "y": "no"})
        self._messages = [b"\0" + json_format.ParseDict(one, make()).SerializeToString() for one in nodes]

    def case(self, draw: random.Random) -> str | None:
        kind = draw.choice((self._of_avro, self._of_protobuf, self._of_json))
        try:
            decoder, payloads = kind(draw)
        except Exception:  # a schema that cannot be used is told by what looks it up, whatever is raised
            return None
        raws = [frame(1) + mutated(draw, draw.choice(payloads)) for _ in range(draw.choice((1, 3, 20)))]
        places = [Position("s", 0, offset) for offset in range(len(raws) + 1)]
        objects = FramedObjects("y", draw.choice(("str", "int", "bool", "float")), 256, _Known(decoder))  # type: ignore[arg-type]
        try:
            objects.ready(raws)
            records = objects.records(raws, places[:-1], places[1:])
        except Exception as error:
            return unexpected(error) or f"a {type(error).__name__} was raised for a value: {error}"[:300]
        if [record.raw for record in records] != raws:
            return "the records are not those of the values"
        faults = [record.fault.detail for record in records if record.fault is not None]
        return next((detail for detail in faults if _FAILED.match(detail)), None)

    def _of_avro(self, draw: random.Random) -> tuple[PayloadDecoder, list[bytes]]:
        text = json.dumps(_altered(draw, _AVRO))
        return avro_decoder([text]), self._avro

    def _of_protobuf(self, draw: random.Random) -> tuple[PayloadDecoder, list[bytes]]:
        data = self._file if draw.random() < 0.5 else mutated(draw, self._file)
        return ProtobufDecoder(registry_types(_protobuf(data))).decode, self._messages

    def _of_json(self, draw: random.Random) -> tuple[PayloadDecoder, list[bytes]]:
        value = _altered(draw, {"a": 1, "b": [None, {"c": "x"}], "y": 2**70})
        return decode_json, [json.dumps(value).encode()]


class _Known:
    """Knows one decoder, by every id."""

    def __init__(self, decoder: PayloadDecoder) -> None:
        self._decoder = decoder

    def get(self, _: int) -> PayloadDecoder:
        return self._decoder


def _altered(draw: random.Random, value: Any) -> Any:
    for _ in range(draw.choice((0, 0, 1, 2, 4))):
        value = altered(draw, value)
    return value


def _written(schema: Any, datum: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, schema, datum)
    return out.getvalue()


def _protobuf(data: bytes) -> dict[str, str]:
    return {"": base64.b64encode(data).decode()}


def _file() -> bytes:
    """A descriptor of a message that contains itself, a map and a choice."""
    kinds = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="shop.proto", package="shop", syntax="proto3")
    node = file.message_type.add(name="Node")
    for number, (name, kind) in enumerate(_FIELDS, 1):
        node.field.add(name=name, number=number, type=getattr(kinds, f"TYPE_{kind}"), label=kinds.LABEL_OPTIONAL)
    inner = {"type": kinds.TYPE_MESSAGE, "label": kinds.LABEL_REPEATED}
    node.field.add(name="g", number=7, type_name=".shop.Node", **inner)
    node.field.add(name="h", number=8, type_name=".shop.Node.HEntry", **inner)
    node.oneof_decl.add(name="target")
    for number, (name, kind) in enumerate((("y", "STRING"), ("z", "INT32")), 9):
        made = getattr(kinds, f"TYPE_{kind}")
        node.field.add(name=name, number=number, type=made, label=kinds.LABEL_OPTIONAL, oneof_index=0)
    entry = node.nested_type.add(name="HEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=kinds.TYPE_STRING, label=kinds.LABEL_OPTIONAL)
    entry.field.add(name="value", number=2, type=kinds.TYPE_INT64, label=kinds.LABEL_OPTIONAL)
    data: bytes = file.SerializeToString()
    return data
