"""Mode predict: a model is read from another run's directory, which stays as it is; newer ones are taken over."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from streamkernel.connectors.memory import MemorySource
from streamkernel.daemon.assembly import parts
from streamkernel.daemon.assembly.plan import prepare
from streamkernel.daemon.assembly.processor import make_processor
from streamkernel.daemon.base.errors import CheckpointError, DaemonError
from streamkernel.daemon.base.model import last_step
from streamkernel.daemon.check import check
from streamkernel.daemon.checkpoints.file import read
from streamkernel.daemon.checkpoints.payload import load_model
from streamkernel.daemon.checkpoints.store import CheckpointStore
from streamkernel.daemon.evaluate import evaluate
from streamkernel.daemon.monitoring.exporter import Exporter
from streamkernel.daemon.monitoring.watch import Watch
from streamkernel.daemon.run_state import resume
from streamkernel.daemon.run_state.models import published_entry
from streamkernel.daemon.run_state.predict_mode import ModelReload
from streamkernel.daemon.runtime import run
from streamkernel.daemon.stream.stop import StopSignals
from tests.daemon.configurations import OWN, predicting
from tests.daemon.conftest import Home


def untouched(folder: Path) -> dict[str, tuple[int, ...]]:
    """What tells whether anything in a folder was made, renamed, removed, opened for writing or given other rights."""
    paths = [folder, *sorted(folder.iterdir())]
    return {
        path.name: (one.st_ino, one.st_mode, one.st_mtime_ns, one.st_ctime_ns)
        for path in paths
        for one in [path.stat()]
    }


def predict(home: Home, **sections: Any) -> Any:
    return run(prepare(home.configure(**predicting(**sections))))


class TestWhatItReads:
    def test_it_needs_a_model(self, here: Home) -> None:
        with pytest.raises(CheckpointError, match="out/state: there is no such directory or file: start the run"):
            predict(here)
        (here.folder / "out/state").mkdir(parents=True)
        with pytest.raises(
            CheckpointError, match="out/state: holds no checkpoint yet: start the run that learns first"
        ):
            predict(here)

    @pytest.mark.parametrize("spelling", [{}, {"serve_from": None, "checkpoint": {"directory": "out/state"}}])
    def test_the_directory_is_only_read(self, trained: Home, spelling: dict[str, Any]) -> None:
        before = untouched(trained.folder / "out/state")
        view = predict(trained, **spelling)
        assert untouched(trained.folder / "out/state") == before
        assert view.account["consumed"] == 400
        assert view.account["learned"] == 0
        assert (
            view.checkpoint
            == f"off; predicting with checkpoint 2, {trained.header()['source']['account']['learned']} records learned"
        )
        assert len(trained.lines("own/predictions.jsonl")) == view.account["predicted"] > 300

    def test_a_pipeline_of_river_predicts_what_it_has_learned(self, trained: Home) -> None:
        source = {"kind": "csv", "path": "stream.csv", "target": "y", "target_type": "bool"}
        model = [
            {"river.compose.Discard": {"args": ["color"]}},
            "river.preprocessing.StandardScaler",
            "river.linear_model.LogisticRegression",
        ]
        learning = {"source": source, "model": model, "checkpoint": {"directory": "out/river"}}
        outputs = {"predictions": {"kind": "none"}, "dead_letters": {"kind": "none"}}
        run(prepare(trained.configure(**learning, **outputs)))
        (newest,) = sorted((trained.folder / "out/river").glob("*.skc"))[-1:]
        restored = load_model(read(newest).payload, prepare(trained.config).model)
        (trained.folder / "other.csv").write_text("a,b,color\n1.0,2.0,red\n0.1,-0.1,\n")
        source = {**source, "path": "other.csv"}
        predict(trained, serve_from="out/river", model=model, source=source)
        for line, x in zip(
            trained.lines("own/predictions.jsonl"),
            [{"a": 1.0, "b": 2.0, "color": "red"}, {"a": 0.1, "b": -0.1}],
            strict=True,
        ):
            assert line["probabilities"]["true"] == restored.predict_proba_one(x)[True]

    @pytest.mark.parametrize(
        ("sections", "why"),
        [
            (
                {"model": [{"streamkernel.KernelClassifier": {"seed": 1, "max_features": 512}}]},
                "out/state: the checkpoint holds another model than the configuration: model[0].max_features: "
                "checkpoint has 256, configuration says 512",
            ),
            ({"serve_from": "stream.csv"}, "stream.csv: not a checkpoint, its first bytes are wrong"),
        ],
    )
    def test_what_does_not_fit_is_refused(self, trained: Home, sections: dict[str, Any], why: str) -> None:
        with pytest.raises(CheckpointError) as caught:
            predict(trained, **sections)
        assert str(caught.value) == why

    def test_of_a_damaged_checkpoint_the_one_before_is_taken_and_nothing_renamed(
        self, trained: Home, caplog: pytest.LogCaptureFixture
    ) -> None:
        newest = sorted((trained.folder / "out/state").glob("*.skc"))[-1]
        newest.write_bytes(newest.read_bytes()[:-100])
        before = untouched(trained.folder / "out/state")
        predict(trained)
        assert untouched(trained.folder / "out/state") == before
        assert {line["checkpoint"] for line in trained.lines("own/predictions.jsonl")} == {1}
        assert "the next older checkpoint is tried" in caplog.text


class TestWithoutADirectory:
    def test_each_run_begins_at_the_beginning_and_replaces_its_outputs(self, trained: Home) -> None:
        predict(trained)
        first = (trained.folder / "own/predictions.jsonl").read_bytes()
        view = predict(trained)
        assert view.account["consumed"] == 400
        assert (trained.folder / "own/predictions.jsonl").read_bytes() == first

    @pytest.mark.parametrize("key", ["predictions", "dead_letters"])
    def test_the_outputs_of_the_run_that_learned_are_not_touched(self, trained: Home, key: str) -> None:
        path = {"predictions": "out/predictions.jsonl", "dead_letters": "out/dead.jsonl"}[key]
        before = (trained.folder / path).read_bytes()
        assert before
        with pytest.raises(DaemonError, match=rf"{key}\.path: {path} is an output of the run that learned the"):
            predict(trained, **{key: {"kind": "jsonl", "path": path}})
        os.link(trained.folder / path, trained.folder / "link")
        with pytest.raises(DaemonError, match="learned the model: name another file"):
            predict(trained, **{key: {"kind": "jsonl", "path": "link", "existing": "replace"}})
        assert (trained.folder / path).read_bytes() == before


class TestWithADirectoryOfItsOwn:
    def test_it_goes_on_where_it_was(self, trained: Home) -> None:
        predict(trained)
        whole = (trained.folder / "own/predictions.jsonl").read_bytes()
        own = predicting(checkpoint=OWN, predictions={"kind": "jsonl", "path": "own/parts.jsonl"})
        own["dead_letters"] = {"kind": "none"}
        for _ in range(5):
            run(prepare(trained.configure(**own)), max_records=90)
        assert (trained.folder / "own/parts.jsonl").read_bytes() == whole
        header = trained.header("own/state")
        learned = trained.header()
        assert header["predicted_with"] == {
            "checkpoint": learned["number"],
            "records": learned["source"]["account"]["learned"],
        }
        assert published_entry(header) == published_entry(learned)
        assert header["source"]["account"]["consumed"] == 400

    def test_fresh_begins_it_anew(self, trained: Home) -> None:
        predict(trained, checkpoint=OWN)
        view = run(prepare(trained.configure(**predicting(checkpoint=OWN))), fresh=True)
        assert view.taken == 400
        assert (trained.folder / "own/predictions.jsonl.old").exists()

    @pytest.mark.parametrize("fresh", [False, True])
    def test_the_two_modes_do_not_share_a_directory(self, trained: Home, fresh: bool) -> None:
        (trained.folder / "copy").mkdir()
        for path in (trained.folder / "out/state").glob("*.skc"):
            (trained.folder / "copy" / path.name).write_bytes(path.read_bytes())
        before = trained.header()
        wrong = predicting(serve_from="copy", checkpoint={"directory": "out/state"})
        with pytest.raises(
            CheckpointError, match=r"checkpoint\.directory belongs to a run that learns: name it in serve_from"
        ):
            run(prepare(trained.configure(**wrong)), fresh=fresh)
        assert trained.header() == before
        predict(trained, checkpoint=OWN)
        with pytest.raises(
            CheckpointError, match="belongs to a run in mode predict, which learned nothing: give this run"
        ):
            run(prepare(trained.configure(checkpoint=OWN)), fresh=fresh)


def test_evaluate_judges_the_trained_model(trained: Home) -> None:
    plan = prepare(trained.configure(**predicting(predictions={"kind": "jsonl", "path": "out/predictions.jsonl"})))
    before = trained.result()
    evaluation = evaluate(plan, StopSignals())
    assert evaluation.view.overall["accuracy"] > 0.6
    assert evaluation.view.account["learned"] == 0
    assert trained.result() == before


class TestCheck:
    def test_it_says_which_model_predicts(self, trained: Home) -> None:
        findings = check(prepare(trained.configure(**predicting(checkpoint=OWN))))
        assert findings.bad == []
        learned = trained.header()["source"]["account"]["learned"]
        assert f"model: out/state, checkpoint 2, {learned} records learned" in findings.good
        assert "checkpoint: own/state, none yet" in findings.good


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
        """Let time pass, turn, and give the checkpoint that a line names and the records its model has learned."""
        self.time += seconds
        self._reload.turn()
        source = MemorySource([({"a": 0.1, "b": 0.2}, None)])
        [batch] = self.processor.process(source.poll(1, 0))
        self._reload.chunk(batch)
        learner = self.processor.learner
        assert learner.model is self.start.models.main.model
        return self.processor.lines(batch)[0]["checkpoint"], last_step(learner.model).n_records  # type: ignore[attr-defined]

    def metric(self, name: str) -> float | None:
        return self.exporter.registry.get_sample_value(f"streamkernel_{name}")


@pytest.fixture
def learned(here: Home) -> list[int]:
    """How many records the model has learned at each checkpoint of a run."""
    run(prepare(here.configure(checkpoint={"directory": "out/all", "every_records": 100, "keep": 9})))
    return [
        read(path).header["source"]["account"]["learned"] for path in sorted((here.folder / "out/all").glob("*.skc"))
    ]


def publish(home: Home, number: int, **header: object) -> Path:
    """Write a checkpoint of the run as the next one of the directory that is served."""
    checkpoint = read(home.folder / f"out/all/checkpoint-{number:012d}.skc")
    store = CheckpointStore(home.folder / "out/state", keep=2)
    store.lock()
    path = store.write({**checkpoint.header, **header}, checkpoint.payload)
    store.close()
    return path


def test_newer_checkpoints_are_taken_over_when_it_is_time(here: Home, learned: list[int]) -> None:
    publish(here, 1)
    reloading = Reloading(here)
    assert reloading.turn(0) == (0, learned[1])
    assert reloading.metric("model_checkpoint_records") == learned[1]
    publish(here, 2)
    assert reloading.turn(9) == (0, learned[1])
    assert reloading.turn(1) == (1, learned[2])
    assert reloading.turn(100) == (1, learned[2])
    publish(here, 3)
    publish(here, 4)
    assert reloading.turn(10) == (3, learned[4])
    assert (reloading.metric("model_reloads_total"), reloading.metric("model_checkpoint")) == (2, 3)
    assert (
        reloading.metric("model_checkpoint_timestamp_seconds")
        == read(here.folder / "out/all/checkpoint-000000000004.skc").header["run"]["written"]
    )


def test_those_that_cannot_be_used_are_told_and_the_model_stays(
    here: Home, learned: list[int], caplog: pytest.LogCaptureFixture
) -> None:
    publish(here, 1)
    reloading = Reloading(here)
    damaged = publish(here, 2)
    damaged.write_bytes(damaged.read_bytes()[:-50])
    assert reloading.turn(10) == (0, learned[1])
    newer = {"written": 0.0, "mode": "learn", "versions": {"streamkernel": "99.0.0", "river": "0.1"}}
    publish(here, 3, run=newer)
    for _ in range(3):
        assert reloading.turn(10) == (0, learned[1])
    (line,) = [one.getMessage() for one in caplog.records if "predictions continue with the" in one.getMessage()]
    assert line.startswith("out/state: the checkpoint was written with streamkernel 99.0.0, this is streamkernel ")
    assert line.endswith("or train the model again; predictions continue with the previous checkpoint")
    assert reloading.metric("model_reload_failures_total") == 1
    publish(here, 4)
    assert reloading.turn(10) == (3, learned[4])
