"""First use: what a fresh install waits for while its code is compiled, record by record, and what it does when warm.

`python -m benchmarks.first_use` starts each model in a process of its own, several times with an empty folder of
compiled code and once more with it filled. `--start` prints the last part alone: the start of the daemon.
"""

import json
import math
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.command import asked
from benchmarks.processes import resident, running
from benchmarks.report import load, publish, table
from streamkernel.compute.levels import LEVEL

MODELS = "AdaptiveKernelClassifier", "AdaptiveKernelRegressor", "KernelClassifier", "KernelRegressor"
RECORDS = 2_000
INPUTS = 8
#: A record that takes longer, in seconds, has waited for something to be compiled.
WAIT = 0.1
#: What is not to be exceeded, in seconds: the first record, each later wait, all together.
FIRST, LATER, TOGETHER = 8.0, 3.0, 12.0
#: What the daemon may take more than the import of River and numba: seconds to its first line, and MB.
MORE_SECONDS, MORE_MEMORY = 0.5, 60
_IMPORT = "import river, numba; print(open('/proc/self/statm').read().split()[1])"
_CONFIG = """
source: {kind: jsonl, path: in.jsonl, target: label, target_type: bool, follow: true}
model: [streamkernel.AdaptiveKernelClassifier: {seed: 1}]
predictions: {kind: jsonl, path: out.jsonl, flush_seconds: 1.0e-6}
dead_letters: {kind: none}
checkpoint: {directory: state}
metrics: {port: 0}
"""
_NATIVE = {"STREAMKERNEL_CPU": "native"}


def stream(name: str, n: int) -> list[tuple[dict[str, float], Any]]:
    """Records of numbers with a class or a number each."""
    rng = random.Random(1)
    xs = [{f"x{j}": rng.gauss(0, 1) for j in range(INPUTS)} for _ in range(n)]
    ys = [math.sin(x["x0"]) + x["x1"] * x["x2"] + rng.gauss(0, 0.1) for x in xs]
    return [(x, y > 0 if name.endswith("Classifier") else y) for x, y in zip(xs, ys, strict=True)]


def first_records(name: str, n: int) -> dict[str, Any]:
    """Predict and learn one by one: seconds to import, every wait, and microseconds of a later record."""
    records = stream(name, n)
    started = time.perf_counter()
    import streamkernel

    imported = time.perf_counter() - started
    model = getattr(streamkernel, name)(seed=1)
    waits, later = [], []
    for i, (x, y) in enumerate(records):
        started, worked = time.perf_counter(), time.process_time()
        model.predict_one(x)
        model.learn_one(x, y)
        took = time.perf_counter() - started
        if took > WAIT or not i:
            waits.append((i, took, time.process_time() - worked))
        elif i >= n // 2:
            later.append(1e6 * took)
    return {"import": imported, "waits": waits, "later": statistics.median(later)}


def measured(name: str, n: int, folder: str, **environment: str) -> dict[str, Any]:
    """The same in a process of its own, with compiled code in a folder."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.first_use", "--model", name, "--records", str(n)],
        env={**os.environ, "NUMBA_CACHE_DIR": folder, **environment},
        check=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def cold_and_warm(name: str, n: int, caches: int, **environment: str) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """What fresh folders wait for, and a process that finds the last of them filled."""
    cold = []
    for _ in range(caches):
        with tempfile.TemporaryDirectory() as folder:
            cold.append(measured(name, n, folder, **environment))
            warm = measured(name, n, folder, **environment)
    return cold, warm


def level_and_native(name: str, n: int, rounds: int) -> list[float]:
    """Microseconds of a warm record by the code of a level and by native code, in turn: medians of processes."""
    kinds: tuple[dict[str, str], ...] = ({}, _NATIVE)
    with tempfile.TemporaryDirectory() as folder:
        later: list[list[float]] = [[], []]
        for turn in range(rounds + 1):
            for kind, found in zip(kinds, later, strict=True):
                took = measured(name, n, folder, **kind)["later"]
                if turn:  # the first one compiles
                    found.append(took)
    return [statistics.median(found) for found in later]


def summary(name: str, cold: list[dict[str, Any]], warm: dict[str, Any]) -> list[str]:
    """Medians over the folders, in seconds of the clock and of the processor."""
    found = []
    for clock in (1, 2):
        seconds = [[wait[clock] for wait in run["waits"]] for run in cold]
        found.append(
            [
                statistics.median(run[0] for run in seconds),
                statistics.median(max(run[1:], default=0.0) for run in seconds),
                statistics.median(sum(run) for run in seconds),
            ]
        )
    cells = [f"{clock:.1f} ({processor:.1f})" for clock, processor in zip(*found, strict=True)]
    return [name, *cells, f"{sum(wait[1] for wait in warm['waits']):.2f}", f"{warm['later']:.0f}"]


def waits(name: str, cold: list[dict[str, Any]]) -> list[list[str]]:
    """Every wait of the folders, by its record."""
    places = sorted({wait[0] for run in cold for wait in run["waits"]})
    seconds = {i: [wait[1:] for run in cold for wait in run["waits"] if wait[0] == i] for i in places}
    return [
        [name, str(i + 1), *(f"{statistics.median(each):.1f}" for each in zip(*took, strict=True)), str(len(took))]
        for i, took in seconds.items()
    ]


def for_this_processor(n: int, rounds: int) -> str:
    """Return the table of native code."""
    took = {name: level_and_native(name, n, rounds) for name in MODELS}
    rows = [[name, f"{own:.0f}", f"{other:.0f}", f"{other / own:.2f}"] for name, (own, other) in took.items()]
    return table(["model", "a record, warm, us", "native", "ratio"], rows)


def imported() -> tuple[float, float]:
    """Return the seconds of a process that imports River and numba, and its MB."""
    begun = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", _IMPORT], check=True, stdout=subprocess.PIPE, text=True)
    return time.perf_counter() - begun, int(done.stdout) * os.sysconf("SC_PAGE_SIZE") / 1e6


def begun_daemon() -> tuple[float, float]:
    """Return the seconds from the start of the daemon to the line of its first record, and its MB then."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        record = {f"x{j}": 0.5 for j in range(INPUTS)} | {"label": True}
        (folder / "in.jsonl").write_text(json.dumps(record) + "\n")
        output = folder / "out.jsonl"
        begun = time.perf_counter()
        with running(folder, "run", config=_CONFIG) as program:
            while not output.exists() or not output.stat().st_size:
                if not program.alive:
                    raise SystemExit(program.log)
                time.sleep(0.002)
            return time.perf_counter() - begun, resident(program.pid)


def started(runs: int) -> str:
    """Return the table of the start of the daemon against the import of River and numba, in turns."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # an install has its modules compiled
    kinds = {"`import river, numba`": imported, "`streamkernel run`, to its first line": begun_daemon}
    found: dict[str, list[tuple[float, float]]] = {what: [] for what in kinds}
    for turn in range(runs + 1):
        for what, measure in kinds.items():
            took = measure()
            if turn:  # the first one fills the caches
                found[what].append(took)
    medians = [[statistics.median(each) for each in zip(*took, strict=True)] for took in found.values()]
    (base, base_memory), (own, own_memory) = medians
    rows = [[what, f"{took:.2f}", f"{memory:.0f}"] for what, (took, memory) in zip(kinds, medians, strict=True)]
    more = ["more", f"{own - base:.2f}", f"{own_memory - base_memory:.0f}"]
    aims = ["the aim: at most", f"{MORE_SECONDS:.2f}", f"{MORE_MEMORY}"]
    return table(["process", "seconds", "MB resident"], [*rows, more, aims])


def main() -> None:
    model = {"help": "measure one, and print JSON"}
    native = {"action": "store_true", "help": "print the table of native code alone"}
    start = {"action": "store_true", "help": "print the table of the daemon's start alone"}
    options = asked(__doc__, threads=None, records=RECORDS, caches=3, starts=5, model=model, native=native, start=start)
    n, caches = options.records, options.caches
    if options.model:
        json.dump(first_records(options.model, n), sys.stdout)
        return
    if options.native:
        print(for_this_processor(n, caches))
        return
    if options.start:
        print(started(options.starts))
        return
    found = {name: cold_and_warm(name, n, caches) for name in MODELS}
    imported = statistics.median(run["import"] for cold, _ in found.values() for run in cold)
    header = ["model", "first record", "longest later wait", "all waits", "all waits, warm", "a record, warm, us"]
    publish(
        options,
        "first_use",
        "First use",
        f"{load()} (what else ran is in all seconds of the clock). Seconds, of the clock and (of the processor), that "
        f"the first {n:,} records wait for code to be compiled: `predict_one`, then `learn_one`, with default "
        f"arguments. Medians of {caches} processes that began with no compiled code; warm is one that finds it. "
        f"Importing takes {imported:.1f} s more. The aim: the first record within {FIRST:g} s, a later wait within "
        f"{LATER:g} s, all within {TOGETHER:g} s.",
        table(header, [summary(name, *both) for name, both in found.items()]),
        f"Each wait of more than {WAIT:g} s, and the first record.",
        table(
            ["model", "record", "seconds", "of the processor", f"processes of {caches}"],
            [row for name, (cold, _) in found.items() for row in waits(name, cold)],
        ),
        "## For this processor alone",
        f"By default code is compiled for a level of x86-64 (here {LEVEL}), so that it is found on every processor of "
        "that level. With `STREAMKERNEL_CPU=native` it is compiled for all that this processor has. Medians of "
        f"{caches} processes of either in turn.",
        for_this_processor(n, caches),
        "## The start of the daemon",
        f"Seconds from the start of a process and resident memory at the end, medians of {options.starts} in turns.",
        started(options.starts),
    )


if __name__ == "__main__":
    main()
