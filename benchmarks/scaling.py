"""Cost and memory against features, inputs, outputs and the length of the stream, with the slopes of the lines.

    python -m benchmarks.scaling [--quick] [--out DIR]

One thread; CPU time, the median of rounds that have all sizes and lines. Models of a wanted size are restored with
random coefficients instead of learned. Writes scaling.md and scaling.png.
"""

import math
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.command import asked
from benchmarks.footprint import BATCH, BLOCK, Model, classifier, measured, regressor
from benchmarks.memory import CHUNK, numbers
from benchmarks.plots import panels as drawn
from benchmarks.report import publish, table
from benchmarks.rounds import interleaved
from streamkernel import KernelClassifier
from streamkernel.growth import DSG
from streamkernel.kernels import Gaussian

ROWS = 256
#: What is held fixed while the others vary.
FEATURES, INPUTS = 4096, 20
LIMIT = 512


@dataclass
class Panel:
    """Lines over one quantity."""

    title: str
    x_label: str
    y_label: str
    lines: dict[str, dict[int, float]] = field(default_factory=dict)  #: y by x, by name

    def put(self, line: str, x: int, y: float) -> None:
        self.lines.setdefault(line, {})[x] = y

    def table(self) -> str:
        """A column each x, and the slope."""
        xs = sorted({x for line in self.lines.values() for x in line})
        rows = [[name, *(_figure(line.get(x)) for x in xs), _slope_text(line)] for name, line in self.lines.items()]
        return table([f"{self.y_label} at {self.x_label} =", *(f"{x:,}" for x in xs), "slope"], rows)


def slope(line: dict[int, float]) -> float | None:
    """The exponent by least squares on the logarithms of the upper half of a line; None where it does not rise above 0.

    >>> round(slope({1: 5.0, 2: 1.0, 4: 4.0, 8: 16.0}), 3)
    2.0
    """
    points = sorted(line.items())
    points = points[len(points) // 2 :]
    if len(points) < 2 or min(y for _, y in points) <= 0:
        return None
    x, y = np.log(np.array(points, float)).T
    return float(np.polyfit(x, y, 1)[0])


def _slope_text(line: dict[int, float]) -> str:
    found = slope(line)
    return "" if found is None else f"{found:.2f}".replace("-0.00", "0.00")


def _figure(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.{max(0, 2 - math.floor(math.log10(value)))}f}" if value > 0 else "0"


def _work(model: Model, d: int) -> dict[str, Callable[[], object]]:
    """What is timed: predicting an array, and learning dicts."""
    X = np.random.default_rng(d + 1).normal(size=(ROWS, d))
    xs = [dict(enumerate(row)) for row in X.tolist()]
    K = len(model.classes) if isinstance(model, KernelClassifier) else 1
    ys = [i % K if K > 1 else float(i % 7) for i in range(ROWS)]
    return {
        "predict_many": partial(model.predict_many, X),
        "advance": partial(model.advance, xs, ys),
    }


def costs(title: str, x_label: str, models: dict[tuple[str, int], tuple[Model, int]], rounds: int) -> Panel:
    """Return microseconds a record of models by (kind, x), given with their d."""
    panel = Panel(title, x_label, "us a record")
    calls: dict[str, Callable[[], object]] = {}
    for (kind, x), (model, d) in models.items():
        for what, work in _work(model, d).items():
            calls[f"{kind} {what}|{x}"] = work
    for name, seconds in interleaved(calls, rounds, at_least=0.01).items():
        line, _, x_text = name.partition("|")
        panel.put(line.strip(), int(x_text), 1e6 * statistics.median(seconds) / ROWS)
    return panel


def gaussian(d: int, structured: bool = False) -> Gaussian:
    return Gaussian(math.sqrt(d), structured)


KINDS = {"iid": False, "structured": True}


def of_outputs(K: int) -> Model:
    """Return a model of `K` outputs."""
    kernel = gaussian(INPUTS)
    return regressor(FEATURES, INPUTS, kernel) if K == 1 else classifier(FEATURES, INPUTS, K, kernel)


def cost_panels(sizes: list[int], dimensions: list[int], outputs: list[int], rounds: int) -> list[Panel]:
    """Return the cost against m, d and K."""
    by_m: dict[tuple[str, int], tuple[Model, int]] = {
        (kind, m): (regressor(m, INPUTS, gaussian(INPUTS, structured)), INPUTS)
        for kind, structured in KINDS.items()
        for m in sizes
    }
    by_d: dict[tuple[str, int], tuple[Model, int]] = {
        (kind, d): (regressor(FEATURES, d, gaussian(d, structured)), d)
        for kind, structured in KINDS.items()
        for d in dimensions
    }
    by_k = {("", K): (of_outputs(K), INPUTS) for K in outputs}
    return [
        costs(f"Cost against features (d = {INPUTS})", "m", by_m, rounds),
        costs(f"Cost against inputs (m = {FEATURES:,})", "d", by_d, rounds),
        costs(f"Cost against outputs (m = {FEATURES:,}, d = {INPUTS})", "K", by_k, rounds),
    ]


def stream_panels(n_limited: int, n_unlimited: int) -> list[Panel]:
    """Cost and memory against the length of the stream, d = 8: a limited model, and one that grows at every step."""
    cost = Panel("Cost against length of the stream (d = 8)", "records", "us a record")
    memory = Panel("Memory against length of the stream (d = 8)", "records", "MB")
    limited = KernelClassifier(max_features=LIMIT, seed=1)
    unlimited = KernelClassifier(growth=DSG(), max_features=None, seed=1)
    for name, model, n in (
        (f"CDSG, max_features={LIMIT}", limited, n_limited),
        ("DSG, no limit", unlimited, n_unlimited),
    ):
        marks = {round(10 ** (k / 2)) // CHUNK * CHUNK for k in range(6, 13)}
        took: list[float] = []
        for xs, ys in numbers(n):
            before = time.process_time()
            model.advance(xs, ys)
            took.append(time.process_time() - before)
            seen = len(took) * CHUNK
            if seen in marks:
                recent = took[int(0.7 * len(took)) :]
                cost.put(name, seen, 1e6 * statistics.mean(recent) / CHUNK)
                memory.put(name, seen, model.memory_bytes / 1e6)
    return [cost, memory]


MEMORIES: dict[str, dict[str, Any]] = {
    "iid, default cache": {},
    "iid, cache_bytes=0": {"cache_bytes": 0},
    "structured": {"structured": True},
}
SHOWN = {"account": "memory_bytes", "working": "peak of a process"}


def memory_panels(sizes: list[int], dimensions: list[int], outputs: list[int]) -> list[Panel]:
    """Memory against m, d and K: the model's own account, and what predicting and learning take of a process."""
    by_m = Panel(f"Memory against features (d = {INPUTS})", "m", "MB")
    by_d = Panel(f"Memory against inputs (m = {FEATURES:,})", "d", "MB")
    for panel, cases in (
        (by_m, [(m, m, INPUTS) for m in sizes]),
        (by_d, [(d, FEATURES, d) for d in dimensions]),
    ):
        for name, arguments in MEMORIES.items():
            for x, m, d in cases:
                found = measured(m=m, d=d, **arguments)
                for key, what in SHOWN.items():
                    panel.put(f"{name}: {what}", x, found[key] / 1e6)
        for x, m, d in cases:
            panel.put("a stored W", x, 4 * m * d / 1e6)
    by_k = Panel(f"Memory against outputs (m = {FEATURES:,}, d = {INPUTS})", "K", "MB")
    for K in outputs:
        by_k.put("coefficients", K, of_outputs(K).memory_bytes / 1e6)
    return [by_m, by_d, by_k]


def style(line: str) -> dict[str, Any]:
    """Structured is orange, no cache green; learning and accounts are dashed."""
    color = "tab:orange" if "structured" in line else "tab:green" if "cache_bytes=0" in line else "tab:blue"
    if "no limit" in line:
        color = "tab:red"
    if "stored W" in line:
        return {"color": "grey", "linestyle": ":", "marker": ""}
    dashed = "advance" in line or "memory_bytes" in line
    return {"color": color, "linestyle": "--" if dashed else "-", "marker": "s" if dashed else "o"}


def plot(panels: list[Panel], path: Path) -> None:
    """Draw the lines on logarithmic axes."""
    with drawn(path, 2, 3, (5.3, 5.0)) as (figure, axes):
        for panel, ax in zip(panels, axes.flat, strict=True):
            for name, line in panel.lines.items():
                points = [(x, y) for x, y in sorted(line.items()) if y > 0]
                label = name if slope(line) is None else f"{name} ({_slope_text(line)})"
                ax.loglog(*zip(*points, strict=True), label=label, markersize=5, linewidth=1.5, **style(name))
            ax.set(title=panel.title, xlabel=panel.x_label, ylabel=panel.y_label)
            low, high = ax.get_ylim()
            high = max(high, 30 * low)
            # Room above for the legend.
            ax.set_ylim(low, high * (high / low) ** (0.08 + 0.075 * len(panel.lines)))
            ax.minorticks_off()
            ax.legend(fontsize=9, loc="upper left", framealpha=0.9)
        figure.suptitle("In brackets: the slope of the upper half of a line", fontsize=12)


def main() -> None:
    options = asked(__doc__, quick="small models, few rounds")
    rounds = 2 if options.quick else 5
    sizes = [round(10 ** (k / 2)) // BLOCK * BLOCK for k in range(6, 9 if options.quick else 13)]
    dimensions = [2, 8, 32] if options.quick else [2, 8, 32, 128, 512, 2048, 4096]
    outputs = [1, 2, 5] if options.quick else [1, 2, 5, 10, 20, 50, 100]
    by_m, by_d, by_k = cost_panels(sizes, dimensions, outputs, rounds)
    stream, stream_memory = stream_panels(*((31_000, 10_000) if options.quick else (1_000_000, 100_000)))
    memory_m, memory_d, memory_k = memory_panels(sizes, dimensions, outputs)
    plot([by_m, by_d, by_k, stream, memory_m, memory_d], options.out / "scaling.png")
    publish(
        options,
        "scaling",
        "Cost and memory against size",
        f"One thread, float32, CPU time, the median of {rounds} rounds. A slope is the exponent of the upper half of a "
        "line, by least squares on the logarithms: 1 is proportional, 0 is flat. KernelRegressor (KernelClassifier for "
        "K and the stream) is the machine of the papers: preconditioned steps of two blocks, "
        f"B = {BATCH}, F = {BLOCK}, a cache of 64 MB; `predict_many` takes {ROWS} rows of an array, `advance` predicts "
        "and learns as many dicts. Reading them is part of the cost.",
        "![The lines](scaling.png)",
        "## Cost",
        *(part for panel in (by_m, by_d, by_k, stream) for part in (f"{panel.title}:", panel.table())),
        "## Memory",
        "memory_bytes is the model's own account, coefficients and cache. The peak is what resident memory rose by "
        "while a restored model predicted 64 rows and learned 32, a process each; 0 is less than the process had at "
        "hand.",
        *(
            part
            for panel in (memory_m, memory_d, memory_k, stream_memory)
            for part in (f"{panel.title}:", panel.table())
        ),
    )


if __name__ == "__main__":
    main()
