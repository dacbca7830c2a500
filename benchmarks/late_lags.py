"""The past of the target where labels come late: without lags, with those of the prediction, with those of learning.

`python -m benchmarks.late_lags --data DIR` takes the regressions among the files of that folder that are there.
"""

import argparse
from collections import deque
from pathlib import Path
from typing import Any

from benchmarks import report
from benchmarks.asked import at_least, of_names
from benchmarks.streams import N_LAGS, Stream, built_in, from_files
from streamkernel import AdaptiveKernelRegressor

RESULT = Path(__file__).parent / "results" / "late_lags.md"
#: Lags, and whether a record keeps those it was predicted with.
WAYS = {"without": (0, False), "kept": (N_LAGS, True), "taken anew": (N_LAGS, False)}


def error(stream: Stream, delay: int, lags: int, keeps: bool, limit: int | None) -> float:
    """The mean absolute error of predictions whose labels come so many records later."""
    model, total, n = AdaptiveKernelRegressor(lags=lags, seed=1), 0.0, 0
    waiting: deque[tuple[dict[Any, Any], Any]] = deque()
    for x, y in stream.encoded(limit):
        kept = model.with_lags(x) if keeps else x
        total += abs(y - model.predict_one(kept))
        n += 1
        waiting.append((kept, y))
        if len(waiting) > delay:
            model.learn_one(*waiting.popleft())
    return total / n


def text(streams: list[Stream], delays: list[int], limit: int | None) -> str:
    """The report."""
    rows = [
        [stream.name, delay, *(f"{error(stream, delay, *way, limit):.4g}" for way in WAYS.values())]
        for stream in streams
        for delay in delays
    ]
    return "\n\n".join(
        [
            "# Lags and late labels",
            f"`python -m benchmarks.late_lags` on {report.machine()}.",
            f"MAE of `AdaptiveKernelRegressor` without and with lags={N_LAGS}, labels so many records late: the lags "
            "that a record was predicted with kept for its learning by `with_lags`, or taken anew, which no one should "
            "do.",
            report.table(["stream", "late", *WAYS], rows),
        ]
    )


def main(arguments: list[str] | None = None) -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="the folder of files; without one, the built-in regressions")
    parser.add_argument("--limit", type=at_least(1), help="take no more records of a stream")
    parser.add_argument("--delays", type=at_least(0), nargs="+", default=[6], help="how many records later labels come")
    parser.add_argument("--streams", nargs="+", help="take these alone")
    parser.add_argument("--to", type=Path, default=RESULT, help="where the report goes")
    given = parser.parse_args(arguments)
    every = from_files(given.data) if given.data else built_in()
    regressions = [stream for stream in every if not stream.n_classes]
    streams = of_names(regressions, given.streams or [stream.name for stream in regressions])
    report.write(given.to, text(streams, given.delays, given.limit))


if __name__ == "__main__":
    main()
