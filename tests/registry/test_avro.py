"""Values of Avro: the JSON form of each type; and hostile bytes and schemas."""

from __future__ import annotations

import io
import json
import tracemalloc
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from streamkernel.connectors.decode import UndecodableError
from streamkernel.connectors.registry.avro import avro_decoder
from streamkernel.connectors.registry.client import UnusableSchemaError
from streamkernel.connectors.registry.framing import frame
from streamkernel.connectors.registry.objects import PayloadDecoder
from tests.registry.needs import needed
from tests.registry.schemas import avro_value, record

fastavro = needed("fastavro")


def decoder(*schemas: Any) -> PayloadDecoder:
    return avro_decoder(one if isinstance(one, str) else json.dumps(one) for one in schemas)


def decoded(schema: Any, value: bytes) -> Any:
    return decoder(schema)(value)


def one(kind: Any, datum: Any) -> Any:
    """What a field of a record becomes."""
    schema = record("R", field=kind)
    return decoded(schema, avro_value(schema, {"field": datum}))["field"]


class TestValues:
    def test_what_each_type_becomes(self, subtests: pytest.Subtests) -> None:
        for kind, datum, expected in [
            ("null", None, None),
            ("boolean", True, True),
            ("int", -(2**31), -(2**31)),
            ("long", 2**63 - 1, 2**63 - 1),
            ("long", -(2**63), -(2**63)),
            ("float", 0.5, 0.5),
            ("double", 0.1, 0.1),
            ("string", "ä", "ä"),
            ("bytes", b"\xff\0", "/wA="),
            ({"type": "fixed", "name": "F", "size": 2}, b"ab", "YWI="),
            ({"type": "enum", "name": "E", "symbols": ["red", "blue"]}, "blue", "blue"),
            (["null", "string"], None, None),
            (["null", "string"], "x", "x"),
            ({"type": "array", "items": "int"}, [1, 2], [1, 2]),
            ({"type": "map", "values": "int"}, {"a": 1}, {"a": 1}),
            (record("Inner", a="int"), {"a": 1}, {"a": 1}),
            ({"type": "int", "logicalType": "date"}, date(1970, 1, 3), 2 * 86_400),
            ({"type": "long", "logicalType": "timestamp-millis"}, datetime(1970, 1, 1, 0, 0, 1, 500_000, UTC), 1.5),
            ({"type": "long", "logicalType": "timestamp-micros"}, datetime(1970, 1, 1, 0, 1, tzinfo=UTC), 60.0),
            ({"type": "long", "logicalType": "local-timestamp-millis"}, datetime(1970, 1, 1, 0, 0, 2), 2.0),
            ({"type": "int", "logicalType": "time-millis"}, time(0, 0, 1, 500_000), 1.5),
            ({"type": "long", "logicalType": "time-micros"}, time(0, 1), 60.0),
            ({"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}, Decimal("-12.50"), -12.5),
            ({"type": "bytes", "logicalType": "decimal", "precision": 30}, Decimal(10**20), 10**20),
            (
                {"type": "fixed", "name": "F", "size": 8, "logicalType": "decimal", "precision": 9, "scale": 1},
                *(Decimal("0.1"), 0.1),
            ),
            ({"type": "string", "logicalType": "uuid"}, UUID(int=1), str(UUID(int=1))),
            (["null", {"type": "long", "logicalType": "timestamp-millis"}], None, None),
            ({"type": "long", "logicalType": ["of", "no", "kind"]}, 7, 7),
        ]:
            with subtests.test(kind=kind, datum=datum, expected=expected):
                value = one(kind, datum)
                assert value == expected
                assert type(value) is type(expected)

    def test_a_year_that_no_calendar_has(self) -> None:
        schema = record("R", field={"type": "long", "logicalType": "timestamp-millis"})
        assert decoded(schema, frame(1) + b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01")["field"] == (2**63 - 1) / 1000

    def test_references_and_names_of_their_space(self) -> None:
        address = {**record("Address", zip="string"), "namespace": "shop"}
        schema = {**record("Order", to="shop.Address", back=["null", "shop.Address"]), "namespace": "other"}
        named: dict[str, Any] = {}
        fastavro.parse_schema(address, named)
        out = io.BytesIO()
        order = {"to": {"zip": "01234"}, "back": None}
        fastavro.schemaless_writer(out, fastavro.parse_schema(schema, named), order)
        assert decoder(address, schema)(frame(1) + out.getvalue()) == order

    def test_a_list_that_is_linked(self) -> None:
        schema = record("Node", value="int", next=["null", "Node"])
        chain = {"value": 1, "next": {"value": 2, "next": None}}
        assert decoded(schema, avro_value(schema, chain)) == chain

    @pytest.mark.parametrize("text", ["string", '"string"', '{"type": "string"}'])
    def test_a_value_that_is_no_record(self, text: str) -> None:
        assert decoder(text)(frame(1) + b"\x04ab") == "ab"


class TestHarm:
    @pytest.mark.parametrize(
        ("kind", "payload", "reason"),
        [
            ("bytes", b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01abc", "schema"),
            ("string", b"\x02\xff", "encoding"),
            ("string", b"\x04ab!", "schema"),
            ("double", b"abc", "schema"),
            (["null", "int"], b"\x08", "schema"),
            ({"type": "enum", "name": "E", "symbols": ["a"]}, b"\x02", "schema"),
            ({"type": "array", "items": "int"}, b"\x80\x80\x80\x80\x80\x80\x80\x80\x40\x00", "schema"),
            ({"type": "map", "values": "null"}, b"\x80\x89\x7a", "schema"),
            ({"type": "fixed", "name": "F", "size": 2**40}, b"ab", "schema"),
        ],
    )
    def test_bytes(self, kind: Any, payload: bytes, reason: str) -> None:
        one = decoder(json.dumps(kind))
        tracemalloc.start()
        try:
            with pytest.raises(UndecodableError) as raised:
                one(frame(1) + payload)
            assert tracemalloc.get_traced_memory()[1] < 2**20
        finally:
            tracemalloc.stop()
        assert raised.value.fault.reason == reason

    def test_a_type_that_contains_itself(self) -> None:
        """The compiled reader of fastavro ends the process here."""
        one = decoder(record("Node", next=["null", "Node"]))
        with pytest.raises(UndecodableError, match="nested too deeply"):
            one(frame(1) + b"\x02" * 1_000_000 + b"\0")

    @pytest.mark.parametrize(
        "items", ["null", record("Empty", a="null", b=record("Inner")), {"type": "fixed", "name": "F", "size": 0}]
    )
    def test_an_array_of_nothing(self, items: Any) -> None:
        """Its count alone would make a list of any length."""
        with pytest.raises(UnusableSchemaError, match="items without any bytes"):
            decoder({"type": "array", "items": items})

    @pytest.mark.parametrize(
        "text",
        [
            *("", "{", "nothing", "[" * 5000 + "]" * 5000, '{"type": "record"}', '{"type": "what"}', "12"),
            '{"type": "enum", "name": "E"}',
            '{"type": "record", "name": "R", "fields": [{"name": "a", "type": "Elsewhere"}]}',
            '{"type": "record", "name": "R", "fields": [{"name": 1.5, "type": "int"}]}',
        ],
    )
    def test_schemas(self, text: str) -> None:
        with pytest.raises(UnusableSchemaError):
            decoder(text)
