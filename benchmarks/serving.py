"""Predictions over HTTP beside a run that learns: requests a second and how long they take.

    python -m benchmarks.serving [--seconds N] [--rate N] [--cores N] [--out DIR]

`streamkernel run` learns labelled records from a file that is followed and grows all the time, `streamkernel serve`
answers from its checkpoints, and a client sends requests of one record at fixed times over connections that stay open,
so that an answer that is late does not hold up the clock of the next. All of them share the same cores. Then the same
with a journal: each request is a record with a key, acknowledged when it is durable, and the run reads them.
"""

import argparse
import asyncio
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from benchmarks.report import machine, table, write

CONNECTIONS = 16
ROWS_A_WRITE, WRITE_SECONDS = 100, 0.1
MODEL = [{"streamkernel.AdaptiveKernelClassifier": {"seed": 1}}]


@dataclass(frozen=True)
class Measured:
    """What a client saw: requests answered as they should be, those that were not, and the seconds of each."""

    seconds: float
    waits: list[float]
    n_failed: int

    def percentile(self, share: float) -> float:
        """Return so many of the waits are shorter, in milliseconds."""
        ordered = sorted(self.waits)
        return 1000 * ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def row(draw: random.Random) -> dict[str, Any]:
    """A record of six numbers and a category."""
    x: dict[str, Any] = {f"x{i}": round(draw.gauss(0, 1), 6) for i in range(6)}
    return {**x, "colour": draw.choice(["red", "green", "blue"])}


def label(x: dict[str, Any]) -> str:
    return "yes" if x["x0"] * x["x1"] > 0 else "no"


def configure(folder: Path, journalled: bool) -> None:
    """Write the configuration of both processes."""
    source: dict[str, Any] = {"kind": "jsonl", "path": "stream.jsonl", "target": "y", "follow": True}
    sections: dict[str, Any] = {}
    if journalled:
        source = {"kind": "journal", "directory": "records"}
        late = {"kind": "journal", "directory": "labels", "target": "y"}
        sections = {"labels": {"source": late, "key": "id"}}
    config = {
        "source": source,
        **sections,
        "model": MODEL,
        "predictions": {"kind": "none"},
        "dead_letters": {"kind": "none"},
        "checkpoint": {"directory": "state", "every_seconds": 5},
        "metrics": None,
        "serve": {"port": 0},
    }
    (folder / "config.yaml").write_text(yaml.safe_dump(config))


@contextmanager
def process(folder: Path, command: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a command of the program in a folder, and end it by a signal."""
    with (folder / f"{command}.log").open("wb") as log:
        arguments = [sys.executable, "-m", "streamkernel", command, "config.yaml"]
        started = subprocess.Popen(arguments, cwd=folder, stderr=log)
        try:
            yield started
        finally:
            started.send_signal(signal.SIGTERM)
            started.wait()


def wait_for(path: Path, pattern: str) -> re.Match[str]:
    """Wait until a log has a line, and return what it says."""
    for _ in range(6000):
        if path.exists() and (found := re.search(pattern, path.read_text())):
            return found
        time.sleep(0.05)
    raise SystemExit(f"{path}: no line has {pattern!r}: {path.read_text()[-500:]}")


async def grow(path: Path, stop: asyncio.Event) -> None:
    """Append labelled records, so that the run always has something to learn."""
    draw = random.Random(1)
    with path.open("ab") as file:
        while not stop.is_set():
            rows = (row(draw) for _ in range(ROWS_A_WRITE))
            file.write(b"".join(json.dumps({**x, "y": label(x)}).encode() + b"\n" for x in rows))
            file.flush()
            await asyncio.sleep(WRITE_SECONDS)


async def ask(port: int, rate: float, seconds: float, journalled: bool) -> Measured:
    """Send requests at fixed times; one that finds all connections busy waits, and its time counts."""
    draw = random.Random(2)
    free: asyncio.Queue[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = asyncio.Queue()
    for _ in range(CONNECTIONS):
        free.put_nowait(await asyncio.open_connection("127.0.0.1", port))
    waits: list[float] = []
    failed = 0
    wanted = b"HTTP/1.1 202" if journalled else b"HTTP/1.1 200"

    async def one(number: int, due: float) -> None:
        nonlocal failed
        body = json.dumps({**row(draw), **({"id": number} if journalled else {})}).encode()
        head = "POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        head += f"Content-Length: {len(body)}"
        reader, writer = await free.get()
        try:
            writer.write(head.encode() + b"\r\n\r\n" + body)
            answer = await reader.readuntil(b"\r\n\r\n")
            length = re.search(rb"content-length: (\d+)", answer.lower())
            await reader.readexactly(int(length[1]) if length else 0)
            failed += not answer.startswith(wanted)
            waits.append(time.perf_counter() - due)
            free.put_nowait((reader, writer))
        except (OSError, asyncio.IncompleteReadError):
            failed += 1
            free.put_nowait(await asyncio.open_connection("127.0.0.1", port))

    started = time.perf_counter()
    tasks = []
    for number in range(int(rate * seconds)):
        due = started + number / rate
        if (pause := due - time.perf_counter()) > 0:
            await asyncio.sleep(pause)
        tasks.append(asyncio.create_task(one(number, due)))
    await asyncio.gather(*tasks)
    elapsed = time.perf_counter() - started
    while not free.empty():
        free.get_nowait()[1].close()
    return Measured(elapsed, waits, failed)


async def load(folder: Path, port: int, rate: float, seconds: float, journalled: bool) -> Measured:
    """Ask, while the file of the run grows where it reads one; the first second is not measured."""
    stop = asyncio.Event()
    growing = None if journalled else asyncio.create_task(grow(folder / "stream.jsonl", stop))
    if not journalled:
        await ask(port, rate, 1, journalled)
    measured = await ask(port, rate, seconds, journalled)
    stop.set()
    if growing is not None:
        await growing
    return measured


def measure(rate: float, seconds: float, journalled: bool) -> Measured:
    """Measure once in a new folder."""
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        configure(folder, journalled)
        draw = random.Random(0)
        rows = [row(draw) for _ in range(2000)]
        (folder / "stream.jsonl").write_text("".join(json.dumps({**x, "y": label(x)}) + "\n" for x in rows))
        stack.enter_context(process(folder, "run"))
        stack.enter_context(process(folder, "serve"))
        wait_for(folder / "serve.log", "predicting with checkpoint [1-9]" if not journalled else "predicting with")
        port = int(wait_for(folder / "serve.log", r"http://127\.0\.0\.1:(\d+)/predict")[1])
        return asyncio.run(load(folder, port, rate, seconds, journalled))


def main() -> None:
    """Measure both, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--rate", type=float, default=1000)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--note", default="", help="What else the machine was doing.")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    options = parser.parse_args()
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: options.cores])
    rows = []
    for journalled in (False, True):
        found = measure(options.rate, options.seconds, journalled)
        rows.append(
            [
                "with a key, journalled" if journalled else "without a key",
                f"{len(found.waits) / found.seconds:,.0f}",
                *(f"{found.percentile(share):.1f}" for share in (0.5, 0.99, 0.999)),
                f"{found.n_failed:,}",
                "50" if journalled else "10",
            ]
        )
    head = ["requests of one record", "answered/s", "p50 ms", "p99 ms", "p99.9 ms", "failed", "p99 wanted, ms"]
    command = f"python -m benchmarks.serving --seconds {options.seconds:g} --rate {options.rate:g}"
    text = (
        f"# Predictions over HTTP\n\n`{command}` on {machine()}.\n\n"
        f"{options.rate:,.0f} requests a second are due, each of one record of seven columns, over {CONNECTIONS} "
        "connections that stay open. The run that learns, the service and the client share "
        f"{options.cores} cores; a wait is counted from when its request was due. In the second row the run predicts "
        f"and keeps what it reads from the journal, and learns nothing: no labels are sent. {options.note}\n\n"
        f"{table(head, rows)}\n"
    )
    write(options.out / "serving.md", text)


if __name__ == "__main__":
    main()
