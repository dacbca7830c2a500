"""What it costs to read records of a file alone: our sources beside the decoders somebody would call by hand.

`python -m benchmarks.daemon` puts the table into its report. Ours give whole records: inputs and label checked, the
position of each line and of the next, its raw bytes, a reason for each line that cannot be used. The others give no
more than the inputs and the label.
"""

import csv
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson

from streamkernel.connectors import CsvSource, JsonLinesSource
from streamkernel.connectors.files.source import LineSource
from streamkernel.daemon.stream.loop import rare_collections

CHUNK = 512
TARGET = "label"


def ours(source: LineSource) -> int:
    n_records = 0
    with source:
        source.open()
        while not source.exhausted:
            n_records += len(source.poll(CHUNK, timeout=0))
    return n_records


def json_by_line(path: Path, loads: Callable[[bytes], Any]) -> int:
    n_records = 0
    with path.open("rb") as lines:
        for line in lines:
            x = loads(line)
            x.pop(TARGET)
            n_records += 1
    return n_records


def csv_rows(path: Path) -> int:
    n_records = 0
    with path.open() as lines:
        rows = csv.reader(lines)
        names = next(rows)
        at = names.index(TARGET)
        names.remove(TARGET)
        for row in rows:
            row.pop(at)
            dict(zip(names, map(float, row), strict=True))
            n_records += 1
    return n_records


def csv_dictionaries(path: Path) -> int:
    n_records = 0
    with path.open() as lines:
        for row in csv.DictReader(lines):
            row.pop(TARGET)
            {name: float(value) for name, value in row.items()}
            n_records += 1
    return n_records


def decoders(folder: Path) -> dict[str, Callable[[], int]]:
    """Each way to read the streams of the benchmark, to their end."""
    lines, table = folder / "stream.jsonl", folder / "stream.csv"
    return {
        "JSON lines, our source": lambda: ours(JsonLinesSource(lines, TARGET, "bool")),
        "JSON lines, `orjson.loads` a line": lambda: json_by_line(lines, orjson.loads),
        "JSON lines, `json.loads` a line": lambda: json_by_line(lines, json.loads),
        "CSV, our source": lambda: ours(CsvSource(table, TARGET, "bool")),
        "CSV, `csv.reader` and `float`": lambda: csv_rows(table),
        "CSV, `csv.DictReader` and `float`": lambda: csv_dictionaries(table),
    }


def measure(folder: Path, rounds: int) -> dict[str, list[float]]:
    """Records a second of CPU of every way in every round; all have the daemon's rare garbage collections."""
    rates: dict[str, list[float]] = {name: [] for name in decoders(folder)}
    with rare_collections():
        for _ in range(rounds):
            for name, read in decoders(folder).items():
                before = time.process_time()
                n_records = read()
                rates[name].append(n_records / (time.process_time() - before))
    return rates
