"""What the time of the loop goes into, and that the length of its chunks shows in nothing it leaves behind."""

from __future__ import annotations

import gc
import json
import math
import random
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from river import linear_model

from streamkernel.connectors.ports import Position, Record
from streamkernel.daemon.assembly.plan import prepare
from streamkernel.daemon.base.counts import LabelCounts, RecordCounts
from streamkernel.daemon.labels.join import LabelJoin
from streamkernel.daemon.monitoring.exporter import Exporter
from streamkernel.daemon.monitoring.view import View
from streamkernel.daemon.runtime import run
from streamkernel.daemon.stream import batch_size
from streamkernel.daemon.stream.garbage import rare_collections
from streamkernel.daemon.stream.loop import Checkpoints, Loop
from streamkernel.daemon.stream.loop_time import ACTIVITIES, LoopTime
from streamkernel.daemon.stream.record_batch import LabelChunk, Labeled, RecordBatch
from streamkernel.daemon.stream.slowest import SlowestRecord
from tests.daemon.conftest import Home, write_stream
from tests.daemon.test_calibration import served


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

    def test_waiting_for_an_output_counts_for_the_sinks(self, monkeypatch: pytest.MonkeyPatch) -> None:
        clock = Clock()
        monkeypatch.setattr("streamkernel.daemon.stream.loop.time", SimpleNamespace(sleep=clock.taking(0.125)))
        full = iter([True, True, True, False])
        sinks: Any = type("Full", (), {"full": property(lambda _: next(full))})()
        sinks.retry, sinks.pause, sinks.move = clock.taking(16), lambda most: most, clock.taking(8)
        loop = loop_of(clock, [], sinks=sinks)
        loop.run()
        assert loop.times.seconds == {"source": 1, "model": 0, "sinks": 3 * 16.125, "checkpoints": 32}

    def test_the_longer_a_chunk_the_clock_is_read_no_more(self) -> None:
        reads = []
        for length in (1, 16, 512):
            clock = Clock()
            loop_of(clock, [[record()] * length]).run()
            reads.append(clock.reads)
        assert len(set(reads)) == 1
        assert reads[0] < 16

    def test_the_slowest_record_is_the_one_read_longest_ago(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("streamkernel.daemon.stream.loop.MOST_BYTES", 10)
        clock = Clock()
        place = Position("here", 0, 0)
        # Too long for one part: what is learned last of a chunk has waited for the others.
        parts = [Record({}, None, place, place, b"12345678")] * 3
        loop = loop_of(clock, [parts], checkpoints=Checkpoints())
        loop.run()
        parts_before, alone = 2 * (2 + 0.5 + 4), 2
        assert loop.times.slowest() == parts_before + alone

    def test_a_model_that_raises_is_no_time_lost(self) -> None:
        clock = Clock()

        def process(*_: Any) -> RecordBatch:
            raise RuntimeError("broken")

        processor = SimpleNamespace(process=process, taken=0, counts=RecordCounts(), overrun=False)
        loop = loop_of(clock, [[record()]], processor=processor)
        with pytest.raises(RuntimeError, match="broken"):
            loop.run()
        assert math.isnan(loop.times.slowest())


moments = st.lists(st.tuples(st.floats(0, 40), st.floats(0, 100)), max_size=30)


class TestSlowest:
    @given(moments, st.floats(0, 200))
    def test_it_is_of_this_minute_and_the_one_before(self, steps: list[tuple[float, float]], pause: float) -> None:
        slowest, now, seen = SlowestRecord(), 0.0, []
        for step, seconds in steps:
            now += step
            slowest.observe(seconds, now)
            seen.append((now // 60, seconds))
        now += pause
        within = [seconds for minute, seconds in seen if minute >= now // 60 - 1]
        assert slowest.value(now) == pytest.approx(max(within, default=math.nan), nan_ok=True)

    def test_before_the_first_there_is_none(self) -> None:
        assert math.isnan(SlowestRecord().value(1e6))


class TestServed:
    def test_counters_follow_the_loop_and_never_fall(self) -> None:
        exporter = Exporter(linear_model.LogisticRegression(), ["accuracy"], 10)

        def value(name: str, **labels: str) -> float | None:
            return exporter.registry.get_sample_value(f"streamkernel_{name}", labels)

        assert [value("loop_seconds_total", activity=one) for one in ACTIVITIES] == [0.0] * 4
        assert math.isnan(value("slowest_record_seconds") or 0)
        assert math.isnan(value("snapshot_timestamp_seconds") or 0)
        exporter.refresh(View(loop_seconds={"source": 1.5, "model": 2.0}, slowest_record=0.75))
        before = time.time()
        exporter.refresh(View(loop_seconds={"source": 1.75, "model": 2.0}, slowest_record=0.5))
        assert value("loop_seconds_total", activity="source") == 1.75
        assert value("loop_seconds_total", activity="model") == 2.0
        assert value("slowest_record_seconds") == 0.5
        assert before <= (value("snapshot_timestamp_seconds") or 0) <= time.time()

    @pytest.mark.usefixtures("processes")
    def test_a_run_tells_what_its_time_went_into(self, here: Home, monkeypatch: pytest.MonkeyPatch) -> None:
        exporters = served(monkeypatch)
        here.configure(metrics={"port": 0})
        started = time.monotonic()
        view = run(prepare(here.config))
        elapsed = time.monotonic() - started
        assert set(view.loop_seconds) == set(ACTIVITIES)
        assert all(seconds > 0 for seconds in view.loop_seconds.values())
        assert sum(view.loop_seconds.values()) <= elapsed
        assert 0 < view.slowest_record <= elapsed
        value = exporters[-1].registry.get_sample_value
        for activity, seconds in view.loop_seconds.items():
            assert value("streamkernel_loop_seconds_total", {"activity": activity}) == pytest.approx(seconds)
        assert value("streamkernel_slowest_record_seconds") == view.slowest_record
        assert (value("process_start_time_seconds") or 0) < (value("streamkernel_snapshot_timestamp_seconds") or 0)
        for name in ("virtual_memory_bytes", "resident_memory_bytes", "cpu_seconds_total", "open_fds", "max_fds"):
            assert (value(f"process_{name}") or 0) > 0


def calls_of(function: Callable[[], Any]) -> int:
    """How many calls a function makes, a measure that no other process changes."""
    count, before = 0, sys.getprofile()

    def profile(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(profile)
    try:
        function()
    finally:
        sys.setprofile(before)
    return count


def test_a_chunk_costs_the_exporter_the_same_however_long_it_is() -> None:
    join = LabelJoin("id", "y", 60.0, 10)
    exporter = Exporter(linear_model.LogisticRegression(), ["accuracy"], 10, join)
    draw = random.Random(1)
    found = []
    for length in (1, 16, 512, 10_000):
        account = RecordCounts(consumed=length, predicted=length, learned=length)
        done = RecordBatch(
            counts=account,
            labeled={"": Labeled(losses=[draw.random()] * length)},
            learn_seconds=1e-6,
            predict_seconds=1e-6,
        )
        done.late = LabelChunk(LabelCounts(taken=length, matched=length), delay=1.0)
        done.dead.update({"refused": length})
        found.append(calls_of(lambda done=done: exporter.chunk(done)))  # type: ignore[misc]
    assert set(found) == {found[0]}


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
        monkeypatch.setattr(batch_size, "MOST_RECORDS", most)
        view = run(prepare(home.config), fresh=True)
        results.append((*home.result(), home.header()["source"]["recent_dead"]))
        metrics.append({**view.overall, **view.rolling, "loss": view.loss})
    assert results[1:] == results[:1] * 2
    assert metrics[1] == pytest.approx(metrics[0], rel=1e-12)
    assert metrics[2] == pytest.approx(metrics[0], rel=1e-12)
    assert home.header()["source"]["account"]["dead"] > 10
    assert "refused" in {letter["reason"] for letter in home.lines("out/dead.jsonl")} or model != "two classes"


@pytest.mark.parametrize("before", [(0, 10, 10), (60_000, 5, 5)])
def test_a_garbage_collector_somebody_set_up_is_left_alone(before: tuple[int, int, int]) -> None:
    now = gc.get_threshold()
    try:
        gc.set_threshold(*before)
        with rare_collections():
            assert gc.get_threshold() == before
        assert gc.get_threshold() == before
    finally:
        gc.set_threshold(*now)


def test_a_run_leaves_the_garbage_collector_as_it_was(here: Home) -> None:
    before = gc.get_threshold()
    run(prepare(here.config))
    assert gc.get_threshold() == before
