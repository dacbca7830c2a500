"""Messages of Protobuf: what they become, by a registry's descriptors or a file's; and bytes that are out for harm."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamkernel.connectors.decode import UndecodableError
from streamkernel.connectors.registry.client import UnusableSchemaError
from streamkernel.connectors.registry.framing import frame, message_head
from streamkernel.connectors.registry.protobuf import ProtobufDecoder, descriptor_file, registry_types
from tests.registry.needs import needed
from tests.registry.server import base64_descriptor

needed("google.protobuf")

from google.protobuf import descriptor_pb2, json_format, text_format  # noqa: E402 - what may be missing

# What protoc makes of a file with `package shop`: an order with a bit of everything, and a message beside it.
FILE = """
name: "shop.proto" package: "shop" syntax: "proto3"
dependency: "google/protobuf/timestamp.proto"
dependency: "google/protobuf/wrappers.proto"
dependency: "google/protobuf/struct.proto"
dependency: "google/protobuf/duration.proto"
dependency: "confluent/meta.proto"
dependency: "confluent/type/decimal.proto"
message_type {
  name: "Order"
  field { name: "amount" number: 1 type: TYPE_DOUBLE label: LABEL_OPTIONAL }
  field { name: "id" number: 2 type: TYPE_UINT64 label: LABEL_OPTIONAL }
  field { name: "gift" number: 3 type: TYPE_BOOL label: LABEL_OPTIONAL }
  field { name: "color" number: 4 type: TYPE_STRING label: LABEL_OPTIONAL }
  field { name: "hash" number: 5 type: TYPE_BYTES label: LABEL_OPTIONAL }
  field { name: "state" number: 6 type: TYPE_ENUM type_name: ".shop.State" label: LABEL_OPTIONAL }
  field { name: "weight" number: 7 type: TYPE_FLOAT label: LABEL_OPTIONAL proto3_optional: true oneof_index: 1 }
  field { name: "at" number: 8 type: TYPE_MESSAGE type_name: ".google.protobuf.Timestamp" label: LABEL_OPTIONAL }
  field { name: "took" number: 9 type: TYPE_MESSAGE type_name: ".google.protobuf.Duration" label: LABEL_OPTIONAL }
  field {
    name: "discount" number: 10 type: TYPE_MESSAGE type_name: ".google.protobuf.DoubleValue" label: LABEL_OPTIONAL
  }
  field { name: "more" number: 11 type: TYPE_MESSAGE type_name: ".google.protobuf.Struct" label: LABEL_OPTIONAL }
  field { name: "price" number: 12 type: TYPE_MESSAGE type_name: ".confluent.type.Decimal" label: LABEL_OPTIONAL }
  field { name: "tags" number: 13 type: TYPE_STRING label: LABEL_REPEATED }
  field { name: "counts" number: 14 type: TYPE_MESSAGE type_name: ".shop.Order.CountsEntry" label: LABEL_REPEATED }
  field { name: "parts" number: 15 type: TYPE_MESSAGE type_name: ".shop.Order" label: LABEL_REPEATED }
  field { name: "card" number: 16 type: TYPE_STRING label: LABEL_OPTIONAL oneof_index: 0 }
  field { name: "cash" number: 17 type: TYPE_INT32 label: LABEL_OPTIONAL oneof_index: 0 }
  nested_type {
    name: "CountsEntry"
    field { name: "key" number: 1 type: TYPE_BOOL label: LABEL_OPTIONAL }
    field { name: "value" number: 2 type: TYPE_INT64 label: LABEL_OPTIONAL }
    options { map_entry: true }
  }
  nested_type { name: "Line" field { name: "n" number: 1 type: TYPE_SINT32 label: LABEL_OPTIONAL } }
  oneof_decl { name: "paid" }
  oneof_decl { name: "_weight" }
}
message_type { name: "Other" field { name: "n" number: 1 type: TYPE_INT32 label: LABEL_OPTIONAL } }
enum_type { name: "State" value { name: "NEW" number: 0 } value { name: "SENT" number: 1 } }
"""


def parsed(text: str) -> Any:
    return text_format.Parse(text, descriptor_pb2.FileDescriptorProto())


def schemas(text: str = FILE, **references: str) -> dict[str, str]:
    return {name: base64_descriptor(parsed(one)) for name, one in {**references, "": text}.items()}


FILES = registry_types(schemas())
DECODER = ProtobufDecoder(FILES)
ORDER = FILES.message_class("shop.Order")
# All that is absent where nothing is set, and what is not.
UNSET = {"amount": 0.0, "id": 0, "gift": False, "color": "", "hash": "", "state": "NEW"} | dict.fromkeys(
    ("weight", "at", "took", "discount", "more", "price", "tags", "counts", "parts", "card", "cash")
)


def value(message: Any, indexes: tuple[int, ...] = (0,)) -> bytes:
    return frame(1) + message_head(indexes) + message.SerializeToString()


def order(**fields: Any) -> Any:
    """Decode an order of which some fields are set, as the JSON of Protobuf has them; give what it says beside that."""
    decoded = DECODER.decode(value(json_format.ParseDict(fields, ORDER())))
    assert decoded.keys() == UNSET.keys()
    return {name: item for name, item in decoded.items() if item != UNSET[name] or type(item) is not type(UNSET[name])}


class TestValues:
    def test_nothing_is_set(self) -> None:
        assert DECODER.decode(value(ORDER())) == UNSET

    @pytest.mark.parametrize(
        ("fields", "expected"),
        [
            ({"amount": 1.5, "id": 2**64 - 1, "gift": True}, {"amount": 1.5, "id": 2**64 - 1, "gift": True}),
            ({"color": "ä", "hash": "/wA="}, {"color": "ä", "hash": "/wA="}),
            ({"state": "SENT"}, {"state": "SENT"}),
            ({"state": 7}, {"state": 7}),
            ({"weight": 0.0}, {"weight": 0.0}),
            ({"cash": 0}, {"cash": 0}),
            ({"at": "1970-01-01T00:00:01.500Z", "took": "-1.5s"}, {"at": 1.5, "took": -1.5}),
            ({"discount": 0.0}, {"discount": 0.0}),
            ({"more": {"a": [1, None, {"b": "c"}]}}, {"more": {"a": [1.0, None, {"b": "c"}]}}),
            ({"price": {"value": "BOI=", "precision": 5, "scale": 2}}, {"price": 12.5}),
            ({"tags": ["a", "b"]}, {"tags": ["a", "b"]}),
            ({"counts": {"true": 2}}, {"counts": {"true": 2}}),
            ({"parts": [{}]}, {"parts": [UNSET]}),
        ],
    )
    def test_what_each_type_becomes(self, fields: Any, expected: Any) -> None:
        assert order(**fields) == expected

    def test_a_number_that_is_none(self) -> None:
        assert str(order(amount="NaN")["amount"]) == "nan"

    def test_a_value_names_its_message(self) -> None:
        other, line = FILES.message_class("shop.Other"), FILES.message_class("shop.Order.Line")
        assert DECODER.decode(value(other(n=3), (1,))) == {"n": 3}
        assert DECODER.decode(value(line(n=-3), (0, 0))) == {"n": -3}
        for wrong in ((2,), (0, 1), (1, 0)):
            with pytest.raises(UndecodableError, match="name no message of the schema"):
                DECODER.decode(value(other(), wrong))

    def test_only_one_message_is_wanted(self) -> None:
        decoder = ProtobufDecoder(FILES, "shop.Other")
        assert decoder.decode(value(FILES.message_class("shop.Other")(n=3), (1,))) == {"n": 3}
        with pytest.raises(UndecodableError, match=r"shop\.Order, not shop\.Other"):
            decoder.decode(value(ORDER()))
        with pytest.raises(UnusableSchemaError, match=r"shop\.Oder.* shop\.Order, shop\.Order\.Line, shop\.Other"):
            ProtobufDecoder(FILES, "shop.Oder")


class TestDescriptors:
    def test_what_a_file_imports(self) -> None:
        main = """name: "default" package: "a" syntax: "proto3" dependency: "b/c.proto"
            message_type {
              name: "M" field { name: "n" number: 1 type: TYPE_MESSAGE type_name: ".b.N" label: LABEL_OPTIONAL }
            }"""
        other = 'name: "default" package: "b" syntax: "proto3" message_type { name: "N" }'
        files = registry_types(schemas(main, **{"b/c.proto": other}))
        made = files.message_class("a.M")()
        made.n.SetInParent()
        assert ProtobufDecoder(files).decode(value(made)) == {"n": {}}
        with pytest.raises(UnusableSchemaError, match=r"imports b/c\.proto"):
            registry_types(schemas(main))

    @pytest.mark.parametrize("text", ['syntax = "proto3"; message M {}', "", "####", "AAAA"])
    def test_what_is_no_descriptor(self, text: str) -> None:
        if text:
            with pytest.raises(UnusableSchemaError, match="as text only: name a file of protoc"):
                registry_types({"": text})
        else:
            assert registry_types({"": text}).heads == {}

    @pytest.mark.parametrize(
        "text",
        [
            'name: "a" dependency: "the schema"',
            'message_type { name: "M" } message_type { name: "M" }',
            'message_type { name: "M" field { name: "n" number: 1 type: TYPE_MESSAGE type_name: ".X" } }',
            'message_type { name: "no name" }',
        ],
    )
    def test_descriptors_that_cannot_be_used(self, text: str) -> None:
        with pytest.raises(UnusableSchemaError):
            registry_types(schemas(text))

    def test_a_chain_of_messages(self) -> None:
        """Longer than Python's stack is deep."""
        messages = [
            f'message_type {{ name: "M{n}" field {{ name: "a" number: 1 type: TYPE_MESSAGE label: LABEL_OPTIONAL '
            f'type_name: ".M{n + 1}" }} }}'
            for n in range(3000)
        ]
        with pytest.raises(UnusableSchemaError, match="RecursionError"):
            registry_types(schemas(" ".join([*messages, 'message_type { name: "M3000" }'])))

    def test_a_file(self, tmp_path: Path) -> None:
        path = tmp_path / "shop.desc"
        file = parsed(FILE)
        del file.dependency[4]  # protoc would have it in the file
        path.write_bytes(descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString())
        decoder = ProtobufDecoder(descriptor_file(str(path), "shop.Other"), "shop.Other")
        assert decoder.decode(value(FILES.message_class("shop.Other")(n=3), (1,))) == {"n": 3}
        with pytest.raises(ValueError, match=r"^.*message: .*no message Order.* shop\.Order,"):
            descriptor_file(str(path), "Order")
        path.write_bytes(b"no descriptor")
        with pytest.raises(ValueError, match=r"not a descriptor set: .*protoc"):
            descriptor_file(str(path), "Order")
        with pytest.raises(ValueError, match=r"descriptor_set: .*No such file"):
            descriptor_file(str(tmp_path / "none"), "Order")


class TestHarm:
    @given(payload=st.binary(max_size=60))
    def test_any_bytes_are_a_message_or_a_fault(self, payload: bytes) -> None:
        try:
            DECODER.decode(frame(1) + b"\0" + payload)
        except UndecodableError as error:
            fault = error.fault
        else:
            return
        assert fault.reason in ("schema", "nested")

    @pytest.mark.parametrize(
        ("payload", "reason"),
        [
            (b"\x22\xff\xff\xff\xff\xff\xff\xff\xff\x7f", "schema"),  # a string of nearly 2**63 bytes
            (b"\x7a\xff\xff\xff\xff\x07", "schema"),
            (b"\x0a\x02", "schema"),
            (b"\xff" * 20, "schema"),
            (b"\x22\x01\xff", "schema"),  # no UTF-8
        ],
    )
    def test_bytes(self, payload: bytes, reason: str) -> None:
        tracemalloc.start()
        try:
            with pytest.raises(UndecodableError) as raised:
                DECODER.decode(frame(1) + b"\0" + payload)
            assert tracemalloc.get_traced_memory()[1] < 2**22
        finally:
            tracemalloc.stop()
        assert raised.value.fault.reason == reason
