"""The inputs of records in columns, as the models of a run take them: a matrix, or a dict for each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any, overload

import numpy as np

from streamkernel.connectors.ports import CodedColumn, RecordColumns
from streamkernel.records.frames import FrameColumns, Texts
from streamkernel.state import Array

__all__ = ["ColumnInputs"]


class ColumnInputs(Sequence[dict[str, Any]]):
    """The inputs of usable records: estimators of ours read the columns, other models the dicts.

    Parameters
    ----------
    records
        The records.

    """

    def __init__(self, records: RecordColumns) -> None:
        self._records = records

    def __len__(self) -> int:
        return len(self._records)

    @overload
    def __getitem__(self, index: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, index: slice) -> list[dict[str, Any]]: ...
    def __getitem__(self, index: int | slice) -> dict[str, Any] | list[dict[str, Any]]:
        """Return the inputs of a record, or of some."""
        return self._dicts[index]

    @cached_property
    def _dicts(self) -> list[dict[str, Any]]:
        return [record.x for record in self._records]

    def read(self) -> FrameColumns:
        """Return the columns, as a frame of these records would have them."""
        records = self._records
        names: dict[Any, int] = {name: place for place, name in enumerate(records.names)}
        texts = {text.name: _used(text) for text in records.texts}
        odd = [(row, name, value) for row, record in records.odd.items() for name, value in record.x.items()]
        for _, name, value in odd:
            if type(value) is not str:
                names.setdefault(name, len(names))
        numbers = np.full((len(records), len(names) + 1), math.nan)
        numbers[:, : len(records.names)] = records.numbers
        for row, name, value in odd:
            if type(value) is str:
                codes, values = texts.setdefault(name, (np.full(len(records), -1), []))
                if value not in values:
                    values.append(value)
                codes[row] = values.index(value)
            else:
                numbers[row, names[name]] = value
        return FrameColumns(list(names), numbers, [Texts(name, *coded) for name, coded in texts.items()], {})


def _used(text: CodedColumn) -> tuple[Array, list[str]]:
    """Return codes of the values that records have; a vocabulary may be much larger."""
    used, codes = np.unique(text.codes, return_inverse=True)
    n_missing = int((used < 0).sum())
    return codes - n_missing, [text.values[code] for code in used[n_missing:].tolist()]
