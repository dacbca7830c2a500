"""What being watched costs a daemon that learns: metrics, the status page, scrapes and connections that do harm.

    python -m benchmarks.monitoring [--turns N] [--seconds N] [--scrapes N] [--out DIR] [--quick]

Cost and connections: a daemon of each kind, one of which runs at a time, for some seconds, while the others are stopped
with their servers and clients; each ratio is of two daemons in one turn. Scrapes: a daemon that learns, asked over a
new connection each time. All clients are processes of their own, on loopback.
"""

import argparse
import contextlib
import json
import math
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

# NumPy reads these when it is imported, here and in the processes started from here.
os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"))

from benchmarks.daemon import FEATURES, make_streams
from benchmarks.report import machine, table, write
from benchmarks.watched_daemon import Reading, WatchedDaemon, start_client

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
_MOST_RECORDS_A_SECOND = 120_000
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
    """Records a second of a daemon, by the clock and by the processor's time of all its threads."""

    wall: float
    cpu: float


def configure(folder: Path, stream: Path, learning: Mapping[str, Any], metrics: Mapping[str, Any] | None) -> Any:
    """Return the document of a configuration whose files are in a folder."""
    return {
        "source": {"kind": "jsonl", "path": str(stream), "target": "label", "target_type": "bool"},
        **learning,
        "predictions": {"kind": "jsonl", "path": f"{folder}/predictions.jsonl"},
        "dead_letters": {"kind": "jsonl", "path": f"{folder}/dead-letters.jsonl"},
        "checkpoint": {"directory": f"{folder}/state"},
        **({} if metrics is None else {"metrics": dict(metrics)}),
    }


class Turns(NamedTuple):
    """Turns of all variants: their rates, and the share of a processor that the server takes."""

    rates: dict[str, list[Rate]]
    server: dict[str, list[float]]


def in_turns(folder: Path, stream: Path, variants: Mapping[str, Variant], plan: "Plan") -> Turns:
    """Let a daemon of each variant have so many turns; every other time from the last to the first."""
    with stream.open("rb") as lines:
        size = stream.stat().st_size / sum(1 for _ in lines)
    turns = Turns({name: [] for name in variants}, {name: [] for name in variants})
    with contextlib.ExitStack() as stack:
        daemons = {}
        for number, (name, variant) in enumerate(variants.items()):
            home = folder / str(number)
            document = configure(home, stream, LEARNING["growing"], variant.metrics)
            daemons[name] = stack.enter_context(WatchedDaemon(home, document, variant.clients))
            time.sleep(plan.warm_seconds)  # until it has grown and its clients are there
            daemons[name].pause()
        for number in range(plan.turns):
            for name in list(daemons)[:: -1 if number % 2 else 1]:
                before, after = turn(daemons[name], plan)
                n_records = (after.read - before.read) / size
                rate = Rate(n_records / (after.at - before.at), n_records / (after.cpu - before.cpu))
                turns.rates[name].append(rate)
                turns.server[name].append((after.server_cpu - before.server_cpu) / (after.at - before.at))
    return turns


class Plan(NamedTuple):
    """How many turns there are, and their seconds: to settle after the pause, and to measure."""

    turns: int
    seconds: float
    settle_seconds: float = 1.5
    warm_seconds: float = 6.0


def turn(daemon: WatchedDaemon, plan: Plan) -> tuple[Reading, Reading]:
    """Let a daemon run for a while, and return how far it was before and after."""
    daemon.go_on()
    time.sleep(plan.settle_seconds)
    before = daemon.read()
    time.sleep(plan.seconds)
    after = daemon.read()
    daemon.pause()
    return before, after


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
    header = ["what", "records/s", "a second of CPU", "ratio by the clock", "ratio by the processor", "server's CPU"]
    rows = [[first, *medians(turns.rates[first]), "1", "1", percent(turns.server[first])]]
    for name in others:
        pairs = list(zip(turns.rates[name], turns.rates[first], strict=True))
        ratios = [[one[which] / base[which] for one, base in pairs] for which in (0, 1)]
        rows.append([name, *medians(turns.rates[name]), *map(with_interval, ratios), percent(turns.server[name])])
    return table(header, rows)


def percent(shares: Sequence[float]) -> str:
    return f"{100 * statistics.median(shares):.0f}%"


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


def seen_by(client: "subprocess.Popen[str]") -> dict[str, Any]:
    """Wait for a client to end by itself, and return what it saw."""
    assert client.stdout is not None
    seen: dict[str, Any] = json.loads(client.stdout.read())
    client.communicate()
    return seen


def scrapes_of(folder: Path, stream: Path, name: str, n_scrapes: int, path: str) -> list[float]:
    """Return the seconds of scrapes of a daemon that learns."""
    arguments = ["--path", path, "--every", "0.1", "--count", str(n_scrapes)]
    with WatchedDaemon(folder, configure(folder, stream, LEARNING[name], {"port": 0})) as daemon:
        daemon.wait_for_answers()
        assert daemon.port is not None
        seen = seen_by(start_client(daemon.port, arguments))
        daemon.read()  # which fails where it has ended
    took = seen["took"]
    assert not took.get("failed"), f"{len(took['failed'])} scrapes were not answered"
    answered: list[float] = took["answered"]
    return answered


def refusals(folder: Path, stream: Path, seconds: float) -> str:
    """Return the table of what clients that do harm see of a daemon that learns without a pause."""
    rows = []
    for number, (name, variant) in enumerate(CONNECTIONS.items()):
        if not variant.clients:
            continue
        home = folder / str(number)
        document = configure(home, stream, LEARNING["growing"], variant.metrics)
        with WatchedDaemon(home, document, variant.clients) as daemon:
            time.sleep(seconds)
            daemon.read()
            seen = daemon.seen()
        refused = [one for client in seen for one in client["took"].get("refused", [])]
        rows.append([name, f"{max(client['most'] for client in seen):,}", *milliseconds(refused)])
    return table(["what", "connections held", "refusals read", "median, ms", "99%, ms", "longest, ms"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=30, help="of each variant")
    parser.add_argument("--seconds", type=float, default=3.0, help="that are measured of a turn")
    parser.add_argument("--scrapes", type=int, default=400, help="of each kind of model")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument("--quick", action="store_true", help="few turns and scrapes, to see that it works")
    options = parser.parse_args()
    plan = Plan(options.turns, options.seconds)
    if options.quick:
        plan, options.scrapes = Plan(2, 1.0, 0.5, 3.0), 5
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_streams(folder, 100_000)
        stream = folder / "stream.jsonl"
        seconds = plan.warm_seconds + plan.turns * (plan.seconds + plan.settle_seconds) + 10
        lengthen(stream, math.ceil(max(seconds, 5 + options.scrapes / 5) * _MOST_RECORDS_A_SECOND / 100_000))
        cost = in_turns(folder / "cost", stream, COST, plan)
        attacked = in_turns(folder / "connections", stream, CONNECTIONS, plan)
        refused = refusals(folder / "refusals", stream, plan.warm_seconds + 5 * plan.seconds)
        asked = [
            [name, what, *milliseconds(scrapes_of(folder / name, stream, name, options.scrapes, path))]
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
                f"{plan.turns} turns of {plan.seconds:g} s of each daemon, of which one runs at a time. Rates: median "
                "(lowest to highest). Ratios to the daemon without metrics in the same turn: median, and the interval "
                "that holds it at 95% by the signs. Server's CPU: what the process of the HTTP server takes of another "
                "processor.",
                compared(cost),
                "## Scrapes",
                "From before the connection is made to the last byte, a new connection each, from another process, "
                "while the daemon learns as fast as it can.",
                table(["model", "what", "asked", "median, ms", "99%, ms", "longest, ms"], asked),
                "## Connections",
                f"{CLIENTS + OVER:,} clients at once, half of which send nothing, and half a byte a second; those that "
                "were refused, and those whose time is up, come again after about 5 s. Turns and ratios as above, to "
                "the daemon without clients. Refusals: of a daemon that was not stopped in between.",
                compared(attacked),
                refused,
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
