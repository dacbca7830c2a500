"""The inputs of records in columns, as the models of a run take them: a matrix, or a dict for each."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, overload

from streamkernel.connectors.ports import RecordColumns
from streamkernel.records.frames import FrameColumns, Texts

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
        names, numbers, texts = self._records.filled()
        return FrameColumns(names, numbers, [Texts(name, *coded) for name, coded in texts.items()], {})
