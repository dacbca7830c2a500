"""Bytes as records, scanned into columns: plain ones must hold what a decoder makes of them."""

import math
import random
import struct
from typing import Any

import numpy as np

from benchmarks.fuzz.mutation import mutated
from benchmarks.fuzz.records import _NAMES, _csv, _json_lines
from benchmarks.fuzz.target import Target
from streamkernel.connectors.bulk import BulkDecoder
from streamkernel.connectors.columns.scanner import ColumnScanner, JsonScanner, ScannedRows
from streamkernel.connectors.decode import UndecodableError
from streamkernel.connectors.files.row_scanner import CsvScanner
from streamkernel.connectors.files.rows import CsvRows
from streamkernel.connectors.objects import JsonObjects


class Scanners(Target):
    """Lines of CSV and JSON with odd values and odd bytes."""

    def warm_up(self) -> None:
        for seed in range(8):
            self.case(random.Random(seed))

    def case(self, draw: random.Random) -> str | None:
        target_type = draw.choice(("str", "int", "bool", "float"))
        scanner: ColumnScanner
        decoder: BulkDecoder
        if draw.random() < 0.5:
            data = _json_lines(draw, numbers=target_type == "float", most_names=100)
            scanner, decoder = JsonScanner("y", target_type, 256), JsonObjects("y", target_type, 256)
        else:
            data = _csv(draw, numbers=target_type == "float").partition(b"\n")[2]
            decoder = CsvRows(_NAMES, "y", target_type, ",", "utf-8", 256)
            scanner = CsvScanner(_NAMES, "y", target_type, ",", "utf-8", 256, decoder.rules)
        data = mutated(draw, data) if draw.random() < 0.5 else data
        lines = data.split(b"\n")
        for first in range(0, len(lines), 40):
            raws = lines[first : first + 40]
            lengths = np.array(list(map(len, raws)))
            stops = np.cumsum(lengths + 1) - 1
            rows = scanner.scan(b"\n".join(raws), stops - lengths, stops)
            for row in [] if rows is None else np.flatnonzero(rows.plain).tolist():
                raw = raws[row]
                try:
                    decoded = decoder.decode_one(raw)
                except UndecodableError as error:
                    return f"{raw!r} is plain, and {error}"
                if decoded is None or _bits(*decoded) != _bits(*_held(rows, row)):
                    return f"{raw!r} was scanned as {_held(rows, row)} and decoded as {decoded}"
        return None


def _held(rows: ScannedRows | None, row: int) -> tuple[dict[str, Any], Any]:
    assert rows is not None
    numbers = zip(rows.names, rows.numbers[row].tolist(), strict=True)
    x: dict[str, Any] = {name: value for name, value in numbers if not math.isnan(value)}
    x |= {text.name: text.values[text.codes[row]] for text in rows.texts if text.codes[row] >= 0}
    targets = rows.targets
    if targets is None or isinstance(targets, np.ndarray):
        return x, None if targets is None or math.isnan(targets[row]) else float(targets[row])
    return x, targets.values[targets.codes[row]] if targets.codes[row] >= 0 else None


def _bits(x: dict[str, Any], y: Any) -> Any:
    values = {name: value if isinstance(value, str) else struct.pack("d", value) for name, value in x.items()}
    return values, type(y), repr(y)
