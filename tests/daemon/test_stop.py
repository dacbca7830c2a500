"""SIGTERM ends the daemon in seconds, whatever the record in work."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from connectors.memory import NullSink
from connectors.ports import Position, Record
from streamkernel.daemon.base.counts import RecordCounts
from streamkernel.daemon.stream import loop
from streamkernel.daemon.stream.chunk_result import ChunkResult
from streamkernel.daemon.stream.sinks import Sinks
from streamkernel.daemon.stream.stop import StopSignals
from tests.daemon.conftest import Home, Launcher, write_stream

MODEL = """
import time
from river import dummy
from streamkernel.daemon.stream import stop

GRACE = {grace}
stop.GRACE_SECONDS = GRACE or stop.GRACE_SECONDS

class Slow(dummy.PriorClassifier):
    '''Takes a minute for one record.'''

    def learn_one(self, x, y):
        if x["a"] == 7:
            print("at work", flush=True)
            deadline = time.monotonic() + 60
            while time.monotonic() < deadline:
                pass
        super().learn_one(x, y)
"""


def stopped_at_a_slow_record(home: Home, launcher: Launcher, grace: float) -> None:
    (home.folder / "slow.py").write_text(MODEL.format(grace=grace))
    (home.folder / "stream.jsonl").write_text("".join(json.dumps({"a": n, "y": "pq"[n % 2]}) + "\n" for n in range(20)))
    home.configure(
        source={"kind": "jsonl", "path": "stream.jsonl", "target": "y"},
        model=["slow.Slow"],
        imports=["slow"],
        checkpoint={"directory": "out/state", "every_records": 5},
    )
    daemon = launcher.start(home, "run", "config.yaml")
    daemon.wait_for("reading jsonl")
    while "at work" not in daemon.output:
        time.sleep(0.01)
    daemon.signal(signal.SIGTERM)
    ended = daemon.wait()
    assert ended.returncode == 1
    assert "the model is not done with the record in work" in ended.stderr
    assert "a restart goes on from the last checkpoint" in ended.stderr
    assert home.header()["account"]["consumed"] == 5


def test_a_record_that_takes_a_minute_is_not_waited_for(home: Home, launcher: Launcher) -> None:
    stopped_at_a_slow_record(home, launcher, 0.3)


@pytest.mark.long
def test_it_takes_less_than_ten_seconds(home: Home, launcher: Launcher) -> None:
    stopped_at_a_slow_record(home, launcher, 0)


def test_nothing_is_cut_off_where_the_model_is_not_at_work(home: Home, launcher: Launcher) -> None:
    """The last checkpoint is written however long it takes: here the grace is over at once."""
    write_stream(home.folder / "stream.csv", 300, bad=False)
    (home.folder / "hasty.py").write_text(
        "from river import dummy\n"
        "from streamkernel.daemon.stream import stop\n"
        "stop.GRACE_SECONDS = 0.0\n"
        "class Hasty(dummy.PriorClassifier): pass\n"
    )
    home.configure(
        source={"kind": "csv", "path": "stream.csv", "target": "y", "follow": True},
        model=["hasty.Hasty"],
        imports=["hasty"],
        checkpoint={"directory": "out/state", "every_records": 300},
    )
    daemon = launcher.start(home, "run", "config.yaml")
    daemon.wait_for("reading csv")
    while not Path(home.folder, "out/state/checkpoint-000000000001.skc").exists():  # all records are dealt with
        time.sleep(0.01)
    daemon.signal(signal.SIGTERM)
    assert daemon.wait().returncode == 0


@pytest.mark.parametrize("sizes", [[], [5], [3, 4, 3], [11], [11, 1], [1, 11, 1], [4, 4, 4, 4, 4, 4], [10, 10]])
def test_a_batch_is_cut_by_its_bytes(sizes: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "MOST_BYTES", 10)
    place = Position("memory", 0, 0)
    records = [Record({}, None, place, place, bytes(size)) for size in sizes]
    parts: list[Sequence[Record]] = []

    def process(part: Sequence[Record], stopped: Callable[[], bool]) -> ChunkResult:  # noqa: ARG001
        parts.append(part)
        return ChunkResult()

    polls = iter([records, []])
    feed = SimpleNamespace(poll=lambda limit, timeout: next(polls), exhausted=True)  # noqa: ARG005
    processor: Any = SimpleNamespace(process=process, taken=0, counts=RecordCounts(), overrun=False)
    observer = SimpleNamespace(turn=lambda: None, chunk=lambda _: None)
    sinks = Sinks({"predictions": NullSink(), "dead_letters": NullSink()})
    loop.Loop(feed, processor, sinks, {}, observer, loop.Checkpoints()).run()  # type: ignore[arg-type]
    assert [record for part in parts for record in part] == records
    for part in parts:
        assert len(part) == 1 or sum(len(record.raw) for record in part) <= 10
    for before, after in pairwise(parts):
        assert sum(len(record.raw) for record in (*before, after[0])) > 10


def test_a_second_signal_ends_it_at_once() -> None:
    """The first one leaves both to the system, which ends the process."""
    both = (signal.SIGTERM, signal.SIGINT)
    before = [signal.getsignal(number) for number in both]
    with StopSignals() as stopped:
        os.kill(os.getpid(), signal.SIGTERM)
        assert stopped.name == "SIGTERM"
        assert [signal.getsignal(number) for number in both] == [signal.SIG_DFL] * 2
    assert [signal.getsignal(number) for number in both] == before
