"""Several targets at once: one machine with an output for each, against River's chain of a machine for each.

    python -m benchmarks.multi_target [--rounds N] [--records N] [--quick] [--out DIR]

Each record is predicted, then learned. Both models take each stream in turn, in every round with another seed, so that
a ratio is of times next to each other. Errors are of the second half of a stream.
"""

import math
import random
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from river import datasets, multioutput

from benchmarks.command import asked
from benchmarks.report import publish, span, table
from streamkernel import KernelMultiTargetRegressor, KernelRegressor

Pair = tuple[dict[str, Any], dict[str, float]]
SEVERAL, CHAIN = "KernelMultiTargetRegressor", "RegressorChain(KernelRegressor)"


class Run(NamedTuple):
    """Microseconds a record, and the share of the targets' variance that is left, the mean over the targets."""

    microseconds: float
    left: float


def five_functions(n: int) -> Iterator[Pair]:
    """Yield records of ten normal inputs and five functions of them, with noise of a tenth of their deviation."""
    rng = random.Random(1)
    for _ in range(n):
        a = [rng.gauss(0, 1) for _ in range(10)]
        exact = {
            "sum": (a[0] + a[1] * a[2], 1.41),
            "wave": (5 * math.sin(2 * a[3]), 3.5),
            "bowl": (a[4] ** 2 - a[5], 1.73),
            "bump": (100 * math.exp(-(a[6] ** 2)), 33.0),
            "product": (a[7] * a[8] + a[9], 1.41),
        }
        x = {f"x{place}": value for place, value in enumerate(a)}
        yield x, {name: value + 0.1 * spread * rng.gauss(0, 1) for name, (value, spread) in exact.items()}


def models(names: Sequence[str], seed: int) -> dict[str, Any]:
    """Return both models, new."""
    return {
        SEVERAL: KernelMultiTargetRegressor(seed=seed),
        CHAIN: multioutput.RegressorChain(KernelRegressor(seed=seed), order=list(names)),
    }


def run(model: Any, records: Sequence[Pair]) -> Run:
    """Predict and learn each record."""
    predictions = []
    start = time.perf_counter()
    for x, y in records:
        predictions.append(model.predict_one(x))
        model.learn_one(x, y)
    seconds = time.perf_counter() - start
    half = len(records) // 2
    left = []
    for name in records[0][1]:
        targets = np.array([y[name] for _, y in records[half:]])
        given = np.array([one[name] for one in predictions[half:]])
        if targets.var() > 0:  # a rare flare is always 0 in a short run
            left.append(float(np.mean((targets - given) ** 2) / targets.var()))
    return Run(1e6 * seconds / len(records), float(np.mean(left)))


def rows(title: str, records: Sequence[Pair], rounds: int) -> list[list[str]]:
    """Return the lines of a stream: a line for each model."""
    names = list(records[0][1])
    found: dict[str, list[Run]] = {SEVERAL: [], CHAIN: []}
    for one in models(names, 0).values():  # compiled, and in the caches
        run(one, records[:400])
    for number in range(rounds):
        both = list(models(names, number + 1).items())
        for name, model in both if number % 2 else reversed(both):
            found[name].append(run(model, records))
    ratios = [chain.microseconds / one.microseconds for one, chain in zip(found[SEVERAL], found[CHAIN], strict=True)]
    lines = []
    for name, runs in found.items():
        faster = span([1.0] if name == CHAIN else ratios, ".1f")
        cells = span([one.microseconds for one in runs], ".0f"), faster, span([one.left for one in runs], ".3f")
        lines.append([title, str(len(names)), name, *cells])
    return lines


def main() -> None:
    options = asked(__doc__, quick="a short run that only shows that it works", rounds=7, records=20_000)
    rounds, n = (1, 800) if options.quick else (options.rounds, options.records)
    lines = rows(f"Five functions ({n:,})", list(five_functions(n)), rounds)
    flares = list(datasets.SolarFlare())[: n if options.quick else None]
    lines += rows(f"SolarFlare ({len(flares):,})", flares, rounds)
    publish(
        options,
        "multi_target",
        "Several targets at once",
        f"Each record is predicted, then learned, by `predict_one` and `learn_one`, with the defaults. Medians of "
        f"{rounds} rounds, each with another seed (lowest to highest). Both models take the stream in turn. The "
        "variance left is the mean squared error over the variance of a target, the mean over the targets, of the "
        "second half of the stream. The mean of a target would leave 1.",
        f"- **{SEVERAL}** is one machine with an output for each target.\n"
        f"- **{CHAIN}** is River's chain. It has a machine for each target, and gives it the targets before as inputs.",
        table(["stream", "targets", "model", "us a record", "times as fast", "variance left"], lines),
    )


if __name__ == "__main__":
    main()
