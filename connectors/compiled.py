"""Compile the connectors' code in advance: for an image, or before the first record."""

from __future__ import annotations

import numpy as np

from streamkernel.compute.record_batches import SIZE, find_records, write_records
from streamkernel.connectors.bulk import FEWEST, BulkDecoder
from streamkernel.connectors.files.rows import CsvRows
from streamkernel.connectors.objects import JsonObjects
from streamkernel.connectors.ports import Position

__all__ = ["compile_connectors"]


def compile_connectors() -> None:
    """Compile the code that decodes JSON and CSV, and reads and writes batches of Kafka, or load it from the cache."""
    usual: list[tuple[BulkDecoder, bytes]] = [
        (JsonObjects("y", "bool", 256), b'{"a": 1.5, "b": "red", "y": true}'),
        (CsvRows(["a", "b", "y"], "y", "bool", ",", "utf-8", 256), b"1.5,red,true"),
    ]
    places = [Position("", 0, 0)] * FEWEST
    for decoder, record in usual:
        decoder.records([record] * FEWEST, places, places)
    # Bytes that are read may not be changed, and numba compiles for them apart: kafka-python gives a bytearray.
    find_records(np.frombuffer(bytearray(8), np.uint8), 0, 0, np.empty((SIZE + 1, 1), np.int64))
    none, out = np.empty(0, np.int64), np.empty(0, np.uint8)
    write_records(np.frombuffer(b"", np.uint8), none.reshape(0, 3), none, none, 0, out, np.empty((1, 2), np.int64))
