"""What being watched costs a daemon that learns: metrics, the status page, scrapes and connections that do harm.

    python -m benchmarks.monitoring [--records N] [--runs N] [--scrapes N] [--out DIR] [--quick]

Cost and connections: runs of the growing machine in one process, with and without, in turns, so that a machine whose
speed drifts treats all alike; each ratio is of two runs of one turn. Scrapes: `streamkernel run` while it learns, asked
over a new connection each time. All clients are processes of their own, on loopback.
"""

import argparse
import contextlib
import json
import math
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

# NumPy reads these when it is imported, here and in the processes started from here.
os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"))

import yaml

from benchmarks.daemon import FEATURES, make_streams
from benchmarks.report import machine, table, write
from streamkernel.daemon.lifecycle import LifecycleListener
from streamkernel.daemon.runtime import run
from streamkernel.daemon.wiring.plan import prepare

GROWING = [{"streamkernel.KernelClassifier": {"max_features": FEATURES, "precondition": False, "seed": 1}}]
ADAPTIVE = [{"streamkernel.AdaptiveKernelClassifier": {"seed": 1}}]
RIVER = ["river.preprocessing.StandardScaler", "river.linear_model.LogisticRegression"]
LEARNING: dict[str, dict[str, Any]] = {
    "growing": {"model": GROWING},
    "adaptive": {"model": ADAPTIVE},
    "several models": {"models": {"growing": GROWING, "adaptive": ADAPTIVE, "linear": RIVER}, "publish": "growing"},
}
STATUS = "/api/status"
CLIENTS = 1000
OVER = 100
SCRAPED = ["--path", "/metrics", "--every", "1"]
HARM = ["--half-open", str((CLIENTS + OVER) // 2), "--slow", str((CLIENTS + OVER) // 2)]


class Variant(NamedTuple):
    """A way to be watched: the section of the metrics, and the clients, each as arguments of `monitoring_load`."""

    metrics: dict[str, Any] | None
    clients: Sequence[Sequence[str]] = ()


POLLED = ["--path", STATUS, "--every", "2"]
COST = {
    "no metrics": Variant(None),
    "scraped every second": Variant({"port": 0}, [SCRAPED]),
    "scraped every second, and a page that polls": Variant({"port": 0}, [SCRAPED, POLLED]),
}
CONNECTIONS = {
    "no clients": Variant({"port": 0}),
    "`max_connections: 64`": Variant({"port": 0}, [HARM]),
    f"`max_connections: {CLIENTS}`": Variant({"port": 0, "max_connections": CLIENTS}, [HARM]),
}


class Rate(NamedTuple):
    """Records a second of a run, by the clock and by the processor's time of all its threads."""

    wall: float
    cpu: float


class Clients(LifecycleListener):
    """Starts clients when the metrics are served, and the clocks when records are read.

    Attributes
    ----------
    began
        The process's time when records were read first.

    """

    def __init__(self, clients: Sequence[Sequence[str]]) -> None:
        self._clients = clients
        self._processes: list[subprocess.Popen[str]] = []
        self.began = math.nan

    def serving(self, host: str, port: int) -> None:  # noqa: ARG002
        self._processes = [start_client(port, one) for one in self._clients]

    def reading(self, record: int) -> None:  # noqa: ARG002
        self.began = time.process_time()

    def stop(self) -> list[dict[str, Any]]:
        """End the clients, and return what each saw."""
        return [json.loads(process.communicate()[0]) for process in self._processes]


def seen_by(client: "subprocess.Popen[str]") -> dict[str, Any]:
    """Wait for a client to end by itself, and return what it saw."""
    assert client.stdout is not None
    seen: dict[str, Any] = json.loads(client.stdout.read())
    client.communicate()
    return seen


def start_client(port: int | str, arguments: Sequence[str]) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "benchmarks.monitoring_load", str(port), *arguments]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def configure(folder: Path, learning: Mapping[str, Any], metrics: Mapping[str, Any] | None) -> Path:
    path = folder / "config.yaml"
    document = {
        "source": {"kind": "jsonl", "path": f"{folder}/stream.jsonl", "target": "label", "target_type": "bool"},
        **learning,
        "predictions": {"kind": "jsonl", "path": f"{folder}/predictions.jsonl"},
        "dead_letters": {"kind": "jsonl", "path": f"{folder}/dead-letters.jsonl"},
        "checkpoint": {"directory": f"{folder}/state"},
        **({} if metrics is None else {"metrics": dict(metrics)}),
    }
    path.write_text(yaml.safe_dump(document))
    return path


def rate_of(folder: Path, variant: Variant, n_records: int) -> tuple[Rate, list[dict[str, Any]]]:
    """Return the rate of a run in this process, without its start, and what the clients saw."""
    plan = prepare(configure(folder, LEARNING["growing"], variant.metrics))
    clients = Clients(variant.clients)
    view = run(plan, fresh=True, max_records=n_records, listener=clients)
    cpu = time.process_time() - clients.began
    seen = clients.stop()
    assert view.taken == n_records, "the stream is too short"
    return Rate(view.rate, n_records / cpu), seen


class Turns(NamedTuple):
    """Runs of all variants, in turns: their rates, and what their clients saw."""

    rates: dict[str, list[Rate]]
    seen: dict[str, list[dict[str, Any]]]


def in_turns(folder: Path, variants: Mapping[str, Variant], n_records: int, runs: int) -> Turns:
    """Run all variants so often; every other turn from the last to the first."""
    turns = Turns({name: [] for name in variants}, {name: [] for name in variants})
    for number in range(runs):
        for name in list(variants)[:: -1 if number % 2 else 1]:
            rate, seen = rate_of(folder, variants[name], n_records)
            turns.rates[name].append(rate)
            turns.seen[name] += seen
    return turns


def interval(values: Sequence[float]) -> tuple[float, float]:
    """The interval of the median by the signs: at least 95% of samples have the median between these, if so many are.

    >>> interval(list(range(1, 21)))
    (6, 15)
    """
    ordered, n = sorted(values), len(values)
    below, beyond = 0, 0.5**n
    while below + 1 < n / 2 and beyond + math.comb(n, below + 1) * 0.5**n <= 0.025:
        below += 1
        beyond += math.comb(n, below) * 0.5**n
    return ordered[below], ordered[n - 1 - below]


def compared(turns: Turns) -> str:
    """Return the table of the rates, and of their ratios to those of the first variant in the same turn."""
    first, *others = turns.rates
    header = ["what", "records/s", "a second of CPU", "ratio by the clock", "ratio by the processor"]
    rows = [[first, *medians(turns.rates[first]), "1", "1"]]
    for name in others:
        pairs = list(zip(turns.rates[name], turns.rates[first], strict=True))
        ratios = [[one[which] / base[which] for one, base in pairs] for which in (0, 1)]
        rows.append([name, *medians(turns.rates[name]), *map(with_interval, ratios)])
    return table(header, rows)


def medians(rates: Sequence[Rate]) -> list[str]:
    columns = [[rate[which] for rate in rates] for which in (0, 1)]
    return [f"{statistics.median(one):,.0f} ({min(one):,.0f} to {max(one):,.0f})" for one in columns]


def with_interval(ratios: Sequence[float]) -> str:
    low, high = interval(ratios)
    return f"{statistics.median(ratios):.3f} ({low:.3f} to {high:.3f})"


def milliseconds(seconds: Sequence[float]) -> list[str]:
    """How many there are; median, 99th percentile and longest, in milliseconds."""
    if not seconds:
        return ["0", "", "", ""]
    ordered = sorted(1000 * one for one in seconds)
    at_99 = ordered[min(len(ordered) - 1, int(0.99 * len(ordered)))]
    return [f"{len(ordered):,}", *(f"{one:.1f}" for one in (statistics.median(ordered), at_99, ordered[-1]))]


@contextlib.contextmanager
def learning(config: Path) -> Iterator[int]:
    """Run a daemon in a process of its own, which learns as long as this lasts; gives the port of its metrics."""
    command = [sys.executable, "-m", "streamkernel", "run", str(config), "--fresh"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        log = ""
        while "reading jsonl" not in log:
            line = process.stderr.readline()
            assert line, f"the daemon failed: {log}"
            log += line
        threading.Thread(target=process.stderr.read, daemon=True).start()  # so that it never waits for us
        found = re.search(r"serving metrics at http://127\.0\.0\.1:(\d+)/", log)
        assert found is not None
        yield int(found[1])
        assert process.poll() is None, "the stream was too short: it was learnt to its end before the scrapes were made"
    finally:
        process.terminate()
        process.wait()


def scrapes_of(folder: Path, name: str, n_scrapes: int, path: str) -> list[float]:
    """Return the seconds of scrapes of a daemon that learns."""
    every = 0.1
    arguments = ["--path", path, "--every", str(every), "--count", str(n_scrapes)]
    with learning(configure(folder, LEARNING[name], {"port": 0})) as port:
        seen = seen_by(start_client(port, arguments))
    took = seen["took"]
    assert not took.get("failed"), f"{len(took['failed'])} scrapes were not answered"
    answered: list[float] = took["answered"]
    return answered


def refusals(turns: Turns) -> str:
    """Return the table of what the clients of each variant saw."""
    rows = []
    for name, seen in turns.seen.items():
        if not seen:
            continue
        refused = [seconds for one in seen for seconds in one["took"].get("refused", [])]
        rows.append([name, f"{statistics.median(one['most'] for one in seen):,.0f}", *milliseconds(refused)])
    return table(["what", "connections held", "refusals read", "median, ms", "99%, ms", "longest, ms"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=300_000, help="of a run")
    parser.add_argument("--runs", type=int, default=20, help="of each variant")
    parser.add_argument("--scrapes", type=int, default=400, help="of each kind of model")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument("--quick", action="store_true", help="few records and scrapes, to see that it works")
    options = parser.parse_args()
    if options.quick:
        options.records, options.runs, options.scrapes = 20_000, 1, 5
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_streams(folder, options.records)
        rate_of(folder, COST["no metrics"], min(5000, options.records))  # fills the caches
        cost = in_turns(folder, COST, options.records, options.runs)
        attacked = in_turns(folder, CONNECTIONS, options.records, options.runs)
        lengthen(folder / "stream.jsonl", 5 + options.scrapes // 20 * 2)
        asked = [
            [name, what, *milliseconds(scrapes_of(folder, name, options.scrapes, path))]
            for name in LEARNING
            for what, path in (("metrics", "/metrics"), ("page", STATUS))
        ]
    write(
        options.out / "monitoring.md",
        "\n\n".join(
            [
                "# What being watched costs",
                f"`python -m benchmarks.monitoring` on {machine()}, {os.cpu_count()} processors, load average "
                f"{os.getloadavg()[0]:.1f} at the end; `KernelClassifier(max_features={FEATURES}, "
                "precondition=False)` where nothing else is said, records of 8 numbers, predictions, dead letters and "
                "checkpoints on.",
                "## Cost",
                f"Runs of {options.records:,} records, without the start of the process, {options.runs} of each in "
                "turns. Rates: median (lowest to highest). Ratios to the run without metrics of the same turn: median, "
                "and the interval that holds it at 95% by the signs.",
                compared(cost),
                "## Scrapes",
                "From before the connection is made to the last byte, a new connection each, from another process, "
                "while the daemon learns as fast as it can.",
                table(["model", "what", "asked", "median, ms", "99%, ms", "longest, ms"], asked),
                "## Connections",
                f"{CLIENTS + OVER:,} clients at once, half of which send nothing, and half a byte a second; those that "
                "were refused, and those whose time is up, come again after about 5 s. Ratios to the run without "
                "clients of the same turn.",
                compared(attacked),
                refusals(attacked),
            ]
        ),
    )


def lengthen(stream: Path, times: int) -> None:
    """Repeat the records of a stream."""
    records = stream.read_bytes()
    with stream.open("ab") as more:
        for _ in range(times - 1):
            more.write(records)


if __name__ == "__main__":
    main()
