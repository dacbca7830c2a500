"""The daemon as a process: signals that end it in seconds, resuming, what it accepts to go on from, what it says."""

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

from streamkernel.connectors.memory import NullSink
from streamkernel.connectors.ports import Position, Record
from streamkernel.daemon.assembly.plan import prepare
from streamkernel.daemon.base.counts import RecordCounts
from streamkernel.daemon.base.errors import CheckpointError, DaemonError
from streamkernel.daemon.checkpoints.file import read
from streamkernel.daemon.checkpoints.store import CheckpointStore
from streamkernel.daemon.runtime import run
from streamkernel.daemon.stream import loop
from streamkernel.daemon.stream.record_batch import RecordBatch
from streamkernel.daemon.stream.sinks import Sinks
from streamkernel.daemon.stream.stop import StopSignals
from tests.daemon.conftest import Home, Launcher, write_stream

RECORDS = 3000
FOLLOWED = {"kind": "csv", "path": "stream.csv", "target": "y", "follow": True}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, launcher: Launcher) -> Home:
    home = Home(tmp_path_factory.mktemp("undisturbed"))
    write_stream(home.folder / "stream.csv", RECORDS)
    home.configure()
    assert launcher.call(home, "run", "config.yaml").returncode == 0
    return home


def test_a_prediction_line_for_each_usable_record_in_order(undisturbed: Home) -> None:
    lines = undisturbed.lines("out/predictions.jsonl")
    assert len(lines) == undisturbed.header()["source"]["account"]["predicted"]
    offsets = [line["position"]["offset"] for line in lines]
    assert offsets == sorted(set(offsets))
    assert set(lines[-1]) == {"position", "prediction", "probabilities", "target"}
    assert lines[0]["prediction"] is None
    assert {line["prediction"] for line in lines[100:]} == {"yes", "no"}
    assert all(abs(sum(line["probabilities"].values()) - 1) < 1e-6 for line in lines[1:])
    right = [line["prediction"] == line["target"] for line in lines[-1000:] if line["target"] is not None]
    assert sum(right) > 0.8 * len(right)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_well_and_a_restart_goes_on(
    undisturbed: Home, home: Home, launcher: Launcher, number: int
) -> None:
    stream = (undisturbed.folder / "stream.csv").read_bytes()
    cut = len(stream) * 2 // 3  # in the middle of a line: the daemon waits there, wherever it was in its chunk
    (home.folder / "stream.csv").write_bytes(stream[:cut])
    home.configure(source=FOLLOWED)
    daemon = launcher.start(home, "run", "config.yaml")
    daemon.wait_for("reading csv file")
    daemon.signal(number)
    ended = daemon.wait()
    assert ended.returncode == 0
    assert f"{signal.Signals(number).name} came; everything up to record" in ended.stderr
    assert "Traceback" not in ended.stderr
    (home.folder / "stream.csv").write_bytes(stream)
    home.configure()
    assert launcher.call(home, "run", "config.yaml").returncode == 0
    assert home.result() == undisturbed.result()


def test_checkpoints_fall_on_multiples_and_number_0_comes_first(here: Home) -> None:
    config = here.configure(checkpoint={"directory": "out/state", "every_records": 100, "keep": 100})
    run(prepare(config), max_records=50)
    run(prepare(config))
    found = [read(path) for path in sorted((here.folder / "out/state").glob("*.skc"))]
    assert [checkpoint.header["source"]["account"]["consumed"] for checkpoint in found] == [0, 50, 100, 200, 300, 400]
    assert [checkpoint.number for checkpoint in found] == list(range(6))


def test_a_second_daemon_on_the_directory_is_refused(home: Home, launcher: Launcher) -> None:
    write_stream(home.folder / "stream.csv", 100)
    home.configure(source=FOLLOWED)
    first = launcher.start(home, "run", "config.yaml")
    first.wait_for("reading csv file")
    before = home.header()
    second = launcher.call(home, "run", "config.yaml")
    assert second.returncode == 1
    (line,) = second.stderr.splitlines()
    assert f"in use by another daemon (process {first.pid})" in line
    assert launcher.call(home, "run", "config.yaml", "--fresh").returncode == 1
    assert home.header()["number"] == before["number"]
    first.signal(signal.SIGTERM)
    assert first.wait().returncode == 0


def test_what_is_given_up_is_said(here: Home, caplog: pytest.LogCaptureFixture) -> None:
    here.configure(
        source={"kind": "csv", "path": "stream.csv"}, predictions=None, dead_letters={"kind": "none"}, checkpoint=None
    )
    run(prepare(here.config))
    for words in ("no record has a label", "predictions are off", "dead_letters are off", "checkpoint is off"):
        assert words in caplog.text


def test_lines_to_standard_output_come_alone(here: Home, launcher: Launcher) -> None:
    here.configure(predictions={"kind": "jsonl", "path": "-"})
    ended = launcher.call(here, "run", "config.yaml")
    assert ended.returncode == 0
    assert (
        len([json.loads(line) for line in ended.stdout.splitlines()]) == here.header()["source"]["account"]["predicted"]
    )
    assert "predictions cannot be truncated: after a restart it may have some lines twice" in ended.stderr
    assert "accuracy" in ended.stderr


def test_a_failure_is_one_line_and_says_what_is_safe(here: Home, launcher: Launcher) -> None:
    here.configure(dead_letters={"kind": "none", "max_rate": 0.1, "max_rate_window": 10})
    with (here.folder / "stream.csv").open("a") as stream:
        stream.write("broken\n" * 100)
    ended = launcher.call(here, "run", "config.yaml")
    assert ended.returncode == 1
    assert "Traceback" not in ended.stderr
    errors = [line for line in ended.stderr.splitlines() if " error " in line]
    assert len(errors) == 2
    assert "everything up to record" in errors[0]
    assert "is saved: a restart continues there" in errors[0]
    assert "the source does not match the configuration" in errors[1]


def test_a_model_no_checkpoint_can_hold_is_refused_at_the_start(here: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    (here.folder / "odd_model.py").write_text(
        "from river import dummy\n"
        "class Odd(dummy.PriorClassifier):\n"
        "    def __init__(self):\n        super().__init__()\n        self.file = open(__file__)\n"
    )
    monkeypatch.syspath_prepend(str(here.folder))
    plan = prepare(here.configure(model=["odd_model.Odd"], imports=["odd_model"]))
    try:
        with pytest.raises(CheckpointError):
            run(plan)
    finally:
        plan.model.file.close()  # type: ignore[union-attr]
    assert not (here.folder / "out/predictions.jsonl").read_bytes()


def test_other_kinds_of_source(here: Home) -> None:
    from streamkernel.connectors.ports import SourceError

    run(prepare(here.configure(source={"kind": "river", "dataset": "Phishing"})))
    assert here.header()["source"]["account"]["learned"] == 1250
    with pytest.raises(SourceError):
        run(prepare(here.configure(source={"kind": "jsonl", "path": "missing.jsonl"}, checkpoint=None)))
    regressor = [{"streamkernel.KernelRegressor": {"seed": 1, "max_features": 64}}]
    friedman = {"kind": "river", "dataset": "synth.Friedman", "args": {"seed": 1}}
    predictions = {"kind": "jsonl", "path": "out/friedman.jsonl"}
    here.configure(source=friedman, model=regressor, checkpoint={"directory": "out/friedman"}, predictions=predictions)
    view = run(prepare(here.config), max_records=350)
    assert set(view.overall) == {"mae", "rmse", "r2"}
    run(prepare(here.config), max_records=150)
    assert here.header("out/friedman")["source"]["account"]["learned"] == 500


def test_nothing_is_begun_where_the_first_checkpoint_cannot_be_written(
    here: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(CheckpointStore, "write", full)
    with pytest.raises(DaemonError, match="the first checkpoint could not be written"):
        run(prepare(here.config))


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
    assert "the model has not finished the current record" in ended.stderr
    assert "a restart continues from the last checkpoint" in ended.stderr
    assert home.header()["source"]["account"]["consumed"] == 5


def test_a_record_that_takes_a_minute_is_not_waited_for(home: Home, launcher: Launcher) -> None:
    stopped_at_a_slow_record(home, launcher, 0.3)


@pytest.mark.long
def test_it_takes_less_than_ten_seconds(home: Home, launcher: Launcher) -> None:
    stopped_at_a_slow_record(home, launcher, 0)


@pytest.mark.parametrize("sizes", [[], [5], [3, 4, 3], [11], [11, 1], [1, 11, 1], [4, 4, 4, 4, 4, 4], [10, 10]])
def test_a_batch_is_cut_by_its_bytes(sizes: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "MOST_BYTES", 10)
    place = Position("memory", 0, 0)
    records = [Record({}, None, place, place, bytes(size)) for size in sizes]
    parts: list[Sequence[Record]] = []

    def process(part: Sequence[Record], stopped: Callable[[], bool]) -> list[RecordBatch]:  # noqa: ARG001
        parts.append(part)
        return []

    polls = iter([records, []])
    feed = SimpleNamespace(poll=lambda limit, timeout: next(polls), exhausted=True)  # noqa: ARG005
    processor: Any = SimpleNamespace(process=process, taken=0, counts=RecordCounts(), overrun=False)
    observer = SimpleNamespace(turn=lambda: None, chunk=lambda _: None)
    sinks = Sinks({"predictions": NullSink(), "dead_letters": NullSink()})
    loop.Loop(feed, processor, sinks, {}, observer, loop.Checkpoints(), watches_start=False).run()  # type: ignore[arg-type]
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
