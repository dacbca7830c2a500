"""Cells and files that the experiments share."""

import csv
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.paper.runs import CurvePoint


def percent(values: Sequence[float]) -> str:
    """Mean and deviation in percent."""
    return spread([100 * value for value in values], 2)


def spread(values: Sequence[float], digits: int) -> str:
    """Mean and, of several, deviation."""
    mean = f"{np.mean(values):.{digits}f}"
    return mean if len(values) == 1 else f"{mean} ± {np.std(values):.{digits}f}"


def megabytes(nbytes: float) -> str:
    """Bytes in MB, with three digits; a dash for none."""
    return f"{nbytes / 1e6:,.0f}" if nbytes >= 1e8 else f"{nbytes / 1e6:.3g}" if nbytes else "-"


def write_looks(path: Path, runs: Mapping[tuple[str, str, int], Sequence[CurvePoint]]) -> None:
    """Every look of every run, by problem, algorithm and seed."""
    names = [*CurvePoint.__dataclass_fields__]
    rows = ([*key, *(getattr(look, name) for name in names)] for key, looks in runs.items() for look in looks)
    write_rows(path, ["problem", "algorithm", "seed", *names], rows)


def write_rows(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """A CSV file; numbers with five digits."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows([f"{cell:.5g}" if isinstance(cell, float) else cell for cell in row] for row in rows)
