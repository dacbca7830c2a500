"""What the tests of the connectors share: reading a source to its end, and writing files of every kind."""

from __future__ import annotations

import gzip
import tracemalloc
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

import zstandard

from streamkernel.connectors import Position, Record, Source

REASONS = {
    "not_json",
    "not_an_object",
    "csv_width",
    "open_quote",
    "encoding",
    "too_long",
    "target",
    "infinite",
    "nested",
    "string_too_long",
    "input_type",
}


def drain(source: Source, positions: Mapping[int, Position] | None = None, at_once: int = 1000) -> list[Record]:
    """Open the source, read every record and close it."""
    with source:
        source.open(positions)
        records: list[Record] = []
        while not source.exhausted:
            polled = source.poll(at_once, timeout=0)
            assert len(polled) <= at_once
            records += polled
        assert source.poll(at_once, timeout=0) == []
    return records


def pack(data: bytes, suffix: str) -> bytes:
    """Compress as the suffix says; in two members or frames, as a file that was appended to has them."""
    half = len(data) // 2
    if suffix == ".gz":
        return gzip.compress(data[:half]) + gzip.compress(data[half:])
    if suffix == ".zst":
        compressor = zstandard.ZstdCompressor()
        return compressor.compress(data[:half]) + compressor.compress(data[half:])
    return data


def unpack(data: bytes, suffix: str) -> bytes:
    """Decompress as the suffix says."""
    if suffix == ".gz":
        return gzip.decompress(data)
    if suffix == ".zst":
        return zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True).read()
    return data


def written(path: Path, data: bytes) -> Path:
    """Write `data`, compressed as the name of the file says, and return the path."""
    path.write_bytes(pack(data, path.suffix))
    return path


def consistent(records: list[Record], data: bytes, start: int) -> None:
    """Check that the records tile the bytes from `start` on, and say nothing that cannot be."""
    expected = start
    for record in records:
        assert record.position.offset == expected
        expected = record.next.offset
        stood = data[record.position.offset : record.next.offset].removesuffix(b"\n")
        if record.fault is not None and record.fault.reason == "too_long":
            assert stood.startswith(record.raw)
        else:
            assert record.raw in (stood, stood.removesuffix(b"\r"))
        assert not (record.fault and record.blank)
        if record.fault or record.blank:
            assert record.x == {}
            assert record.y is None
        if record.fault:
            assert record.fault.reason in REASONS
            assert 0 < len(record.fault.detail) < 300
    for record, successor in pairwise(records):
        assert record.next == successor.position
    assert expected == len(data)


def held_after(source: Source) -> int:
    """Return how many bytes a source holds once its records were handed out and dropped."""
    with source:
        source.open()
        tracemalloc.start()
        try:
            while not source.exhausted:
                source.poll(256, timeout=0)
            ours = tracemalloc.take_snapshot().filter_traces([tracemalloc.Filter(True, "*/connectors/*")])
            return sum(trace.size for trace in ours.traces)
        finally:
            tracemalloc.stop()


def taken(source: Source, count: int, position: Position | None = None) -> tuple[list[Record], Position]:
    """Read some records, and the place behind them as a checkpoint stores it."""
    records: list[Record] = []
    with source:
        source.open({0: position} if position else None)
        while len(records) < count:
            records += source.poll(count - len(records), timeout=0)
        return records, source.lasting(records[-1].next)


def rest(source: Source, position: Position) -> list[Record]:
    """Read what follows, until nothing comes any more."""
    records: list[Record] = []
    with source:
        source.open({0: position})
        while polled := source.poll(1000, timeout=0):
            records += polled
    return records
