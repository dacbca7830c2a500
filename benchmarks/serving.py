"""Predictions over HTTP beside a run that learns: how long requests take, and how many a second can be answered.

    python -m benchmarks.serving [--seconds N] [--rate N] [--cores N] [--quick] [--out DIR]

`streamkernel run` learns without a pause, `streamkernel serve` answers from its checkpoints, and a client sends
requests of one record at fixed times, so that an answer that is late does not hold up the clock of the next. All three
share the same cores. Then the same with a journal: each request is a record with a key, acknowledged when it is
durable, and its label follows a second later; the run learns them from the journals, and at the end it must have
learned each of them once.
"""

import json
import os
import random
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from benchmarks.command import asked
from benchmarks.processes import cpu_seconds, running
from benchmarks.report import publish, table
from benchmarks.serving_load import Connections, Load, Request, ask, to_request
from streamkernel.daemon.checkpoints.file import read

CONNECTIONS = 32
CHECKPOINT_SECONDS = 5
KNOWN_ROWS, REPEATS = 20_000, 50
LABELS_A_REQUEST = 50
LABELS_AFTER = 1000  # records, where these are sent as fast as they are answered
WARM_UP_SECONDS = 2.0
MODEL = [{"streamkernel.AdaptiveKernelClassifier": {"seed": 1}}]
WANTED_MS = {False: 10, True: 50}


@dataclass(frozen=True)
class Measured:
    """What was measured in one phase."""

    load: Load  #: what the client saw of the requests of one record
    cores: Sequence[float]  #: of the run, the service and the client: processor seconds a second

    def cells(self) -> list[str]:
        """Return the cells of a table."""
        waits = [f"{self.load.percentile(share):.1f}" for share in (0.5, 0.99, 0.999, 1.0)]
        rate = len(self.load.waits) / self.load.seconds
        return [f"{rate:,.0f}", *waits, f"{len(self.load.failed):,}", *(f"{one:.2f}" for one in self.cores)]


def row(draw: random.Random) -> dict[str, Any]:
    """A record of six numbers and a category."""
    x: dict[str, Any] = {f"x{i}": round(draw.gauss(0, 1), 6) for i in range(6)}
    return {**x, "color": draw.choice(["red", "green", "blue"])}


def label(x: dict[str, Any]) -> str:
    return "yes" if x["x0"] * x["x1"] > 0 else "no"


def configure(folder: Path, journalled: bool) -> None:
    """Write the configuration of both processes, and what the run learns where it learns from a file."""
    source: dict[str, Any] = {"kind": "jsonl", "path": "stream.jsonl", "target": "y"}
    sections: dict[str, Any] = {}
    if journalled:
        source = {"kind": "journal", "directory": "records"}
        late = {"kind": "journal", "directory": "labels", "target": "y"}
        sections = {"labels": {"source": late, "key": "id"}}
    else:
        draw = random.Random(0)
        rows = [row(draw) for _ in range(KNOWN_ROWS)]
        text = "".join(json.dumps({**x, "y": label(x)}) + "\n" for x in rows)
        with (folder / "stream.jsonl").open("w") as file:
            file.writelines(text for _ in range(REPEATS))
    config = {
        "source": source,
        **sections,
        "model": MODEL,
        "predictions": {"kind": "none"},
        "dead_letters": {"kind": "none"},
        "checkpoint": {"directory": "state", "every_seconds": CHECKPOINT_SECONDS},
        "metrics": None,
        "serve": {"port": 0},
    }
    (folder / "config.yaml").write_text(yaml.safe_dump(config))


def learned(folder: Path) -> int:
    """Return how many records the run has learned, as its newest checkpoint says."""
    found = sorted((folder / "state").glob("checkpoint-*.skc"))
    return int(read(found[-1]).header["source"]["account"]["learned"]) if found else 0


class Client:
    """A client of one service, which sends records that no other request has.

    Parameters
    ----------
    port
        Of the service.
    journalled
        Whether each record has a key, and its label follows.
    process_ids
        Of the run and the service.

    """

    def __init__(self, port: int, journalled: bool, process_ids: Sequence[int]) -> None:
        self._connections = Connections(port, CONNECTIONS)
        self._journalled = journalled
        self._process_ids = (*process_ids, os.getpid())
        self._draw = random.Random(2)
        self.n_labels = 0

    def phase(self, rate: float | None, n_records: int) -> Measured:
        """Send so many records, one a request, and so many a second; None: each as soon as there is a connection."""
        load, labels = Load(202 if self._journalled else 200), Load(202)
        requests = self._requests(rate, n_records, load, labels)
        before = [cpu_seconds(one) for one in self._process_ids]
        began = time.perf_counter()
        ask(self._connections, requests)
        seconds = time.perf_counter() - began
        after = [cpu_seconds(one) for one in self._process_ids]
        if labels.failed:
            raise SystemExit(f"labels were answered with {labels.failed[0]!r}")
        measured = Measured(load, [(b - a) / seconds for a, b in zip(before, after, strict=True)])
        print(*measured.cells(), flush=True)
        return measured

    def _requests(self, rate: float | None, n_records: int, load: Load, labels: Load) -> list[Request]:
        """Return the requests in the order in which they are sent."""
        made: list[tuple[float, Request]] = []
        waiting: list[dict[str, Any]] = []
        for number in range(n_records):
            x = row(self._draw)
            at = number / (rate or LABELS_AFTER)
            if self._journalled:
                x["id"] = self.n_labels = self.n_labels + 1
                waiting.append({"id": x["id"], "y": label(x)})
            made.append((at, Request(at if rate else None, to_request("/predict", json.dumps(x).encode()), load)))
            if len(waiting) == LABELS_A_REQUEST or (waiting and number == n_records - 1):
                whole = to_request("/learn", json.dumps(waiting).encode())
                made.append((at + 1, Request(at + 1 if rate else None, whole, labels)))
                waiting = []
        return [one for _, one in sorted(made, key=lambda pair: pair[0])]

    def close(self) -> None:
        """Close the connections."""
        self._connections.close()


def measure(rate: float, seconds: float, journalled: bool) -> list[Measured]:
    """Measure in a new folder: at a fixed rate, then as much as is answered."""
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        configure(folder, journalled)
        run = stack.enter_context(running(folder, "run"))
        if not journalled:  # so that predictions come from a model that has learned
            wait_until_learned(folder, 1)
        service = stack.enter_context(running(folder, "serve"))
        port = int(service.wait_for(r"http://127\.0\.0\.1:(\d+)/predict"))
        service.wait_for("predicting with checkpoint")
        client = Client(port, journalled, (run.pid, service.pid))
        stack.callback(client.close)
        client.phase(rate, int(WARM_UP_SECONDS * rate))
        found = [client.phase(rate, int(seconds * rate)), client.phase(None, int(seconds * rate))]
        if not run.alive:
            raise SystemExit(f"the run has ended: {run.log[-500:]}")
        if journalled and (n_learned := wait_until_learned(folder, client.n_labels)) != client.n_labels:
            raise SystemExit(f"{n_learned:,} labels were learned, {client.n_labels:,} were acknowledged")
        return found


def wait_until_learned(folder: Path, n_records: int) -> int:
    """Wait for a checkpoint with at least `n_records` learned; return its number."""
    for _ in range(240):
        if (found := learned(folder)) >= n_records:
            return found
        time.sleep(0.5)
    raise SystemExit(f"{found:,} of {n_records:,} records were learned: {(folder / 'run.log').read_text()[-500:]}")


def main() -> None:
    note = {"default": "", "help": "What else the machine was doing."}
    options = asked(__doc__, quick="To see that it works, not how fast.", seconds=20.0, rate=1000.0, cores=2, note=note)
    seconds, rate = (1.0, 100.0) if options.quick else (options.seconds, options.rate)
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: options.cores])
    fixed, most = [], []
    for journalled in (False, True):
        name = "with a key, journalled" if journalled else "without a key"
        at_rate, unlimited = measure(rate, seconds, journalled)
        fixed.append([name, *at_rate.cells(), WANTED_MS[journalled]])
        most.append([name, *unlimited.cells()])
    head = ["requests of one record", "answered/s", "p50 ms", "p99 ms", "p99.9 ms", "longest ms", "failed"]
    head += ["cores: run", "cores: serve", "cores: client"]
    publish(
        options,
        "serving",
        "Predictions over HTTP",
        f"Requests of one record of seven columns over {CONNECTIONS} connections that stay open. The run "
        f"(`AdaptiveKernelClassifier`, a checkpoint every {CHECKPOINT_SECONDS} s, which the service takes over), the "
        f"service and the client share {options.cores} cores. In the first row the run reads a file as fast as it can, "
        "in the second what the service journals: each record, acknowledged when it is durable, and after a second its "
        f"label, {LABELS_A_REQUEST} in a request; at the end the run had learned each of them once. {options.note}",
        f"## {rate:,.0f} requests a second\n\nFor {seconds:g} s; a wait is counted from when its request was due, "
        "whenever it was sent.",
        table([*head, "p99 wanted, ms"], fixed),
        f"## As many as are answered\n\nEach of {seconds * rate:,.0f} requests is sent as soon as one of the "
        "connections is free.",
        table(head, most),
    )


if __name__ == "__main__":
    main()
