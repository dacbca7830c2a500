"""Lines are there for others by flush_seconds, whatever the checkpoints do; a slow reader is waited for."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Sequence
from typing import Any

import pytest
from prometheus_client import generate_latest
from river import linear_model

from streamkernel.connectors.memory import MemorySink
from streamkernel.connectors.ports import Position, SinkError
from streamkernel.daemon.monitoring.exporter import Exporter
from streamkernel.daemon.stream.sinks import Sinks
from streamkernel.daemon.stream.waiting_sink import WaitingSink
from tests.daemon.conftest import Home, Launcher, write_stream
from tests.daemon.outputs import configured, predictions


class SlowSink(MemorySink):
    """A sink in memory whose lines are there for others some calls of `publish` later."""

    def __init__(self, calls: int = 1) -> None:
        super().__init__()
        self.calls = self._left = calls
        self.refusal: SinkError | None = None

    def publish(self) -> None:
        if self.refusal is not None:
            raise self.refusal
        self._left -= 1
        if not self._left:
            self._left = self.calls
            self.flush()

    @property
    def unpublished(self) -> int:
        return len(self.pending)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def timed(sink: SlowSink, seconds: float = 1.0) -> tuple[Sinks, Clock, list[tuple[str, float, int]]]:
    clock, told = Clock(), []
    sinks = Sinks(
        {"predictions": sink, "dead_letters": MemorySink()},
        clock,
        flush_seconds={"predictions": seconds},
        published=lambda *what: told.append(what),
    )
    return sinks, clock, told


class TestSinks:
    def test_lines_are_shown_in_time_and_it_is_told_how_late(self) -> None:
        sink = SlowSink()
        sinks, clock, told = timed(sink)
        assert sinks.pause(0.2) == 0.2
        sinks.write({"predictions": 3 * [{}]}, read_at=0.0)
        clock.now = 0.5
        sinks.write({"predictions": 2 * [{}], "dead_letters": [{}]}, read_at=0.4)
        assert (sink.lines, told) == ([], [])
        clock.now = 0.625
        assert sinks.pause(0.2) == 0.125
        clock.now = 0.875
        sinks.move()
        assert len(sink.lines) == 5
        assert told == [("predictions", 0.875, 3), ("predictions", pytest.approx(0.475), 2)]
        assert sinks.pause(0.2) == 0.2

    def test_what_takes_long_is_looked_at_often(self) -> None:
        sinks, clock, told = timed(SlowSink(calls=3))
        sinks.write({"predictions": [{}]}, read_at=0.0)
        clock.now = 1.0
        for _ in range(3):
            assert told == []
            assert 0 < sinks.pause(0.2) < 0.2
            sinks.move()
        assert told == [("predictions", 1.0, 1)]

    def test_a_checkpoint_shows_all_there_is(self) -> None:
        sinks, clock, told = timed(SlowSink())
        sinks.write({"predictions": [{}]}, read_at=0.0)
        clock.now = 0.25
        sinks.flush()
        assert told == [("predictions", 0.25, 1)]


def test_the_latency_is_a_histogram_of_each_output() -> None:
    exporter = Exporter(linear_model.LogisticRegression(), ["accuracy"], 10, outputs=["predictions", "dead_letters"])
    exporter.published("predictions", 0.75, 400)
    exporter.published("predictions", 1.1, 100)
    text = generate_latest(exporter.registry).decode()
    name = "streamkernel_output_latency_seconds"
    for line in (
        f'{name}_bucket{{le="0.5",output="predictions"}} 0.0',
        f'{name}_bucket{{le="0.75",output="predictions"}} 400.0',
        f'{name}_bucket{{le="+Inf",output="predictions"}} 500.0',
        f'{name}_count{{output="predictions"}} 500.0',
        f'{name}_sum{{output="predictions"}} 410.0',
        f'{name}_count{{output="dead_letters"}} 0.0',
    ):
        assert line in text.splitlines()


def wait_for_lines(home: Home, n_lines: int) -> bytes:
    path = home.folder / "out/predictions.jsonl"
    deadline = time.monotonic() + 120
    while not path.exists() or path.read_bytes().count(b"\n") < n_lines:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return path.read_bytes()


def test_one_record_of_an_idle_log_has_its_line_before_any_checkpoint(home: Home, launcher: Launcher) -> None:
    write_stream(home.folder / "stream.csv", 30, bad=False)
    source = {"kind": "csv", "path": "stream.csv", "target": "y", "follow": True}
    checkpoint = {"directory": "out/state", "every_seconds": 1e6}
    model, output = ["river.dummy.PriorClassifier"], predictions(flush_seconds=0.2)
    configured(home, source=source, checkpoint=checkpoint, model=model, predictions=output)
    running = launcher.start(home, "run", "config.yaml")
    for n_lines in (30, 31, 32):
        shown = wait_for_lines(home, n_lines)
        with (home.folder / "stream.csv").open("a") as file:
            file.write("1,2,red,yes\n")
    assert home.header()["source"]["account"]["consumed"] == 0
    running.signal(signal.SIGKILL)
    assert running.wait().returncode == -signal.SIGKILL
    with (home.folder / "stream.csv").open("a") as file:
        file.write("1,2,red,yes\n")  # one that the killed process cannot have written a line for
    running = launcher.start(home, "run", "config.yaml")
    assert wait_for_lines(home, 34).startswith(shown)
    running.signal(signal.SIGTERM)
    assert running.wait().returncode == 0


@pytest.mark.usefixtures("processes")
def test_from_standard_input_to_standard_output_a_line_comes_before_the_end(home: Home) -> None:
    configured(
        home,
        source={"kind": "jsonl", "path": "-", "target": "y"},
        model=["river.dummy.PriorClassifier"],
        predictions=predictions("-"),
        dead_letters={"kind": "none"},
        checkpoint=None,
    )
    with home.start("run", "config.yaml", stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for number in range(3):
            process.stdin.write(json.dumps({"a": number, "y": "yes"}) + "\n")
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["target"] == "yes"
        process.stdin.close()
        assert process.wait(60) == 0


def test_a_slow_reader_is_waited_for() -> None:
    class SlowSink(MemorySink):
        left = 3

        def flush(self) -> int:
            if self.left:
                self.left -= 1
                try:
                    raise BlockingIOError
                except BlockingIOError:
                    raise SinkError("it has no reader") from None
            return super().flush()

        def write(self, lines: Sequence[Any], positions: Sequence[Position] = ()) -> None:
            super().write(lines, positions)
            self.flush()

    slow = SlowSink()
    WaitingSink(slow, lambda: False).write([{"a": 1}], [])
    assert (slow.lines, slow.left) == ([{"a": 1}], 0)
    slow.left = 1
    with pytest.raises(SinkError):
        WaitingSink(slow, lambda: True).write([{"a": 2}], [])
