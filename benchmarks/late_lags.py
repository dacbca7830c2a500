"""The past of the target where labels come late: without lags, with those of the prediction, with those of learning.

`python -m benchmarks.late_lags --data DIR` takes the regressions among the files of that folder that are there.
"""

from collections import deque
from typing import Any

from benchmarks import streams
from benchmarks.command import DATA, NAMES, asked, at_least
from benchmarks.report import publish, table
from benchmarks.streams import N_LAGS, Stream, of_names
from streamkernel import AdaptiveKernelRegressor

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


def main() -> None:
    """Run from the command line."""
    limited = {"type": at_least(1), "help": "take no more records of a stream"}
    delays = {"type": at_least(0), "nargs": "+", "default": [6], "help": "how many records later labels come"}
    options = asked(__doc__, data=DATA, limit=limited, delays=delays, streams=NAMES)
    regressions = [one for one in streams.catalog(options.data).values() if not one.n_classes]
    chosen = of_names(regressions, options.streams or [one.name for one in regressions if one.group == streams.FILES])
    rows = [
        [stream.name, delay, *(f"{error(stream, delay, *way, options.limit):.4g}" for way in WAYS.values())]
        for stream in chosen
        for delay in options.delays
    ]
    publish(
        options,
        "late_lags",
        "Lags and late labels",
        f"MAE of `AdaptiveKernelRegressor` without and with lags={N_LAGS}, labels so many records late: the lags that "
        "a record was predicted with kept for its learning by `with_lags`, or taken again, which no one should do.",
        table(["stream", "late", *WAYS], rows),
    )


if __name__ == "__main__":
    main()
