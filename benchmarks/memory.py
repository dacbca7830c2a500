"""Resident memory over a million records at a fixed `max_features`.

    python -m benchmarks.memory [--records N] [--out DIR]

Three streams: plain numbers, one whose every record brings a new string, and one whose every record brings a new name,
as a hostile or careless producer would. Of the strings, only so many become inputs as repetitions allow; of the names,
as many as `max_inputs`.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.report import machine, table, write
from streamkernel import KernelClassifier

CHUNK = 1000
Chunk = tuple[list[dict[str, Any]], list[bool]]


def numbers(n_records: int) -> Iterator[Chunk]:
    """Eight numbers, a non-linear label."""
    rng = np.random.default_rng(0)
    for _ in range(n_records // CHUNK):
        X = rng.normal(size=(CHUNK, 8))
        y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] > 0
        yield [dict(zip("abcdefgh", row, strict=True)) for row in X.tolist()], y.tolist()


def new_strings(n_records: int) -> Iterator[Chunk]:
    """The same, and a session number as text that is never seen twice."""
    for i, (xs, ys) in enumerate(numbers(n_records)):
        for j, x in enumerate(xs):
            x["session"] = f"s{i * CHUNK + j}"
        yield xs, ys


def new_names(n_records: int) -> Iterator[Chunk]:
    """The same, and a number under a name that is never seen twice."""
    for i, (xs, ys) in enumerate(numbers(n_records)):
        for j, x in enumerate(xs):
            x[f"n{i * CHUNK + j}"] = 1.0
        yield xs, ys


def resident() -> float:
    """Resident memory of this process in MB."""
    status = Path("/proc/self/status").read_text()
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS"))) / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args()
    streams = (
        ("8 numbers", numbers, 10_000),
        ("a new string each", new_strings, 500),
        ("a new name each", new_names, 500),
    )
    rows = []
    for name, stream, max_inputs in streams:
        model = KernelClassifier(max_features=1024, max_inputs=max_inputs, seed=1)
        seen = 0
        tenth = options.records // 10
        for xs, ys in stream(options.records):
            model.advance(xs, ys)
            seen += len(xs)
            if seen % tenth == 0:
                rows.append([name, f"{seen:,}", f"{resident():.1f}", model.n_features, len(model.input_names)])
    write(
        options.out / "memory.md",
        "\n\n".join(
            [
                "# Memory over a long stream",
                f"`python -m benchmarks.memory` on {machine()}; KernelClassifier(max_features=1024), the second and "
                "third stream with max_inputs=500. Its code was compiled before: to compile it takes memory, too.",
                table(["stream", "records", "resident MB", "features", "inputs"], rows),
            ]
        ),
    )


if __name__ == "__main__":
    main()
