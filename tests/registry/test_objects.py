"""Values of a registry as records: the same as JSON objects of the same content, whatever the format."""

from __future__ import annotations

import json
from codecs import BOM_UTF8
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamkernel.connectors.columns.rules import ColumnRules
from streamkernel.connectors.columns.settings import ColumnSettings, InputSettings
from streamkernel.connectors.decode import UndecodableError
from streamkernel.connectors.objects import JsonObjects
from streamkernel.connectors.ports import ConnectorError, Fault, Position, Record
from streamkernel.connectors.registry.framing import frame, schema_number
from streamkernel.connectors.registry.lookup import FailedLookupError
from streamkernel.connectors.registry.objects import FramedObjects, decode_json
from tests.registry.needs import needed
from tests.registry.schemas import avro_value, record

needed("fastavro")

from streamkernel.connectors.registry.avro import avro_decoder  # noqa: E402 - what may be missing

OPTIONAL = ["null", "boolean", "long", "double", "string"]
SCHEMA = record("R", a=OPTIONAL, b=OPTIONAL, y=OPTIONAL)


class Known:
    """Decoders by id; None stands for one that is looked up, an error is raised."""

    def __init__(self, **decoders: Any) -> None:
        self.decoders = {int(name[1:]): one for name, one in decoders.items()}
        self.asked: list[int] = []

    def get(self, number: int) -> Any:
        self.asked.append(number)
        one = self.decoders[number]
        if isinstance(one, Exception):
            raise one
        return one


def framed(known: Known, target: str | None = "y", target_type: str = "str", bears: bool = False) -> FramedObjects:
    return FramedObjects(target, target_type, 16, known, bears)  # type: ignore[arg-type]


def records(decoder: JsonObjects, raws: list[bytes]) -> list[Record]:
    assert decoder.ready(raws) == len(raws)
    places = [Position("s", 0, offset) for offset in range(len(raws) + 1)]
    return decoder.records(raws, places[:-1], places[1:])


def content(record: Record) -> tuple[Any, ...]:
    return record.x, list(record.x), record.y, type(record.y), record.fault, record.blank, record.position, record.next


VALUES = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats()
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
)
ROWS = st.lists(st.fixed_dictionaries({"a": VALUES, "b": VALUES, "y": VALUES}), max_size=6)


class TestSameAsJson:
    @given(rows=st.lists(st.binary(max_size=20) | ROWS.map(lambda rows: json.dumps(rows[:1])[1:-1].encode())))
    def test_json_schema(self, rows: list[bytes]) -> None:
        rows = [
            row for row in rows if row.removeprefix(BOM_UTF8).strip(b" \t\r\n")
        ]  # a blank line is no record, a framed one is
        ours = records(framed(Known(n1=decode_json)), [frame(1) + row for row in rows])
        theirs = records(JsonObjects("y", "str", 16), rows)
        assert list(map(content, ours)) == list(map(content, theirs))

    def test_long_integers_stay_exact(self) -> None:
        raw = frame(1) + b'{"y": 123456789012345678901234567890}'
        assert records(framed(Known(n1=decode_json), target_type="int"), [raw])[0].y == 123456789012345678901234567890

    def test_columns_of_a_record_whose_schema_is_no_longer_at_hand(self) -> None:
        """The source reads on to values of another schema before its records are looked at."""
        decoder = framed(Known(n1=decode_json, n2=decode_json))
        (one,) = records(decoder, [frame(1) + b'{"a": null, "y": "no"}'])
        assert [use.name for use in decoder.columns(one.raw)] == ["y", "a"]
        records(decoder, [frame(2) + b'{"a": 1, "y": "no"}'])
        assert decoder.columns(one.raw) == []

    def test_a_value_that_is_no_record(self) -> None:
        (one,) = records(framed(Known(n1=avro_decoder([json.dumps("string")]))), [frame(1) + b"\x02a"])
        assert one.fault == Fault("not_an_object", "a str, not an object")


class TestRulesOfColumns:
    """The rules of `source.inputs`, which the values of a registry are read by as JSON objects are."""

    SCHEMA = record("R", a=OPTIONAL, b=record("B", c=OPTIONAL, d={"type": "array", "items": OPTIONAL}), y=OPTIONAL)
    NESTED = st.lists(
        st.fixed_dictionaries(
            {"a": VALUES, "b": st.fixed_dictionaries({"c": VALUES, "d": st.lists(VALUES, max_size=2)}), "y": VALUES}
        ),
        max_size=4,
    )
    RULES = (
        InputSettings(),
        InputSettings(nested="flatten", na=("?",), types={"a": ColumnSettings("number", invalid="missing")}),
        InputSettings(nested="ignore", types={"a": ColumnSettings("string")}),
        InputSettings(include=("b",), exclude=("b.d",), nested="flatten", types={"b.c": ColumnSettings("hash")}),
        InputSettings(types={"b": ColumnSettings(nested="flatten"), "a": ColumnSettings("date", format="unix")}),
    )

    @given(rows=NESTED, rules=st.sampled_from(RULES), target_type=st.sampled_from(["str", "int", "bool", "float"]))
    def test_as_those_of_json(self, rows: list[dict[str, Any]], rules: InputSettings, target_type: str) -> None:
        known = Known(n1=avro_decoder([json.dumps(self.SCHEMA)]))
        ours = FramedObjects("y", target_type, 16, known, rules=ColumnRules(rules, 16))  # type: ignore[arg-type]
        theirs = JsonObjects("y", target_type, 16, ColumnRules(rules, 16))
        values = [avro_value(self.SCHEMA, row) for row in rows]
        texts = [json.dumps(row, sort_keys=True).encode() for row in rows]
        made = records(ours, values)
        assert list(map(content, made)) == list(map(content, records(theirs, texts)))
        for one, value, text in zip(made, values, texts, strict=True):
            if one.fault is None:
                assert ours.columns(value) == theirs.columns(text)
                assert str(ours.values(value)) == str(theirs.values(text))


def test_an_integer_beyond_all_floats_is_a_fault() -> None:
    huge = b'{"a": 1%s}' % (b"0" * 400)
    made = records(framed(Known(n1=decode_json)), [frame(1) + text for text in (b'{"a": 1.5}', huge, huge)])
    assert [one.fault and one.fault.reason for one in made] == [None, "infinite", "infinite"]


class TestSchemas:
    def test_ready_is_what_stands_before_a_schema_to_come(self) -> None:
        older = record("R", a="int")
        known = Known(n1=avro_decoder([json.dumps(older)]), n2=None)
        decoder = framed(known)
        one = avro_value(older, {"a": 1})
        assert decoder.ready([one, None, b"", b"no frame", frame(2), one]) == 4
        assert decoder.ready([frame(2), one]) == 0
        known.decoders[2] = FailedLookupError("it is not known", False)
        assert decoder.ready([one, frame(2)]) == 1
        with pytest.raises(
            ConnectorError, match=r"it is not known; to continue without .*on_unknown_schema: dead_letter"
        ):
            decoder.ready([frame(2), one])
        known.decoders[2] = FailedLookupError("the registry refuses", True)
        with pytest.raises(ConnectorError, match=r"^the registry refuses$"):
            framed(known, bears=True).ready([frame(2), one])


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (b"", "has 0 bytes"),
        (b"\0\0\0\1", "has 4 bytes"),
        (b'{"a": 1}', "begins with the byte 7b"),
        (b"\1\0\0\0\1abc", "begins with the byte 01"),
    ],
)
def test_values_of_another_kind(value: bytes, said: str) -> None:
    assert schema_number(frame(2**32 - 1)) == 2**32 - 1
    with pytest.raises(UndecodableError, match=said) as raised:
        schema_number(value)
    assert raised.value.fault.reason == "schema"
