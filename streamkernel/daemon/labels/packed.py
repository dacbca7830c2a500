"""Records that wait for their labels as bytes, packed once when they come: a checkpoint only joins them.

A packed record is a line of JSON, then its numbers as 64-bit floats. Most records have the same names of inputs and
the same classes. These are the *shape* of a record, which the records share.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Iterable, Mapping
from itertools import islice
from types import MappingProxyType
from typing import Annotated, Any, NamedTuple
from weakref import WeakValueDictionary

import orjson
from pydantic import Field, FiniteFloat, TypeAdapter, ValidationError

from streamkernel.connectors.ports import Label
from streamkernel.daemon.base.events import Prediction

__all__ = ["PackedRecord", "PendingRecord", "RecordShape", "pack", "shape_of"]


class PendingRecord(NamedTuple):
    """A record that waits for its label.

    Attributes
    ----------
    key
        The join key of the record.
    arrived
        When it came, by the join's clock, in seconds.
    x
        The inputs of the record, by name.
    prediction
        The prediction made for it; with several models, the published one's.
    named
        With several models, the prediction of each by its name, the published one first; else empty.
    lags
        The targets that were known when it was predicted, the latest first, where a model wants them; else empty.

    """

    key: str
    arrived: float
    x: dict[str, Any]
    prediction: Prediction
    named: Mapping[str, Prediction] = MappingProxyType({})
    lags: tuple[Label, ...] = ()


class RecordShape:
    """The part of a packed record that many share.

    Attributes
    ----------
    json
        All of it as JSON.
    names, floats
        The names of the inputs, and for each "1" if its value is a 64-bit float, else "0".
    models
        The names of the models; empty for one model without a name.
    classes
        For each prediction, the labels that have a probability.

    """

    __slots__ = ("__weakref__", "classes", "floats", "json", "models", "names")

    def __init__(self, text: bytes, names: list[str], floats: str, models: list[str], classes: list[list[Label]]):
        self.json = text
        self.names = names
        self.floats = floats
        self.models = models
        self.classes = classes


class PackedRecord(NamedTuple):
    """A record that waits for its label, as bytes and with the shape that it shares with others."""

    shape: RecordShape
    row: bytes

    def unpack(self) -> PendingRecord:
        """Return the record that `pack` was given."""
        shape = self.shape
        head, _, tail = self.row.partition(b"\n")
        key, arrived, labels, *rest = _read(head)
        others, lags = iter(rest[0] if rest else ()), tuple(rest[1]) if len(rest) > 1 else ()
        numbers = iter(struct.unpack(f"<{len(tail) // 8}d", tail))
        if "0" in shape.floats:
            values: Iterable[Any] = [next(numbers if one == "1" else others) for one in shape.floats]
        else:
            values = islice(numbers, len(shape.names))
        x = dict(zip(shape.names, values, strict=True))
        predictions = [
            Prediction(label, {one: next(numbers) for one in classes} or None)
            for label, classes in zip(labels, shape.classes, strict=True)
        ]
        return PendingRecord(key, arrived, x, predictions[0], dict(zip(shape.models, predictions, strict=False)), lags)

    def check(self) -> PendingRecord:
        """Return the record, which comes from a file; ValueError if it is not what `pack` writes."""
        shape = self.shape
        head, _, tail = self.row.partition(b"\n")
        try:
            _, _, labels, *rest = _ROW.validate_json(head, strict=True)
        except ValidationError as error:
            raise ValueError(f"a record is not one: {error.errors(include_url=False)[0]['msg']}") from None
        inputs, n_others = shape.floats.count("1"), len(rest[0]) if rest else 0
        n_numbers = inputs + sum(map(len, shape.classes))
        if (n_others, len(labels), len(tail)) != (shape.floats.count("0"), len(shape.classes), 8 * n_numbers):
            raise ValueError("a record does not have the values of its shape")
        if not all(map(math.isfinite, struct.unpack_from(f"<{inputs}d", tail))):
            raise ValueError("a record has inputs that are not finite numbers")
        return self.unpack()


_Value = bool | int | FiniteFloat | str
_Key = Annotated[str, Field(min_length=1)]
_Time = Annotated[float, Field(ge=0, allow_inf_nan=False)]
_Labels = list[bool | int | float | str | None]
_ROW: TypeAdapter[Any] = TypeAdapter(
    tuple[_Key, _Time, _Labels]
    | tuple[_Key, _Time, _Labels, list[bool | int | str]]
    | tuple[_Key, _Time, _Labels, list[bool | int | str], Annotated[list[_Value], Field(min_length=1)]]
)
_SHAPE: TypeAdapter[Any] = TypeAdapter(
    tuple[list[str], Annotated[str, Field(pattern="^[01]*$")], list[str], list[list[_Value]]]
)
_shapes: WeakValueDictionary[bytes, RecordShape] = WeakValueDictionary()


def pack(pending: PendingRecord) -> PackedRecord:
    """Write a record as bytes.

    Examples
    --------
    >>> prediction = Prediction("yes", {"no": 0.25, "yes": 0.75})
    >>> pending = PendingRecord("17", 2.5, {"a": 0.1, "color": "red", "n": 3}, prediction)
    >>> packed = pack(pending)
    >>> packed.unpack() == pending, len(packed.row)
    (True, 53)

    """
    key, arrived, x, prediction, named, lags = pending
    numbers, predictions = list(x.values()), list(named.values()) or [prediction]
    others: list[Any] = []
    floats = "1" * len(numbers)
    if not {float}.issuperset(map(type, numbers)):
        floats = "".join(["1" if type(value) is float else "0" for value in numbers])
        others = [value for value in numbers if type(value) is not float]
        numbers = [value for value in numbers if type(value) is float]
    for one in predictions:
        numbers += (one.probabilities or {}).values()
    row: list[Any] = [key, arrived, [one.label for one in predictions]]
    if others or lags:
        row.append(others)
    if lags:
        row.append(lags)
    shape = _to_json([list(x), floats, list(named), [list(one.probabilities or ()) for one in predictions]])
    return PackedRecord(_shape(shape), _to_json(row) + b"\n" + struct.pack(f"<{len(numbers)}d", *numbers))


def shape_of(parts: Any) -> RecordShape:
    """Return the shape that a file describes as JSON; ValueError if it is none."""
    try:
        text = json.dumps(parts, allow_nan=False).encode()
        names, floats, models, classes = _SHAPE.validate_json(text, strict=True)
    except (ValidationError, RecursionError):
        raise ValueError("what records share is not names and classes") from None
    n_predictions = len(models) or 1
    if len(set(names)) < len(names) or len(floats) != len(names) or len(classes) != n_predictions:
        raise ValueError("what records share does not fit together")
    return _shape(_to_json(parts))


def _shape(text: bytes) -> RecordShape:
    found = _shapes.get(text)
    if found is None:
        found = _shapes[text] = RecordShape(text, *_read(text))
    return found


def _read(text: bytes) -> Any:
    # Python's own reader for what orjson would round or refuse; such JSON begins with a space.
    return json.loads(text) if text.startswith(b" ") else orjson.loads(text)


def _to_json(parts: list[Any]) -> bytes:
    try:
        text = orjson.dumps(parts)
        if b"null" not in text:  # as orjson writes NaN
            return text
    except TypeError:  # a whole number of more than 64 bits
        pass
    return b" " + json.dumps(parts).encode()
