"""One machine for all runs over files: whatever kills one, wherever, it ends as a run that nothing disturbed."""

from __future__ import annotations

import os
import random
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from streamkernel.daemon.stream import loop_time
from tests.daemon.labels_stream import adds_up
from tests.kills.runs import MODELS, OUTPUTS, REPLAY, SOURCES, Features, Run, outcome
from tests.kills.simulated import may_die, runs


def features(model: str) -> st.SearchStrategy[Features]:
    return st.builds(
        Features,
        model=st.just(model),
        source=st.sampled_from(SOURCES),
        output=st.sampled_from(OUTPUTS),
        dead=st.sampled_from(["jsonl", "jsonl", "csv", "jsonl.zst", "none"]),
        include=st.booleans(),
        in_time=st.booleans(),
        warm=st.booleans(),
        every=st.sampled_from([50, 100, 130]),
        keep=st.integers(1, 3),
    ).filter(lambda one: one.possible)


class Kills(RuleBasedStateMachine):
    """Two runs over the same files: one is killed and disturbed at every step, its twin is not."""

    model: str
    trained: Path | None
    killed: Run | None = None
    deaths = 0

    @initialize(data=st.data())
    def begin(self, data: st.DataObject) -> None:
        its, seed = data.draw(features(self.model)), data.draw(st.integers(0, 1000))
        self.folder = tempfile.TemporaryDirectory()
        self.killed, self.twin = (Run(Path(self.folder.name, name), its, self.trained) for name in ("killed", "twin"))
        self.draw = random.Random(seed)
        self.most = loop_time.MOST_RECORDS
        self.oldest = 0

    def _dies(self, *command: str) -> None:
        point, most = self.draw.choice([*self.killed.features.points.items()])
        type(self).deaths += may_die(self.killed.home, f"{point}:{self.draw.randint(1, most)}", *command)

    @rule(before=st.sampled_from(["nothing", "arrival", "rotation", "other chunks", "torn outputs", "torn checkpoint"]))
    def dies(self, before: str) -> None:
        """Change something between two runs, and kill the next one."""
        if before in ("arrival", "rotation") and self.killed.features.endless:
            for run in (self.killed, self.twin):
                run.arrives(before == "rotation" and run.features.source == "followed")
        elif before == "other chunks":
            loop_time.MOST_RECORDS = self.draw.choice([1, 7, 40, 512])
        elif before == "torn outputs" and self.checkpoints:
            self._tear_outputs()
        elif before == "torn checkpoint":
            self._tear_the_newest_checkpoint()
        self._dies(*self.killed.command())
        if self.killed.features.late and self.checkpoints:
            adds_up(self.killed.home.header())

    def _tear_outputs(self) -> None:
        """Cut what no checkpoint covers at any byte, as the loss of power may."""
        for output in self.killed.home.header()["outputs"].values():
            path, mark = self.killed.home.folder / (output.get("path") or "-"), output["mark"]
            if path.is_file() and mark is not None:
                assert path.stat().st_size >= mark["length"]
                os.truncate(path, self.draw.randint(mark["length"], path.stat().st_size))

    def _tear_the_newest_checkpoint(self) -> None:
        """Cut it in half, where an older one is there that knows the last promotion."""
        *_, before, newest = [self.oldest, self.oldest, *self.checkpoints]
        if before > self.oldest:
            path = self.killed.home.folder / f"out/state/checkpoint-{newest:012d}.skc"
            os.truncate(path, path.stat().st_size // 2)

    @rule(records=st.integers(0, 90))
    def stops(self, records: int) -> None:
        self.killed.takes(records)

    @precondition(lambda self: self.killed.features.model == "several")
    @rule(records=st.integers(0, 90))
    def promotes(self, records: int) -> None:
        """From the same record on, another model is published."""
        self.killed.takes(records)
        self.twin.takes(self.killed.consumed - self.twin.consumed)
        assert self.twin.consumed == self.killed.consumed
        name = next(one for one in MODELS["several"]["models"] if one != self.twin.home.header()["models"]["published"])
        for run in (self.killed, self.twin):
            assert runs(run.home, "promote", "config.yaml", name) == 0
        self.oldest = self.checkpoints[-1]

    @property
    def checkpoints(self) -> list[int]:
        return sorted(int(path.stem.split("-")[1]) for path in self.killed.home.folder.glob("out/state/*.skc"))

    def teardown(self) -> None:
        if self.killed is not None:
            try:
                self._finish()
            finally:
                loop_time.MOST_RECORDS = self.most
                self.folder.cleanup()

    def _finish(self) -> None:
        self.killed.finish()
        self.twin.finish()
        assert outcome(self.killed) == outcome(self.twin)
        if self.killed.mend() and self.twin.mend():
            self._dies(*REPLAY)
            self.killed.finish()
            for run in (self.killed, self.twin):
                assert runs(run.home, *REPLAY) == 0
            assert outcome(self.killed) == outcome(self.twin)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a model for runs that only predict."""
    run = Run(tmp_path_factory.mktemp("trained") / "home", Features("growing"))
    run.finish()
    assert min(run.home.header()["source"]["account"].values()) > 0  # its stream has every kind of record
    return run.home.folder / "out/state"


@pytest.mark.parametrize("examples", [2, pytest.param(40, marks=pytest.mark.long)])
@pytest.mark.parametrize("model", MODELS)
def test_no_kill_shows(model: str, examples: int, trained: Path) -> None:
    machine = type("Kills", (Kills,), {"model": model, "trained": trained})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=4,
            phases=[Phase.generate],  # a run takes seconds: a shorter example would take minutes to be found
            suppress_health_check=list(HealthCheck),
        ),
    )
    assert machine.deaths > 1
