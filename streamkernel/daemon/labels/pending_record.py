"""Records that wait for their labels, each as a line of JSON, written when it comes: a checkpoint only joins them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, NamedTuple

import orjson
from pydantic import Field, FiniteFloat, TypeAdapter, ValidationError

from streamkernel.connectors.ports import Label
from streamkernel.daemon.base.events import Prediction

__all__ = ["PendingRecord", "checked", "pack", "unpack"]


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
    named
        What each model predicted for it, by its name, the published one first. A model alone has no name.
    lags
        The targets that were known when it was predicted, the latest first, where a model wants them; else empty.

    """

    key: str
    arrived: float
    x: dict[str, Any]
    named: Mapping[str, Prediction]
    lags: tuple[Label, ...] = ()


_Value = bool | int | FiniteFloat | str
_Predicted = tuple[bool | int | float | str | None, list[tuple[_Value, float]]]
_ROW: TypeAdapter[Any] = TypeAdapter(
    tuple[
        Annotated[str, Field(min_length=1)],
        Annotated[float, Field(ge=0, allow_inf_nan=False)],
        dict[str, _Value],
        Annotated[list[_Predicted], Field(min_length=1)],
        list[str],
        list[_Value],
    ]
)


def pack(pending: PendingRecord) -> bytes:
    """Write a record as a line of JSON, without its end.

    Examples
    --------
    >>> named = {"": Prediction("yes", {"no": 0.25, "yes": 0.75})}
    >>> pending = PendingRecord("17", 2.5, {"a": 0.1, "color": "red", "n": 3}, named)
    >>> pack(pending)
    b'["17",2.5,{"a":0.1,"color":"red","n":3},[["yes",[["no",0.25],["yes",0.75]]]],[""],[]]'
    >>> unpack(pack(pending)) == pending
    True

    """
    key, arrived, x, named, lags = pending
    predictions = [[one.label, [*(one.probabilities or {}).items()]] for one in named.values()]
    parts = [key, arrived, x, predictions, list(named), lags]
    try:
        text = orjson.dumps(parts)
        if b"null" not in text:  # as orjson writes NaN
            return text
    except TypeError:  # a whole number of more than 64 bits
        pass
    return b" " + json.dumps(parts).encode()


def unpack(row: bytes) -> PendingRecord:
    """Return the record that `pack` was given."""
    # Python's own reader for what orjson would round or refuse; such JSON begins with a space.
    key, arrived, x, predictions, names, lags = json.loads(row) if row.startswith(b" ") else orjson.loads(row)
    made = [Prediction(label, dict(map(tuple, shares)) or None) for label, shares in predictions]
    return PendingRecord(key, arrived, x, dict(zip(names, made, strict=True)), tuple(lags))


def checked(row: bytes) -> PendingRecord:
    """Return the record of a line from a file; ValueError if it is not what `pack` writes."""
    try:
        *_, predictions, names, _ = _ROW.validate_json(row, strict=True)
    except ValidationError as error:
        raise ValueError(f"a record is not one: {error.errors(include_url=False)[0]['msg']}") from None
    if len(set(names)) != len(predictions):
        raise ValueError("a record does not have a prediction of each model")
    return unpack(row)
