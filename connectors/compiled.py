"""Compile the connectors' code in advance: for an image, or before the first record."""

from __future__ import annotations

import numpy as np

from streamkernel.compute.record_batches import SIZE, find_records
from streamkernel.connectors.bulk import FEWEST, BulkDecoder
from streamkernel.connectors.files.rows import CsvRows
from streamkernel.connectors.objects import JsonObjects
from streamkernel.connectors.ports import Position

__all__ = ["compile_decoders"]


def compile_decoders() -> None:
    """Compile the code that decodes JSON, CSV and the messages of a topic, or load it from the cache."""
    usual: list[tuple[BulkDecoder, bytes]] = [
        (JsonObjects("y", "bool", 256), b'{"a": 1.5, "b": "red", "y": true}'),
        (CsvRows(["a", "b", "y"], "y", "bool", ",", "utf-8", 256), b"1.5,red,true"),
    ]
    places = [Position("", 0, 0)] * FEWEST
    for decoder, record in usual:
        decoder.records([record] * FEWEST, places, places)
    find_records(np.frombuffer(bytes(8), np.uint8), 0, 0, np.empty((SIZE + 1, 1), np.int64))
