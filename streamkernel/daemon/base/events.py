"""Late labels as records, and the prediction of a record."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from streamkernel.connectors.ports import Record

__all__ = ["LabelRecord", "Prediction"]


class LabelRecord(Record):
    """A record of the labels' source."""

    __slots__ = ()


class Prediction(NamedTuple):
    """A model's prediction for one record: label or number, None before it knows any, and probabilities of classes."""

    label: Any
    probabilities: Mapping[Any, float] | None = None
