"""Values of Avro: the same as fastavro reads, of every schema; and bytes and schemas that are out for harm."""

from __future__ import annotations

import base64
import io
import math
import tracemalloc
from collections.abc import Callable
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamkernel.connectors.decode import UndecodableError
from streamkernel.connectors.ports import Fault
from streamkernel.connectors.registry.avro import AvroDecoder
from streamkernel.connectors.registry.framing import frame
from streamkernel.connectors.registry.schemas import UnusableSchemaError
from tests.registry.needs import needed
from tests.registry.schemas import avro_value, record, schema_set

fastavro = needed("fastavro")


def decoded(schema: Any, value: bytes) -> Any:
    return AvroDecoder(schema_set(schema)).decode(value)


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

    def test_a_number_that_is_none(self) -> None:
        assert math.isnan(one("double", math.nan))
        assert one("float", -math.inf) == -math.inf

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
        decoder = AvroDecoder(schema_set(schema, address=address))
        assert decoder.decode(frame(1) + out.getvalue()) == order

    def test_a_list_that_is_linked(self) -> None:
        schema = record("Node", value="int", next=["null", "Node"])
        chain = {"value": 1, "next": {"value": 2, "next": None}}
        assert decoded(schema, avro_value(schema, chain)) == chain

    @pytest.mark.parametrize("text", ["string", '"string"', '{"type": "string"}'])
    def test_a_value_that_is_no_record(self, text: str) -> None:
        assert AvroDecoder(schema_set(text)).decode(frame(1) + b"\x04ab") == "ab"


NAMES = st.sampled_from("abcdefg")
LEAVES = st.sampled_from(["null", "boolean", "int", "long", "float", "double", "bytes", "string"])


def _compound(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return (
        st.builds(lambda items: {"type": "array", "items": items}, inner)
        | st.builds(lambda values: {"type": "map", "values": values}, inner)
        | st.builds(
            lambda branch: ["null", branch], inner.filter(lambda kind: kind != "null" and type(kind) is not list)
        )
        | st.builds(
            lambda fields: {"type": "record", "fields": [{"name": name, "type": kind} for name, kind in fields]},
            st.lists(st.tuples(NAMES, inner), max_size=4, unique_by=lambda pair: pair[0]),
        )
    )


def _named(schema: Any, count: list[int]) -> Any:
    """Give each record a name of its own."""
    if isinstance(schema, list):
        return [_named(branch, count) for branch in schema]
    if isinstance(schema, dict):
        named = {
            key: [{**field, "type": _named(field["type"], count)} for field in value]
            if key == "fields"
            else (value if key == "type" else _named(value, count))
            for key, value in schema.items()
        }
        if schema["type"] == "record":
            count[0] += 1
            named["name"] = f"R{count[0]}"
        return named
    return schema


SCHEMAS = st.recursive(LEAVES, _compound, max_leaves=8).map(lambda schema: _named(schema, [0]))


def datum(draw: Any, schema: Any) -> Any:
    """Draw a value of a schema."""
    if isinstance(schema, list):
        return datum(draw, draw(st.sampled_from(schema)))
    if isinstance(schema, dict):
        if schema["type"] == "record":
            return {field["name"]: datum(draw, field["type"]) for field in schema["fields"]}
        if schema["type"] == "array":
            return [datum(draw, schema["items"]) for _ in range(draw(st.integers(0, 3)))]
        return {name: datum(draw, schema["values"]) for name in draw(st.lists(NAMES, max_size=3, unique=True))}
    return draw(
        {
            "null": st.none(),
            "boolean": st.booleans(),
            "int": st.integers(-(2**31), 2**31 - 1),
            "long": st.integers(-(2**63), 2**63 - 1),
            "float": st.floats(width=32, allow_nan=False),
            "double": st.floats(allow_nan=False),
            "bytes": st.binary(max_size=9),
            "string": st.text(max_size=9),
        }[schema]
    )


def plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list) else value


def fault_of(call: Callable[[], object]) -> Fault | None:
    """Call something, and give the fault that it raises."""
    try:
        call()
    except UndecodableError as error:
        return error.fault
    return None


class TestPeer:
    @given(data=st.data(), schema=SCHEMAS)
    def test_the_same_as_fastavro(self, data: st.DataObject, schema: Any) -> None:
        value = avro_value(schema, datum(data.draw, schema))
        expected = fastavro.schemaless_reader(io.BytesIO(value[5:]), fastavro.parse_schema(schema), None)
        assert decoded(schema, value) == plain(expected)

    @given(schema=SCHEMAS, payload=st.binary(max_size=60))
    def test_any_bytes_are_a_value_or_a_fault(self, schema: Any, payload: bytes) -> None:
        decoder = AvroDecoder(schema_set(schema))
        fault = fault_of(lambda: decoder.decode(frame(1) + payload))
        assert fault is None or (fault.reason in ("schema", "encoding", "nested") and len(fault.detail) < 200)

    @given(data=st.data(), schema=SCHEMAS)
    def test_what_is_cut_or_longer_does_not_fit(self, data: st.DataObject, schema: Any) -> None:
        value = avro_value(schema, datum(data.draw, schema))
        decoder = AvroDecoder(schema_set(schema))
        with pytest.raises(UndecodableError):
            decoder.decode(value + b"\0")
        if len(value) > 5:
            with pytest.raises(UndecodableError):
                decoder.decode(value[: data.draw(st.integers(5, len(value) - 1))])


class TestHarm:
    @pytest.mark.parametrize(
        ("kind", "payload", "reason"),
        [
            ("string", b"\x05abc", "schema"),  # a negative length
            ("bytes", b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01abc", "schema"),
            ("string", b"\x02\xff", "encoding"),
            ("long", b"\xff" * 30 + b"\x01", "schema"),
            ("long", b"\xff" * 9 + b"\x7f", "schema"),
            ("int", b"\xfe\xff\xff\xff\xff\x01", "schema"),
            ("boolean", b"\x02", "schema"),
            ({"type": "enum", "name": "E", "symbols": ["a"]}, b"\x01", "schema"),
            ({"type": "enum", "name": "E", "symbols": ["a"]}, b"\x02", "schema"),
            (["null", "int"], b"\x01", "schema"),
            (["null", "int"], b"\x08", "schema"),
            ({"type": "array", "items": "null"}, b"\x80\x80\x80\x80\x80\x80\x80\x80\x40\x00", "nested"),
            ({"type": "array", "items": "null"}, b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00\x00", "nested"),
            ({"type": "array", "items": record("Empty")}, b"\x80\x89\x7a\x00", "nested"),
            ({"type": "map", "values": "null"}, b"\x80\x89\x7a", "nested"),
            ({"type": "fixed", "name": "F", "size": 2**40}, b"ab", "schema"),
            ({"type": "bytes", "logicalType": "decimal", "precision": 9}, b"\x82\x01" + 65 * b"\x01", "schema"),
        ],
    )
    def test_bytes(self, kind: Any, payload: bytes, reason: str) -> None:
        decoder = AvroDecoder(schema_set(kind))
        tracemalloc.start()
        try:
            with pytest.raises(UndecodableError) as raised:
                decoder.decode(frame(1) + payload)
            assert tracemalloc.get_traced_memory()[1] < 2**20
        finally:
            tracemalloc.stop()
        assert raised.value.fault.reason == reason

    def test_depth(self) -> None:
        """The compiled reader of fastavro takes the process with it here."""
        decoder = AvroDecoder(schema_set(record("Node", next=["null", "Node"])))
        with pytest.raises(UndecodableError, match="more than 64 levels deep") as raised:
            decoder.decode(frame(1) + b"\x02" * 1_000_000 + b"\0")
        assert raised.value.fault.reason == "nested"

    def test_depth_between_records(self) -> None:
        deep: Any = ["null", "Node"]
        for _ in range(150):
            deep = {"type": "array", "items": deep}
        decoder = AvroDecoder(schema_set(record("Node", next=deep)))
        with pytest.raises(UndecodableError, match="nested"):
            decoder.decode(frame(1) + b"\x02" * 1_000_000)

    def test_few_bytes_for_many_values(self) -> None:
        wide = record("Wide", **{f"n{number}": "null" for number in range(1000)}, i="boolean")
        decoder = AvroDecoder(schema_set({"type": "array", "items": wide}))
        with pytest.raises(UndecodableError, match="more than 100,000 values"):
            decoder.decode(frame(1) + b"\x80\x10" + bytes(2**20))

    @pytest.mark.parametrize(
        "text",
        [
            *("", "{", "nothing", "[" * 5000 + "]" * 5000, '{"type": "record"}', '{"type": "what"}', "12", "null"),
            '{"type": "array", "items": ' * 150 + '"int"' + "}" * 150,
            '{"type": "fixed", "name": "F", "size": -1}',
            '{"type": "fixed", "name": "F", "size": "9"}',
            '{"type": "enum", "name": "E"}',
            '{"type": "record", "name": "R", "fields": [{"name": "a", "type": "Elsewhere"}]}',
            '{"type": {"type": {"type": 7}}}',
            '{"type": "record", "name": "R", "fields": [{"name": 1, "type": "int"}]}',
            '{"type": "record", "name": "R", "fields": [{"name": ["a"], "type": "int"}]}',
        ],
    )
    def test_schemas(self, text: str) -> None:
        """A schema is of use or not; either way, nothing comes of it but that."""
        try:
            decoder = AvroDecoder(schema_set(text))
        except (UnusableSchemaError, LookupError):
            return
        with pytest.raises(UndecodableError):
            decoder.decode(frame(1) + b"\xff\xff\xff")

    @given(
        tree=st.recursive(
            st.none() | st.integers(-3, 3) | st.sampled_from(["record", "array", "string", "R", "type", "decimal"]),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(
                    st.sampled_from(
                        ["type", "name", "fields", "items", "values", "size", "symbols", "logicalType", "scale"]
                    ),
                    inner,
                    max_size=4,
                )
            ),
            max_leaves=12,
        )
    )
    def test_any_schema_is_of_use_or_not(self, tree: Any) -> None:
        try:
            decoder = AvroDecoder(schema_set(tree))
        except Exception:  # the lookup bears any
            return
        for payload in (b"", b"\x02\x02\x02", b"\xff" * 30):
            try:
                decoder.decode(frame(1) + payload)
            except UndecodableError:
                continue
