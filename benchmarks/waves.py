"""Records of normal numbers with a label that no line separates: the stream of most benchmarks of speed."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

Pair = tuple[dict[str, Any], bool]


def waves(n_records: int, names: Sequence[str], digits: int | None = None) -> Iterator[Pair]:
    """Yield records of these inputs, of so many digits, and their labels."""
    rng = np.random.default_rng(0)
    for start in range(0, n_records, 10_000):
        X = rng.normal(size=(min(10_000, n_records - start), len(names)))
        if digits is not None:
            X = X.round(digits)
        labels = (np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] > 0).tolist()
        yield from ((dict(zip(names, row, strict=True)), y) for row, y in zip(X.tolist(), labels, strict=True))


def write_waves(path: Path, n_records: int, names: Sequence[str]) -> None:
    """Write a stream with its labels as JSON lines or, if the name says so, as CSV."""
    with path.open("w") as lines:
        if path.suffix == ".csv":
            lines.write(",".join([*names, "label"]) + "\n")
            lines.writelines(
                f"{','.join(f'{value:.6f}' for value in x.values())},{y}\n" for x, y in waves(n_records, names)
            )
        else:
            lines.writelines(json.dumps({**x, "label": y}) + "\n" for x, y in waves(n_records, names, 6))
