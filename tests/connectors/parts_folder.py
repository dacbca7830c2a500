"""Sinks of Parquet over a folder, and what stands in it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from streamkernel.connectors.parquet.columns import ParquetColumn
from streamkernel.connectors.parquet.mark import part_name
from streamkernel.connectors.parquet.sink import ParquetSink

COLUMNS = [ParquetColumn("offset", "int"), ParquetColumn("prediction", "str")]


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def sink(path: Path, columns: list[ParquetColumn] = COLUMNS, **how: Any) -> ParquetSink:
    return ParquetSink(path, columns, **how)


def put(one: ParquetSink, *offsets: int) -> None:
    one.write([{"position": {"partition": 0, "offset": offset}, "prediction": str(offset)} for offset in offsets])


def rows(path: Path) -> list[list[int]]:
    """Give the offsets in each part, in the order of their names."""
    found = sorted(path.glob("*"))
    assert [one.name for one in found] == [part_name(int(one.stem[5:])) for one in found]
    return [pq.read_table(one).column("offset").to_pylist() for one in found]


def flat(path: Path) -> list[int]:
    return [offset for part in rows(path) for offset in part]


def abandoned(one: ParquetSink) -> None:
    """End a sink as a kill would: nothing is written any more."""
    assert one._descriptor is not None
    os.close(one._descriptor)
    one._descriptor = None


def contents(folder: Path) -> dict[str, bytes]:
    return {str(one.relative_to(folder)): one.read_bytes() for one in sorted(folder.rglob("*")) if one.is_file()}
