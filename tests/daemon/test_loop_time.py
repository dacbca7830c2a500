"""What the time of the loop goes into, and that the length of its chunks shows in nothing it leaves behind."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from streamkernel.connectors.ports import Position, Record
from streamkernel.daemon.assembly.plan import prepare
from streamkernel.daemon.base.counts import RecordCounts
from streamkernel.daemon.runtime import run
from streamkernel.daemon.stream import loop_time
from streamkernel.daemon.stream.loop import Loop
from streamkernel.daemon.stream.loop_time import LoopTime
from streamkernel.daemon.stream.record_batch import RecordBatch
from tests.daemon.conftest import Home, write_stream


class Clock:
    """A clock that goes on only where a test lets it, and counts how often it is read."""

    def __init__(self) -> None:
        self.now = 0.0
        self.reads = 0

    def __call__(self) -> float:
        self.reads += 1
        return self.now

    def taking(self, seconds: float, result: Any = None) -> Callable[..., Any]:
        """Something to call that takes so long."""

        def call(*_: Any, **__: Any) -> Any:
            self.now += seconds
            return result() if callable(result) else result

        return call


def record() -> Record:
    place = Position("here", 0, 0)
    return Record({}, None, place, place, b"")


def loop_of(clock: Clock, chunks: Sequence[Sequence[Record]], **parts: Any) -> Loop:
    """A loop whose parts take as many seconds as powers of 2, so that a sum tells which were called."""
    left = list(chunks)
    feed = SimpleNamespace(poll=clock.taking(1, lambda: left.pop(0) if left else []), exhausted=True)
    sinks = SimpleNamespace(
        full=False, pause=lambda most: most, write=clock.taking(4), move=clock.taking(8), retry=clock.taking(16)
    )
    processor = SimpleNamespace(
        process=clock.taking(2, lambda: [RecordBatch()]),
        lines=lambda _: [],
        taken=0,
        counts=RecordCounts(),
        overrun=False,
        challengers=None,
    )
    checkpoints = SimpleNamespace(
        room=lambda _: None, save_start=clock.taking(32, True), save_when_due=clock.taking(64), save=clock.taking(128)
    )
    observer = SimpleNamespace(turn=clock.taking(0.25), chunk=clock.taking(0.5))
    given_ = {"feed": feed, "processor": processor, "sinks": sinks, "observer": observer, "checkpoints": checkpoints}
    return Loop(**{**given_, **parts}, positions={}, times=LoopTime(clock), watches_start=False)


class TestLoopTime:
    def test_each_second_counts_for_what_was_done_in_it(self) -> None:
        clock = Clock()
        loop = loop_of(clock, [[record()] * 3, [record()]])
        assert loop.run() == "exhausted"
        # Two chunks, and a third look at the source that finds its end.
        assert loop.times.seconds == {"source": 3, "model": 4, "sinks": 8, "checkpoints": 3 * 32 + 2 * 64}
        # What is shown of the loop is no time of any of these.
        assert clock.now == sum(loop.times.seconds.values()) + 3 * 0.25 + 2 * 0.5


GROWING: dict[str, Any] = {"streamkernel.KernelClassifier": {"seed": 1, "max_features": 128}}
MODELS = {
    "growing": GROWING,
    # A third class now and then is refused by the model itself, in the middle of a chunk.
    "two classes": {"streamkernel.KernelClassifier": {"seed": 1, "loss": {"streamkernel.losses.Log": {}}}},
    "adaptive": {"streamkernel.AdaptiveKernelClassifier": {"seed": 1, "n_features": 32}},
}


def write_json_stream(path: Path, records: int) -> None:
    """Write as JSON lines what `write_stream` writes as CSV, with faults only JSON can have."""
    draw = random.Random(5)
    lines = []
    for _ in range(records):
        a, b = draw.gauss(0, 1), draw.gauss(0, 1)
        x: dict[str, Any] = {"a": a, "b": b, "color": draw.choice(["red", "green", None]), "y": a * a + b * b < 1.2}
        kind = draw.random()
        if kind < 0.03:
            x["y"] = None
        elif kind < 0.06:
            x["a"] = float("nan")
        elif kind < 0.08:
            x["b"] = draw.choice([[1], float("inf"), "w" * 300])
        elif kind < 0.1:
            x["y"] = "perhaps"
        line = json.dumps(x)
        lines.append(draw.choice(["", "{", "[1]", "null"]) if kind > 0.98 else line)
    path.write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize(("kind", "model"), [("csv", "growing"), ("jsonl", "two classes"), ("jsonl", "adaptive")])
def test_the_length_of_the_chunks_changes_no_byte(
    home: Home, monkeypatch: pytest.MonkeyPatch, kind: str, model: str
) -> None:
    path = home.folder / f"stream.{kind}"
    (write_stream if kind == "csv" else write_json_stream)(path, 400)
    home.configure(source={"kind": kind, "path": str(path), "target": "y"}, model=[MODELS[model]])
    results, metrics = [], []
    for most in (1, 7, 512):
        monkeypatch.setattr(loop_time, "MOST_RECORDS", most)
        view = run(prepare(home.config), fresh=True)
        results.append((*home.result(), home.header()["source"]["recent_dead"]))
        metrics.append({**view.overall, **view.rolling, "loss": view.loss})
    assert results[1:] == results[:1] * 2
    assert metrics[1] == pytest.approx(metrics[0], rel=1e-12)
    assert metrics[2] == pytest.approx(metrics[0], rel=1e-12)
    assert home.header()["source"]["account"]["dead"] > 10
    assert "refused" in {letter["reason"] for letter in home.lines("out/dead.jsonl")} or model != "two classes"
