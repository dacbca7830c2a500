"""WindowRefit beside the models it is made of: progressive accuracy or error, and the stalls, stream by stream.

    python -m benchmarks.window_refit [--data DIR] [--streams A,B] [--models A;B] [--seeds N ...] [--quick] [--out DIR]

Files are read from --data where given. Each stream's runs are added to window_refit.jsonl in --out
(benchmarks/results), and window_refit.md is written from all that are there.
"""

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from river.datasets import synth

from benchmarks.command import DATA, NAMES, asked
from benchmarks.report import publish, table
from benchmarks.streams import Pair, Stream, from_files
from streamkernel import KernelClassifier, KernelRegressor, WindowRefit
from streamkernel.estimators.base import machine_of
from streamkernel.growth import DSG
from streamkernel.window import DSPDC, S3GD
from streamkernel.window.linear_model import LinearSolver

MAX_FEATURES = 256
SEEDS = (1, 2, 3)
#: Records between two looks at what was predicted.
CHUNK = 1000
#: Stalls: records of the window and features of the model.
SIZES = ((10_000, 256), (10_000, 512), (10_000, 1024), (50_000, 256))
Make = Callable[[bool, int], Any]


@dataclass
class Run:
    """What became of one model on one stream; accuracies in per cent, errors in the unit of the target."""

    stream: str
    records: int
    model: str
    seed: int
    score: float
    late_score: float
    seconds: float
    refits: int
    longest: float


def plain(regression: bool, seed: int, average: bool = False) -> Any:
    """The growing model alone."""
    return (KernelRegressor if regression else KernelClassifier)(max_features=MAX_FEATURES, average=average, seed=seed)


def refitted(
    solver: Callable[[bool], LinearSolver | None] = lambda _: None, average: bool = False, **given: int
) -> Make:
    """The same refitted."""
    return lambda regression, seed: WindowRefit(plain(regression, seed, average), solver=solver(regression), **given)


def l2_of(regression: bool) -> float:
    """That of the default solver."""
    return 1e-5 if regression else 1e-4


MODELS: dict[str, Make] = {
    "no refit": plain,
    "Exact (default)": refitted(),
    "S3GD": refitted(lambda regression: S3GD(l2=l2_of(regression), tol=1e-3, max_passes=20, seed=1)),
    "DSPDC": refitted(lambda regression: DSPDC(l2=l2_of(regression), primal=None, tol=1e-3, max_passes=20, seed=1)),
    "average, no refit": lambda regression, seed: plain(regression, seed, average=True),
    "average, Exact": refitted(average=True),
}
#: Models with a window of another length, on the streams that move.
SHORT: dict[str, Make] = {
    "Exact, window 5,000, every 2,500": refitted(window=5000, every=2500),
    "Exact, window 1,000, every 1,000": refitted(window=1000, every=1000),
}
MOVING = ("Elec2", "moving squares")
#: Other numbers of steps to go on from after a refit, whose steps are 1 / (1 + t / 500) of the first.
STEPS: dict[str, int] = {"Exact, steps begin anew": 0, "Exact, next to no steps": 10**7}
STEPPED = ("california_housing", "Elec2")


def streams(folder: Path) -> dict[str, Callable[[], list[Pair]]]:
    """The streams that are there, by name; all but the moving ones are shuffled."""
    rbf = synth.RandomRBF(seed_model=1, seed_sample=1, n_classes=4, n_features=10, n_centroids=50)
    known: dict[str, Callable[[], list[Pair]]] = {"RandomRBF": lambda: list(rbf.take(30_000))}
    files = {stream.name: stream for stream in from_files(folder) if stream.there}
    for name in ("a9a", "california_housing", "fried"):
        if name in files:
            known[name] = partial(in_random_order, files[name])
    if "Elec2" in files:
        known["Elec2"] = lambda: list(files["Elec2"].records())
    if (folder / "moving_squares.npz").exists():
        known["moving squares"] = lambda: squares(folder / "moving_squares.npz")
    return known


def squares(path: Path) -> list[Pair]:
    """The first 40,000 records of SAMLB's moving squares."""
    data = np.load(path, allow_pickle=True)
    rows = zip(data["X"][:40_000].astype(float).tolist(), data["y"][:40_000].tolist(), strict=True)
    return [(dict(enumerate(row)), y) for row, y in rows]


def in_random_order(stream: Stream) -> list[Pair]:
    """The records in an order in which nothing drifts."""
    pairs = list(stream.records())
    return [pairs[i] for i in np.random.default_rng(1).permutation(len(pairs))]


def run(name: str, pairs: Sequence[Pair], label: str, make: Make, seed: int) -> Run:
    """Predict each record, then learn it."""
    regression = isinstance(pairs[0][1], float)
    model = make(regression, seed)
    scores: list[Any] = []
    longest = seconds = 0.0
    for start in range(0, len(pairs), CHUNK):
        xs, ys = zip(*pairs[start : start + CHUNK], strict=True)
        before = getattr(model, "n_refits", 0)
        begun = time.perf_counter()
        guesses = model.advance(xs, ys).predictions
        seconds += time.perf_counter() - begun
        if getattr(model, "n_refits", 0) > before:
            longest = max(longest, model.last_refit.seconds)
            if label in STEPS:  # refits are at the ends of chunks
                machine_of(model).history.t = STEPS[label]
        scores += [abs(p - y) if regression else 100.0 * (p == y) for p, y in zip(guesses, ys, strict=True)]
    half = len(pairs) // 2
    refits = getattr(model, "n_refits", 0)
    means = float(np.mean(scores)), float(np.mean(scores[half:]))
    return Run(name, len(pairs), label, seed, *means, seconds, refits, longest)


def stalls(sizes: Sequence[tuple[int, int]]) -> list[list[str]]:
    """CPU seconds of one refit of a model of so many features on so many records, of ten inputs."""
    rng = np.random.default_rng(1)
    rows = []
    for n, features in sizes:
        X = rng.normal(size=(n, 10))
        y = np.sin(X @ rng.normal(size=10)) + 0.3 * rng.normal(size=n)
        for kind, targets in ((KernelRegressor, y), (KernelClassifier, y > 0)):
            # Which grows at every step, up to all features.
            model = WindowRefit(kind(growth=DSG(), max_features=features, seed=1), window=n, every=n + 1)
            model.learn_many(X, targets.tolist())
            begun = time.process_time()
            model.refit()
            name = "squared" if kind is KernelRegressor else "softmax, two classes"
            rows.append([f"{n:,}", f"{features:,}", name, f"{time.process_time() - begun:.2f}"])
    return rows


def table_of(runs: Sequence[Run]) -> str:
    """Return the table of all runs."""
    groups: dict[tuple[str, str], list[Run]] = {}
    for one in runs:
        groups.setdefault((one.stream, one.model), []).append(one)
    rows = []
    for (stream, label), same in groups.items():
        digits = 2 if same[0].score > 10 else 4
        scores = [f"{np.mean([getattr(one, field) for one in same]):.{digits}f}" for field in ("score", "late_score")]
        seconds = f"{np.mean([one.seconds for one in same]):.1f}"
        longest = f"{max(one.longest for one in same):.1f}" if same[0].refits else ""
        rows.append([stream, f"{same[0].records:,}", label, *scores, same[0].refits or "", longest, seconds])
    head = ["stream", "records", "model", "score", "second half", "refits", "longest refit s", "seconds"]
    return table(head, rows)


def main() -> None:
    """Run what was asked for."""
    models = {"type": lambda text: text.split(";"), "help": "these only, separated by semicolons; all by default"}
    seeds_given = {"nargs": "*", "type": int, "default": SEEDS}
    given = asked(
        __doc__,
        quick="3,000 records and one seed of each",
        data=DATA,
        streams={**NAMES, "help": "these only, or `stalls`; all by default"},
        models=models,
        seeds=seeds_given,
    )
    kept = given.out / "window_refit.jsonl"
    lines = [json.loads(line) for line in kept.read_text().splitlines()] if kept.exists() else []
    stalled: list[list[str]] = next((line["stalls"] for line in lines if "stalls" in line), [])
    runs = [Run(**line) for line in lines if "stalls" not in line]
    for name, read in streams(given.data).items():
        if given.streams and name not in given.streams:
            continue
        offered = {**MODELS, **(SHORT if name in MOVING else {})}
        offered |= {label: refitted() for label in STEPS if name in STEPPED}
        chosen = {label: make for label, make in offered.items() if label in (given.models or offered)}
        seeds = given.seeds[:1] if given.quick else given.seeds
        runs = [one for one in runs if one.stream != name or one.model not in chosen or one.seed not in seeds]
        pairs = list(islice(read(), 3000 if given.quick else None))
        for label, make in chosen.items():
            for seed in seeds:
                runs.append(run(name, pairs, label, make, seed))
                print(runs[-1], flush=True)
    if not given.streams or "stalls" in given.streams:
        stalls(SIZES[:1])  # compiles
        stalled = stalls([(3000, 256)] if given.quick else SIZES)
    given.out.mkdir(parents=True, exist_ok=True)
    kept.write_text("".join(f"{json.dumps(one)}\n" for one in [*map(asdict, runs), {"stalls": stalled}]))
    publish(
        given,
        "window_refit",
        "WindowRefit against the model alone",
        f"Means of {len(SEEDS)} seeds, the longest refit of all.",
        "Progressive scores: accuracy in per cent, of california_housing and fried the mean absolute error. All models "
        f"have max_features={MAX_FEATURES}; window=50,000 and every=10,000 but where it says so. All streams but Elec2 "
        "and the moving squares are in random order. Seconds are those of prediction and learning, refits included, by "
        "the clock, with one thread, on a machine that had other work too.",
        table_of(runs),
        "One refit by the default solver, of ten inputs, in seconds of the processor:",
        table(["records", "features", "loss", "stall s"], stalled),
    )


if __name__ == "__main__":
    main()
