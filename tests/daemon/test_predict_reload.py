"""A run that predicts takes over newer checkpoints while it runs, and bears those it cannot use."""

from __future__ import annotations

from pathlib import Path

import pytest

from connectors.memory import MemorySource
from streamkernel.daemon.base.model import last_step
from streamkernel.daemon.checkpoints.file import read
from streamkernel.daemon.checkpoints.store import CheckpointStore
from streamkernel.daemon.monitoring.exporter.exporter import Exporter
from streamkernel.daemon.monitoring.watch import Watch
from streamkernel.daemon.recovery import resume
from streamkernel.daemon.runtime import run
from streamkernel.daemon.wiring import parts
from streamkernel.daemon.wiring.plan import prepare
from streamkernel.daemon.wiring.processor import make_processor
from streamkernel.daemon.wiring.reload import ModelReload
from tests.daemon.conftest import Home
from tests.daemon.predicting import predicting


class Reloading:
    """The parts of a run in mode predict that have to do with the model, and a clock."""

    def __init__(self, home: Home) -> None:
        plan = prepare(home.configure(**predicting(reload=10, metrics={"port": 0})))
        self.start = resume.resume(plan, None)
        exporter = parts.make_exporter(plan, self.start)
        assert isinstance(exporter, Exporter)
        self.exporter = exporter
        self.processor = make_processor(plan, self.start)
        self.time = 0.0
        watch = Watch(self.processor, exporter)
        self._reload = ModelReload(watch, plan, self.start, self.processor, exporter, clock=lambda: self.time)

    def turn(self, seconds: float) -> tuple[int, int]:
        """Let time pass, turn, and give the checkpoint that a line names and the records its model has learnt."""
        self.time += seconds
        self._reload.turn()
        source = MemorySource([({"a": 0.1, "b": 0.2}, None)])
        done = self.processor.process(source.poll(1, 0))
        self._reload.chunk(done)
        learner = self.processor.learner
        assert learner.model is self.start.model
        return done.lines[0]["checkpoint"], last_step(learner.model).n_records  # type: ignore[attr-defined]

    def metric(self, name: str) -> float | None:
        return self.exporter.registry.get_sample_value(f"streamkernel_{name}")


@pytest.fixture
def learnt(here: Home) -> list[int]:
    """How many records the model has learnt at each checkpoint of a run."""
    run(prepare(here.configure(checkpoint={"directory": "out/all", "every_records": 100, "keep": 9})))
    return [read(path).header["account"]["learnt"] for path in sorted((here.folder / "out/all").glob("*.skc"))]


def publish(home: Home, number: int, **header: object) -> Path:
    """Write a checkpoint of the run as the next one of the directory that is served."""
    checkpoint = read(home.folder / f"out/all/checkpoint-{number:012d}.skc")
    store = CheckpointStore(home.folder / "out/state", keep=2)
    store.lock()
    path = store.write({**checkpoint.header, **header}, checkpoint.payload)
    store.close()
    return path


def test_newer_checkpoints_are_taken_over_when_it_is_time(here: Home, learnt: list[int]) -> None:
    publish(here, 1)
    reloading = Reloading(here)
    assert reloading.turn(0) == (0, learnt[1])
    assert reloading.metric("model_checkpoint_records") == learnt[1]
    publish(here, 2)
    assert reloading.turn(9) == (0, learnt[1])
    assert reloading.turn(1) == (1, learnt[2])
    assert reloading.turn(100) == (1, learnt[2])
    publish(here, 3)
    publish(here, 4)
    assert reloading.turn(10) == (3, learnt[4])
    assert (reloading.metric("model_reloads_total"), reloading.metric("model_checkpoint")) == (2, 3)
    assert (
        reloading.metric("model_checkpoint_timestamp_seconds")
        == read(here.folder / "out/all/checkpoint-000000000004.skc").header["written"]
    )


def test_those_that_cannot_be_used_are_told_and_the_model_stays(
    here: Home, learnt: list[int], caplog: pytest.LogCaptureFixture
) -> None:
    publish(here, 1)
    reloading = Reloading(here)
    damaged = publish(here, 2)
    damaged.write_bytes(damaged.read_bytes()[:-50])
    assert reloading.turn(10) == (0, learnt[1])
    publish(here, 3, versions={"streamkernel": "99.0.0", "river": "0.1"})
    for _ in range(3):
        assert reloading.turn(10) == (0, learnt[1])
    (line,) = [one.getMessage() for one in caplog.records if "predictions go on" in one.getMessage()]
    assert line.startswith("out/state: the checkpoint was written with streamkernel 99.0.0, this is streamkernel ")
    assert line.endswith("or train the model anew; predictions go on with the checkpoint before")
    assert reloading.metric("model_reload_failures_total") == 1
    publish(here, 4)
    assert reloading.turn(10) == (3, learnt[4])
