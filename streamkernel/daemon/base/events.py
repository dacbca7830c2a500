"""What flows between the parts of the daemon beside the records of its source."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from connectors.ports import Record

__all__ = ["LabelRecord", "Said"]


class LabelRecord(Record):
    """A record of the labels' source."""

    __slots__ = ()


class Said(NamedTuple):
    """What a model said to one record: the label or number it predicts, None before it knows any, and probabilities."""

    label: Any
    probabilities: Mapping[Any, float] | None = None
