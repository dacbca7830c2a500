"""Columns that identify their record, and columns of dates.

    python -m benchmarks.columns [--records N] [--quick] [--out DIR]

A stream of six numbers comes with one more column of text: an order number, a time stamp, a session of five records, a
customer or a category. Each of our classifiers learns it with all values as indicators, and in the ways that keep the
indicators few. Then a time is read as text and as a date.
"""

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from unittest import mock

import numpy as np

from benchmarks.command import asked
from benchmarks.report import publish, table
from streamkernel import AdaptiveKernelClassifier, AdaptiveKernelRegressor, KernelClassifier
from streamkernel.connectors.columns.dates import DateParts
from streamkernel.connectors.columns.settings import DatePart
from streamkernel.records.repeats import FREE, Repeats

CHUNK = 250
NAME = "extra"
Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Stream:
    """Records, their labels, and what their column of text is."""

    name: str
    xs: Rows
    ys: list[bool]


def streams(n: int) -> list[Stream]:
    """The same numbers with each kind of column; customers and categories move the label, the others do not."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 6))
    score = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2]
    noise = rng.random(n) < 0.03
    customers, categories = rng.integers(0, 2000, n), rng.integers(0, 200, n)
    begin = datetime(2024, 1, 1)
    columns: dict[str, tuple[Sequence[str], Any]] = {
        "order number, each once": ([f"A-{i:08d}" for i in range(n)], 0),
        "time stamp, each once": ([(begin + timedelta(seconds=97 * i)).isoformat() for i in range(n)], 0),
        "session, of five records": ([f"s{i // 5}" for i in range(n)], 0),
        "customer, one of 2,000": ([f"c{i}" for i in customers], 1.5 * rng.normal(size=2000)[customers]),
        "category, one of 200": ([f"k{i}" for i in categories], 1.5 * rng.normal(size=200)[categories]),
    }
    found = []
    for name, (texts, effect) in columns.items():
        xs = [
            {**dict(zip("abcdef", row, strict=True)), NAME: text} for row, text in zip(X.tolist(), texts, strict=True)
        ]
        found.append(Stream(name, xs, ((score + effect > 0) ^ noise).tolist()))
    return found


def without(stream: Stream) -> Rows:
    return [{name: value for name, value in x.items() if name != NAME} for x in stream.xs]


def as_it_is(stream: Stream) -> Rows:
    return stream.xs


def hashed(n_buckets: int) -> Callable[[Stream], Rows]:
    """The first values as they are, the others in so many buckets."""

    def rows(stream: Stream) -> Rows:
        first = set(list(dict.fromkeys(x[NAME] for x in stream.xs))[:FREE])
        return [
            x if x[NAME] in first else {**x, NAME: f"bucket {int(x[NAME].encode().hex(), 16) % 1_000_003 % n_buckets}"}
            for x in stream.xs
        ]

    return rows


#: Name -> the records, and whether the limit of repetitions is at work.
WAYS: dict[str, tuple[Callable[[Stream], Rows], bool]] = {
    "excluded": (without, True),
    "every value an indicator": (as_it_is, False),
    "the rest ignored (as it is)": (as_it_is, True),
    "the rest in 8 buckets": (hashed(8), False),
    "the rest in 64 buckets": (hashed(64), False),
}
MODELS: dict[str, Callable[[], Any]] = {
    "AdaptiveKernelClassifier": lambda: AdaptiveKernelClassifier(seed=1),
    "KernelClassifier": lambda: KernelClassifier(seed=1, max_features=2048),
}


def learned(make: Callable[[], Any], xs: Rows, ys: list[bool]) -> tuple[float, float, int]:
    """Progressive accuracy over the second half, records a second of CPU, and inputs at the end."""
    model = make()
    right: list[bool] = []
    before = time.process_time()
    for start in range(0, len(xs), CHUNK):
        part = slice(start, start + CHUNK)
        predicted = model.advance(xs[part], ys[part]).predictions
        right += [one == y for one, y in zip(predicted, ys[part], strict=True)]
    seconds = time.process_time() - before
    return statistics.fmean(right[len(xs) // 2 :]), len(xs) / seconds, len(model.input_names)


def identifying(n: int) -> str:
    rows = []
    for name, make in MODELS.items():
        for stream in streams(n):
            for way, (records, limited) in WAYS.items():
                with mock.patch.object(Repeats, "has_room", Repeats.has_room if limited else _always):
                    accuracy, rate, n_inputs = learned(make, records(stream), stream.ys)
                rows.append([name, stream.name, way, f"{accuracy:.3f}", f"{rate:,.0f}", f"{n_inputs:,}"])
    return table(["model", "column", "its values", "accuracy", "records/s", "inputs"], rows)


def _always(*_: Any) -> bool:
    return True


def demand(n: int) -> tuple[list[str], list[float]]:
    """Times, one an hour, and a demand with two peaks on weekdays, one at weekends, and a season."""
    rng = np.random.default_rng(2)
    times = [datetime(2024, 1, 1) + timedelta(hours=i) for i in range(n)]
    hour = np.array([moment.hour for moment in times])
    weekend = np.array([moment.weekday() >= 5 for moment in times])
    week = 60 * np.exp(-((hour - 8) ** 2) / 4) + 80 * np.exp(-((hour - 17) ** 2) / 6)
    season = 30 * np.sin(2 * np.pi * np.arange(n) / (365 * 24))
    y = 100 + np.where(weekend, 70 * np.exp(-((hour - 14) ** 2) / 20), week) + season + rng.normal(0, 5, n)
    return [moment.isoformat() for moment in times], y.tolist()


def dates(n: int) -> str:
    """A regressor of a demand, by what its time of day is read as."""
    texts, ys = demand(n)
    parts: list[DatePart] = ["year", "month", "day", "weekday", "hour"]
    ways: dict[str, Rows] = {"text": [{"when": text} for text in texts]}
    for name, cyclic in (
        ("a date, parts as numbers", False),
        ("a date, parts that come round as sine and cosine", True),
    ):
        date = DateParts("iso", parts, cyclic, None)
        ways[name] = [
            {part: v for part, v in zip(date.names, date.read(text), strict=True) if v is not None} for text in texts
        ]
    rows = []
    for way, xs in ways.items():
        model = AdaptiveKernelRegressor(seed=1)
        errors: list[float] = []
        for start in range(0, n, CHUNK):
            part = slice(start, start + CHUNK)
            predicted = model.advance(xs[part], ys[part]).predictions
            errors += [abs(one - y) for one, y in zip(predicted, ys[part], strict=True)]
        rows.append([way, f"{statistics.fmean(errors[n // 2 :]):.2f}", len(model.input_names)])
    return table(["the time is read as", "mean absolute error", "inputs"], rows)


def main() -> None:
    options = asked(__doc__, quick="300 records", records=6000)
    n = 300 if options.quick else options.records
    for make in MODELS.values():  # compiled before anything is timed
        few = streams(500)[0]
        learned(make, few.xs, few.ys)
    publish(
        options,
        "columns",
        "Columns",
        "## Columns that identify",
        "Six numbers decide the label, of which 3% are turned round; customers and categories move it, too. Accuracy "
        f"is progressive, over the second half of {n:,} records. An input has {FREE} values before its repetitions "
        "count.",
        identifying(n),
        "## Dates",
        "An hourly demand with peaks by hour and weekday and a season, from its time alone; its noise has a mean "
        "absolute value of 4. Over the second half, by an AdaptiveKernelRegressor.",
        dates(n),
    )


if __name__ == "__main__":
    main()
