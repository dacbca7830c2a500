"""Resident memory over a million records at a fixed `max_features`.

    python -m benchmarks.memory [--records N] [--out DIR]

Three streams: plain numbers, one whose every record brings a new string, and one whose every record brings a new name,
as a hostile or careless producer would. Of the strings, only so many become inputs as repetitions allow; of the names,
as many as `max_inputs`.
"""

from collections.abc import Iterator
from itertools import islice
from typing import Any

from benchmarks.command import asked
from benchmarks.processes import resident
from benchmarks.report import publish, table
from benchmarks.waves import waves
from streamkernel import KernelClassifier

CHUNK = 1000
Chunk = tuple[list[dict[str, Any]], list[bool]]


def numbers(n_records: int) -> Iterator[Chunk]:
    """Eight numbers, a non-linear label."""
    pairs = waves(n_records, "abcdefgh")
    for _ in range(n_records // CHUNK):
        xs, ys = zip(*islice(pairs, CHUNK), strict=True)
        yield list(xs), list(ys)


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


def main() -> None:
    options = asked(__doc__, records=1_000_000)
    streams = (
        ("8 numbers", numbers, 10_000),
        ("a new string each", new_strings, 500),
        ("a new name each", new_names, 500),
    )
    rows = []
    for name, stream, max_inputs in streams:
        model = KernelClassifier(max_features=1024, max_inputs=max_inputs, seed=1)
        seen = 0
        for xs, ys in stream(options.records):
            model.advance(xs, ys)
            seen += len(xs)
            if seen % (options.records // 10) == 0:
                rows.append([name, f"{seen:,}", f"{resident():.1f}", model.n_features, len(model.input_names)])
    publish(
        options,
        "memory",
        "Memory over a long stream",
        "KernelClassifier(max_features=1024), the second and third stream with max_inputs=500. Its code was compiled "
        "before: to compile it takes memory, too.",
        table(["stream", "records", "resident MB", "features", "inputs"], rows),
    )


if __name__ == "__main__":
    main()
