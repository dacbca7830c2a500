"""A daemon that learns from a topic: its configuration, what it predicted, and its end."""

from __future__ import annotations

import random
import signal
import threading
from typing import Any

from tests.daemon.conftest import Home, Running
from tests.processes import wait_until


def rings(count: int, seed: int = 0) -> list[dict[str, Any]]:
    """Two rings, as records with a number."""
    draw = random.Random(seed)
    points = [(draw.gauss(0, 1), draw.gauss(0, 1)) for _ in range(count)]
    return [{"id": number, "a": a, "b": b, "y": str(a * a + b * b < 1.2)} for number, (a, b) in enumerate(points)]


def section(servers: str, topic: str, **settings: Any) -> dict[str, Any]:
    """Return the section of a configuration that reads a topic, or writes to it."""
    return {"kind": "kafka", "topic": topic, "bootstrap_servers": servers, **settings}


def configure(where: Home, servers: str, topic: str, **source: Any) -> None:
    where.configure(
        source=section(servers, topic, target="y", **source),
        model=[
            {"river.compose.Discard": {"args": ["id"]}},
            {"streamkernel.KernelClassifier": {"seed": 1, "max_features": 128}},
        ],
        # Lines are on the disk with the next checkpoint.
        checkpoint={"directory": "out/state", "every_records": 500, "every_seconds": 0.3},
    )


def predicted(where: Home) -> list[tuple[int, int]]:
    """Partition and offset of each prediction, in order."""
    return [
        (line["position"]["partition"], line["position"]["offset"]) for line in where.lines("out/predictions.jsonl")
    ]


def learned(where: Home, count: int) -> None:
    """Wait until so many predictions stand in the file."""
    path = where.folder / "out/predictions.jsonl"
    wait_until(lambda: path.exists() and path.read_bytes().count(b"\n") >= count)


def stop(running: Running) -> str:
    """End a daemon by SIGTERM, within the ten seconds it may take, and return what it logged."""
    running.signal(signal.SIGTERM)
    last = threading.Timer(10, running.signal, [signal.SIGKILL])
    last.start()
    try:
        ended = running.wait()
    finally:
        last.cancel()
    assert ended.returncode == 0, f"it had to be killed:\n{ended.stderr}"
    return ended.stderr
