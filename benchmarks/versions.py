"""Two versions of the project side by side: what one record costs in each, in runs that alternate.

    python -m benchmarks.versions --before DIR [--runs N] [--kafka] [--out DIR]

DIR is a checkout of the earlier version; this one is the later. Both are run by this interpreter, each part in a
process of its own with one thread for arithmetic. A ratio above 1 means that the later version takes more. With
`--kafka` (needs Java and Maven) also the source and the daemon on one broker.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

# NumPy reads these when it is imported, in the processes started from here.
os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"))

from benchmarks.daemon import KINDS, configure, make_streams
from benchmarks.report import machine, table, write
from benchmarks.rounds import over, spread

LEARNING = """
import json, time
import numpy as np
import streamkernel
rng = np.random.default_rng(0)
X = rng.normal(size=(12000, 20))
xs = [dict(zip("abcdefghijklmnopqrst", row)) for row in X.tolist()]
labels = (np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] > 0).tolist()
numbers = (np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2]).tolist()
found = {}
for name in ("KernelClassifier", "KernelRegressor", "AdaptiveKernelClassifier", "AdaptiveKernelRegressor"):
    ys = labels if name.endswith("Classifier") else numbers
    model = getattr(streamkernel, name)(seed=1)
    for x, y in zip(xs[:3000], ys[:3000]):
        model.learn_one(x, y)
    model.advance(xs[3000:4000], ys[3000:4000])
    start = time.process_time()
    for x, y in zip(xs[4000:8000], ys[4000:8000]):
        model.learn_one(x, y)
    middle = time.process_time()
    model.advance(xs[8000:], ys[8000:])
    found[name + ".learn_one"] = (middle - start) / 4000 * 1e6
    found[name + ".advance"] = (time.process_time() - middle) / 4000 * 1e6
print(json.dumps(found))
"""

KAFKA = """
import json, sys, tempfile
from pathlib import Path
from types import SimpleNamespace
from benchmarks import kafka
bootstrap, topic, output, n = *sys.argv[1:4], int(sys.argv[4])
found = {"Kafka: source": 1e6 / kafka.sourced(bootstrap, topic, n)}
for name, to in (("Kafka: daemon", None), ("Kafka: daemon, predictions to a topic", output)):
    with tempfile.TemporaryDirectory() as folder:
        run = kafka.daemon(SimpleNamespace(bootstrap=bootstrap), topic, n, to, Path(folder))
        found[name] = 1e6 / run.rate
print(json.dumps(found))
"""


def run(version: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run this interpreter on the packages of a checkout."""
    environment = {**os.environ, "PYTHONPATH": str(version)}
    return subprocess.run(
        [sys.executable, *arguments], cwd=version, env=environment, check=True, capture_output=True, text=True
    )


def learning(version: Path) -> dict[str, float]:
    """Microseconds of CPU a record by each estimator."""
    found: dict[str, float] = json.loads(run(version, "-c", LEARNING).stdout)
    return found


def daemon(version: Path, streams: Path, n_records: int) -> dict[str, float]:
    """Microseconds of CPU a record of a whole process, its start included."""
    found = {}
    for kind, name in KINDS.items():
        with tempfile.TemporaryDirectory() as folder:
            config = configure(Path(folder), kind)
            config.write_text(config.read_text().replace(f"{folder}/stream", f"{streams}/stream"))
            before = os.times()
            run(version, "-m", "streamkernel", "run", str(config))
            after = os.times()
        seconds = after.children_user + after.children_system - before.children_user - before.children_system
        found[f"daemon, {name}"] = seconds / n_records * 1e6
    return found


def kafka(version: Path, bootstrap: str, n_records: int) -> dict[str, float]:
    """Microseconds a record on a broker."""
    name = f"out-{version.name}"
    found: dict[str, float] = json.loads(run(version, "-c", KAFKA, bootstrap, "in", name, str(n_records)).stdout)
    return found


def alternate(versions: dict[str, Path], runs: int, measure: Callable[[Path], dict[str, float]]) -> list[list[str]]:
    """Measure both versions in every round, the first one first every other time; rows of the table."""
    costs: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for number in range(runs):
        for version in list(versions) if number % 2 == 0 else reversed(list(versions)):
            for what, cost in measure(versions[version]).items():
                costs[what][version].append(cost)
    return [
        [
            what,
            *(f"{statistics.median(of[version]):.2f}" for version in versions),
            spread(over(of["after"], of["before"])),
        ]
        for what, of in costs.items()
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", type=Path, required=True)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--records", type=int, default=300_000)
    parser.add_argument("--kafka", action="store_true")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    options = parser.parse_args()
    versions = {"before": options.before.resolve(), "after": Path.cwd()}
    n = options.records
    with tempfile.TemporaryDirectory() as folder:
        make_streams(Path(folder), n)
        rows = alternate(versions, options.runs, learning)
        rows += alternate(versions, options.runs, lambda version: daemon(version, Path(folder), n))
        if options.kafka:
            from benchmarks.kafka import records
            from tests.kafka.broker import Broker
            from tests.kafka.producing import produce

            with Broker(Path(folder) / "broker") as broker:
                broker.create_topic("in")
                produce(broker.bootstrap, "in", [json.dumps(record).encode() for record in records(n)])
                for version in versions.values():
                    broker.create_topic(f"out-{version.name}")
                rows += alternate(versions, options.runs, lambda version: kafka(version, broker.bootstrap, n))
    text = "\n\n".join(
        [
            "# Two versions side by side",
            f"`python -m benchmarks.versions --before DIR` on {machine()}; microseconds a record: of CPU, but on Kafka "
            f"of the wall clock; daemons over {n:,} records, their start included; medians of {options.runs} "
            "alternating runs, and the ratio of each round (lowest to highest).",
            table(["what", "before", "after", "after / before"], rows),
        ]
    )
    write(options.out / "versions.md", text)


if __name__ == "__main__":
    main()
