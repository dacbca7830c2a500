"""Several models with late labels, in other commands, and one that kills the process."""

from __future__ import annotations

import json
import re
import signal
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from river import base

from streamkernel.daemon.assembly.plan import prepare
from streamkernel.daemon.base.errors import CheckpointError
from streamkernel.daemon.monitoring.inspection import describe, description_lines
from streamkernel.daemon.promote import promote
from streamkernel.daemon.run_state.models import published_entry
from streamkernel.daemon.runtime import run
from streamkernel.daemon.stream.challengers import Challengers, ModelStatus
from streamkernel.daemon.stream.record_batch import RecordBatch
from streamkernel.daemon.stream.river_learner import learner_for
from tests.daemon.configurations import predicting
from tests.daemon.conftest import Home, Launcher
from tests.daemon.labels_stream import sections, write_pair
from tests.daemon.test_several_models import BOOLEAN, OURS, several

OTHER = [{"streamkernel.KernelClassifier": {"seed": 2, "max_features": 64}}]
TWO = {"champion": OURS, "challenger": OTHER}


class TestLateLabels:
    """A record that waits keeps the prediction of each model; the loss of each is of its own."""

    @pytest.fixture
    def here(self, home: Home) -> Home:
        write_pair(home.folder, "jsonl", 400)
        return home

    def test_each_is_as_if_it_were_alone(self, here: Home) -> None:
        together = run(several(here, models=TWO, **sections()))
        header = here.header()
        for name, steps in TWO.items():
            alone = {**sections(), "checkpoint": {"directory": f"out/{name}"}, "predictions": None}
            view = run(prepare(here.configure(model=steps, dead_letters=None, **alone)))
            model = together.models[name]
            assert model.loss == view.loss
            assert model.rolling == view.rolling
            # Sums over all records are rounded by the chunk.
            assert model.loss_sum == pytest.approx(view.loss_sum)
            assert model.overall == pytest.approx(view.overall)
            assert header["models"]["learners"][name]["model"] == published_entry(here.header(f"out/{name}"))


class _Failing:
    """Stands for a learner that raises what no learner bears."""

    def __init__(self, after: int, error: BaseException) -> None:
        from river import dummy

        self.model = dummy.NoChangeClassifier()
        self._inner = learner_for(self.model)
        self._left = after
        self._error = error

    def advance(self, batch: RecordBatch, **keywords: Any) -> RecordBatch:
        self._left -= len(batch.inputs)
        if self._left < 0:
            raise self._error
        return self._inner.advance(batch, **keywords)


class _Saying(base.Classifier):
    """Says what it is told to, whatever that is."""

    def __init__(self, said: Any) -> None:
        self.said = said

    def learn_one(self, x: Any, y: Any) -> None:
        pass

    def predict_proba_one(self, x: Any, **_: Any) -> Any:  # noqa: ARG002
        return self.said


@pytest.mark.parametrize(
    ("said", "refused"),
    [
        ({"a": 0.5, ("b", object()): 0.5}, True),
        ({object(): 1.0}, True),
        ({"a": Decimal(1)}, True),
        ({np.str_("a"): np.float32(1.0)}, False),
        ({True: 1, None: 0}, False),
    ],
)
def test_what_has_no_place_in_a_line_is_refused(said: Any, refused: bool) -> None:
    """Not when the line is written, where it would end the stream, be it of a challenger."""
    learned = learner_for(_Saying(said)).advance(RecordBatch(inputs=[{"a": 1.0}], targets=["a"]))
    assert bool(learned.refused) == refused
    assert not refused or "which is not a label" in learned.refused[0][1]


@pytest.mark.parametrize("error", [OverflowError("out of range"), SystemExit(0), MemoryError()])
def test_what_a_challenger_raises_disables_it_alone(caplog: pytest.LogCaptureFixture, error: BaseException) -> None:
    from river import dummy

    statuses = {name: ModelStatus() for name in ("good", "bad", "sound")}
    others: Any = {"bad": _Failing(3, error), "sound": learner_for(dummy.NoChangeClassifier())}
    challengers = Challengers("good", statuses, others, 0.5, 10)
    published = learner_for(dummy.NoChangeClassifier())
    for chunk in range(3):
        learned = published.advance(RecordBatch(inputs=[{"a": 1.0}] * 2, targets=["x", "y"]))
        challengers.advance(learned, 0.0)
        assert learned.others["sound"].predictions == learned.result.predictions
        assert ("bad" in learned.others) == (chunk == 0)
    assert statuses["bad"].disabled == f"{type(error).__name__}: {error}"
    assert statuses["bad"].shown == 2
    assert caplog.text.count("is disabled") == 1
    assert challengers.others == ("bad", "sound")


def test_a_challenger_that_kills_the_process_is_disabled_and_the_record_is_learned(
    home: Home, launcher: Launcher
) -> None:
    from tests.daemon.test_poison import MODEL

    (home.folder / "deadly.py").write_text(MODEL)
    rows = [{"a": 1, "y": "u", **({"die": "abort"} if row == 7 else {})} for row in range(20)]
    (home.folder / "stream.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    source = {"kind": "jsonl", "path": "stream.jsonl", "target": "y"}
    models = {"champion": ["river.dummy.PriorClassifier"], "deadly": ["deadly.Deadly"]}
    home.configure(source=source, model=None, models=models, imports=["deadly"])
    for _ in range(4):
        assert launcher.call(home, "run", "config.yaml").returncode == -signal.SIGABRT
    ended = launcher.call(home, "run", "config.yaml")
    assert ended.returncode == 0
    assert "the model deadly is disabled" in ended.stderr
    header = home.header()
    assert (header["source"]["account"]["learned"], header["source"]["account"]["dead"]) == (20, 0)
    assert "crashed the process" in header["models"]["learners"]["deadly"]["disabled"]


class TestOtherCommands:
    """Evaluate, predict, mode predict, inspect and check know several models."""

    def test_predict_takes_the_published_one_or_another(
        self,
        here: Home,
        capfd: pytest.CaptureFixture[str],
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        from streamkernel.daemon.cli import main

        run(several(here), max_records=240)
        said = {}
        for options in ([], ["--model", "champion"], ["--model", "challenger"]):
            assert main(["predict", "out/state", "stream.csv", *options]) == 0
            said[tuple(options)] = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
        first, champion, challenger = said.values()
        assert first == champion
        assert {line["model"] for line in challenger} == {"challenger"}
        assert [line["probabilities"] for line in first] != [line["probabilities"] for line in challenger]
        assert main(["predict", "out/state", "stream.csv", "--model", "nobody"]) == 1
        assert "holds no model nobody: name one of champion, challenger" in caplog.text
        assert main(["predict", "out/state", "stream.csv", "--include", "model"]) == 2
        assert "--include: each line has model already" in capfd.readouterr().err

    def test_mode_predict_takes_the_published_one_or_another(self, here: Home) -> None:
        run(several(here, models=TWO), max_records=240)
        wanted: dict[str, list[Any]] = {}
        for publish in (None, "challenger"):
            run(several(here, **predicting(source=BOOLEAN, models=TWO, publish=publish, dead_letters=None)))
            wanted[str(publish)] = here.lines("own/predictions.jsonl")
        assert {line["model"] for line in wanted["None"]} == {"champion"}
        assert {line["model"] for line in wanted["challenger"]} == {"challenger"}
        run(prepare(here.configure(**predicting(source={**BOOLEAN}, model=OURS, dead_letters=None))))
        alone = here.lines("own/predictions.jsonl")
        assert [line["prediction"] for line in alone] == [line["prediction"] for line in wanted["None"]]
        assert "model" not in alone[0]

    def test_inspect_shows_each(self, here: Home) -> None:
        run(several(here), max_records=200)
        promote(several(here), "challenger")
        about = describe(here.folder / "out/state")
        assert about["models"]["published"] == "challenger"
        assert "models        champion (challenger), challenger (published)" in description_lines(about, 80)
        lines = "\n".join(description_lines(about, 80, every=True))
        assert re.search(r"^    champion:\n      bytes: \d+\n      steps:\n", lines, re.MULTILINE)

    def test_a_running_daemon_is_not_promoted(self, here: Home) -> None:
        from streamkernel.daemon.assembly.parts import make_store
        from streamkernel.daemon.base.errors import DaemonError

        plan = several(here)
        run(plan, max_records=200)
        store = make_store(plan)
        assert store is not None
        store.lock()
        with pytest.raises(DaemonError, match="stop it, promote, and start it again"):
            promote(several(here), "challenger")
        store.close()

    @pytest.mark.parametrize(
        ("error", "why"),
        [
            (CheckpointError("the model holds something"), "the model holds something"),
            (RuntimeError("no state"), "RuntimeError: no state"),
        ],
    )
    def test_a_challenger_that_cannot_be_written_is_disabled(
        self, here: Home, monkeypatch: pytest.MonkeyPatch, error: Exception, why: str
    ) -> None:
        from streamkernel.daemon.run_state import models

        dump = models.dump_with_digest
        calls: list[Any] = []

        def failing(model: Any, imports: Any) -> Any:
            calls.append(model)
            if len(calls) > 4 and "Pipeline" in type(model).__name__:
                raise error
            return dump(model, imports)

        monkeypatch.setattr(models, "dump_with_digest", failing)
        run(several(here))
        header = here.header()
        assert header["models"]["learners"]["challenger"]["disabled"] == why
        assert header["source"]["account"]["consumed"] == 400
