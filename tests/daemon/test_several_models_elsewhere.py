"""Several models with late labels, in other commands, tables and metrics, and beside other features."""

from __future__ import annotations

import contextlib
import json
import shutil
import signal
import time
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
import yaml
from river import base

from connectors.ports import SinkError
from connectors.registry.line_schema import schema_text
from streamkernel.daemon.base.errors import CheckpointError, DaemonError
from streamkernel.daemon.base.events import Events
from streamkernel.daemon.checkpoints.store import CheckpointStore
from streamkernel.daemon.cli import main
from streamkernel.daemon.monitoring.describe import describe, description_table
from streamkernel.daemon.monitoring.exporter.exporter import Exporter
from streamkernel.daemon.monitoring.model_view import ModelView
from streamkernel.daemon.monitoring.summary import summary_table
from streamkernel.daemon.monitoring.view import View
from streamkernel.daemon.promote import promote
from streamkernel.daemon.runtime import run
from streamkernel.daemon.stream.challengers import Challengers
from streamkernel.daemon.stream.learned import Learned
from streamkernel.daemon.stream.line_schemas import prediction_schema
from streamkernel.daemon.stream.model_status import ModelStatus
from streamkernel.daemon.stream.river_learner import learner_for
from streamkernel.daemon.wiring.plan import prepare
from tests.daemon.configurations import predicting
from tests.daemon.conftest import Home, Launcher, write_stream
from tests.daemon.labels_stream import sections, write_pair
from tests.daemon.service import serving
from tests.daemon.test_several_models import BOOLEAN, OURS, RIVER, digests, several

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
            assert header["models"][name]["model"] == here.header(f"out/{name}")["model"]


class _Failing:
    """Stands for a learner that raises what no learner bears."""

    def __init__(self, after: int, error: BaseException) -> None:
        from river import dummy

        self.model = dummy.NoChangeClassifier()
        self._inner = learner_for(self.model)
        self._left = after
        self._error = error

    def advance(self, xs: Any, ys: Any, **keywords: Any) -> Learned:
        self._left -= len(xs)
        if self._left < 0:
            raise self._error
        return self._inner.advance(xs, ys, **keywords)


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
    learned = learner_for(_Saying(said)).advance([{"a": 1.0}], ["a"])
    assert bool(learned.refused) == refused
    assert not refused or "which is no label" in learned.refused[0][1]


@pytest.mark.parametrize("error", [OverflowError("out of range"), SystemExit(0), MemoryError()])
def test_what_a_challenger_raises_disables_it_alone(caplog: pytest.LogCaptureFixture, error: BaseException) -> None:
    from river import dummy

    statuses = {name: ModelStatus() for name in ("good", "bad", "sound")}
    others: Any = {"bad": _Failing(3, error), "sound": learner_for(dummy.NoChangeClassifier())}
    challengers = Challengers("good", statuses, others, 0.5, 10)
    published = learner_for(dummy.NoChangeClassifier())
    for chunk in range(3):
        events = Events([], [{"a": 1.0}] * 2, ["x", "y"])
        learned = published.advance(events.xs, events.ys)
        challengers.advance(events, learned, 0.0)
        assert learned.others["sound"].predictions == learned.result.predictions
        assert ("bad" in learned.others) == (chunk == 0)
    assert statuses["bad"].disabled == f"{type(error).__name__}: {error}"
    assert statuses["bad"].shown == 2
    assert caplog.text.count("is disabled") == 1
    assert challengers.others == ("bad", "sound")


def test_a_challenger_that_kills_the_process_is_disabled_and_the_record_is_learnt(
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
    assert (header["account"]["learnt"], header["account"]["dead"]) == (20, 0)
    assert "die" in header["models"]["deadly"]["disabled"]


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
        assert about["published"] == "challenger"
        table = description_table(about)
        cells = [str(cell) for cell in table.columns[0].cells]
        assert "models: champion: began" in cells
        assert "models: champion: model: state_digest" in cells

    def test_a_running_daemon_is_not_promoted(self, here: Home) -> None:
        from streamkernel.daemon.base.errors import DaemonError
        from streamkernel.daemon.wiring.parts import make_store

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
        from streamkernel.daemon.recovery import stored

        dump = stored.dump_with_digest
        calls: list[Any] = []

        def failing(model: Any, imports: Any) -> Any:
            calls.append(model)
            if len(calls) > 4 and "Pipeline" in type(model).__name__:
                raise error
            return dump(model, imports)

        monkeypatch.setattr(stored, "dump_with_digest", failing)
        run(several(here))
        header = here.header()
        assert header["models"]["challenger"]["disabled"] == why
        assert header["account"]["consumed"] == 400


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_tables_have_a_column_for_the_name_and_one_for_the_others(here: Home, kind: str) -> None:
    run(several(here, predictions={"kind": kind, "path": f"out/table.{kind}", "models": "all"}))
    if kind == "csv":
        import csv

        with (here.folder / "out/table.csv").open(newline="") as file:
            last = list(csv.DictReader(file))[-1]
    else:
        from pyarrow import dataset

        last = dataset.dataset(here.folder / "out/table.parquet").to_table().to_pylist()[-1]
    assert last["model"] == "champion"
    assert "probabilities" in json.loads(last["models"])["challenger"]


def test_the_metrics_have_the_label_model(here: Home) -> None:
    from prometheus_client import generate_latest
    from river import linear_model

    view = run(several(here, models={"champion": OURS, "challenger": RIVER}))
    exporter = Exporter(linear_model.LogisticRegression(), ["accuracy"], 1000)
    exporter.show_models(view.models)
    exporter.show_models(view.models)
    text = generate_latest(exporter.registry).decode()
    for line in (
        'streamkernel_model_published{model="champion"} 1.0',
        'streamkernel_model_published{model="challenger"} 0.0',
        'streamkernel_model_enabled{model="challenger"} 1.0',
        'streamkernel_model_rolling_metric{metric="accuracy",model="challenger",window="1000"} 0.',
        'streamkernel_model_events_total{model="challenger"}',
        'streamkernel_model_loss_sum{model="champion"}',
    ):
        assert line in text
    shown = view.to_json()["models"]
    assert {name: one["published"] for name, one in shown.items()} == {"champion": True, "challenger": False}
    table = summary_table(view.by_model())
    assert [column.header for column in table.columns] == ["", "champion (published)", "challenger (challenger)"]
    assert "models" not in View().to_json()
    assert ModelView(disabled="x").state == "disabled"


WARM = {"source": {**BOOLEAN, "path": "history.csv"}}


class TestWarmStart:
    """Each of the models learns the source that comes first."""

    def test_each_is_as_if_it_were_alone_with_several_files_as_well(self, here: Home) -> None:
        write_stream(here.folder / "history.csv", 200, seed=1)
        write_stream(here.folder / "more.csv", 100, seed=2)
        files = {"source": {**BOOLEAN, "path": ["stream.csv", "more.csv"]}, "warm_start": WARM}
        run(several(here, models=TWO, **files))
        header = here.header()
        assert header["account"]["consumed"] == 500
        assert header["warm_start"]["account"]["consumed"] == 200
        assert {line["model"] for line in here.lines("out/predictions.jsonl")} == {"champion"}
        nothing = {"predictions": None, "dead_letters": None}
        for name, steps in TWO.items():
            alone = {**files, **nothing, "model": steps, "checkpoint": {"directory": f"out/{name}"}}
            run(prepare(here.configure(**alone)))
            assert here.header(f"out/{name}")["model"]["state_digest"] == digests(header)[name]


class TestInitialModel:
    """The published model of a checkpoint begins as the one that is published, the others begin anew."""

    def test_it_goes_on_beside_a_new_one(self, here: Home) -> None:
        next_run: dict[str, Any] = {
            "initial_model": {"checkpoint": "out/state"},
            "predictions": None,
            "dead_letters": None,
        }
        run(several(here, models={"old": OTHER, "better": OURS}), max_records=300)
        promote(prepare(here.config), "better")
        several(here, models=TWO, checkpoint={"directory": "next/state"}, **next_run)
        run(prepare(here.config))
        header = here.header("next/state")
        alone = {"source": BOOLEAN, "model": OURS, "checkpoint": {"directory": "next/alone"}, **next_run}
        run(prepare(here.configure(**alone)))
        assert here.header("next/alone")["model"]["state_digest"] == digests(header)["champion"]
        assert header["models"]["challenger"]["shown"] == header["models"]["champion"]["shown"]
        assert (header["published"], header["account"]["consumed"]) == ("champion", 400)

    def test_another_model_is_refused(self, here: Home) -> None:
        run(several(here, models=TWO), max_records=300)
        several(
            here,
            models={"challenger": OTHER, "champion": OURS},
            initial_model={"checkpoint": "out/state"},
            checkpoint={"directory": "next/state"},
        )
        with pytest.raises(CheckpointError, match=r"seed: checkpoint has 1, configuration says 2"):
            run(prepare(here.config))


class TestService:
    """`streamkernel serve` answers with the published model, and says which that is."""

    @pytest.mark.usefixtures("processes")
    def test_the_published_one_answers_also_after_a_promotion(self, here: Home) -> None:
        run(several(here, models=TWO, publish="champion"), max_records=200)
        (here.folder / "row.jsonl").write_text('{"a": 0.25, "b": -1.0, "colour": "red"}\n')
        said = {
            name: json.loads(here.call("predict", "out/state", "row.jsonl", "--model", name).stdout) for name in TWO
        }
        service = yaml.safe_load(here.config.read_text())
        service["serve"] = {"port": 0, "reload": 0.02}
        with serving(here, **{**service, "model": None}) as (client, _):
            row = json.loads((here.folder / "row.jsonl").read_text())
            code, answer = client.ask("/predict", row)
            assert (code, answer["model"]) == (200, "champion")
            assert answer["probabilities"] == said["champion"]["probabilities"]
            document = client.ask("/openapi.json")[1]
            assert "model" in document["components"]["schemas"]["Prediction"]["properties"]
            promote(several(here, models=TWO, publish="champion"), "challenger")
            deadline = time.monotonic() + 60
            while answer["model"] == "champion":
                assert time.monotonic() < deadline
                answer = client.ask("/predict", row)[1]
            assert answer["model"] == "challenger"
            assert answer["probabilities"] == said["challenger"]["probabilities"]


def test_the_schema_of_a_topic_has_the_name_of_the_model_behind_the_fields_there_were() -> None:
    alone, both = prediction_schema("bool"), prediction_schema("bool", several_models=True)
    assert both.fields[:-1] == alone.fields
    assert both.fields[-1].name == "model"
    assert "optional string model = 7;" in schema_text(both, "protobuf")


def test_a_csv_file_without_the_names_is_not_gone_on_with(here: Home) -> None:
    lines = {"kind": "csv", "path": "out/predictions.csv"}
    run(prepare(here.configure(source=BOOLEAN, model=OURS, predictions=lines)), max_records=300)
    before = (here.folder / "out/predictions.csv").read_bytes()
    with pytest.raises(SinkError, match=r"those of models, include and classes are now model: .* give another path"):
        run(several(here, predictions=lines))
    assert (here.folder / "out/predictions.csv").read_bytes() == before
    other = {**lines, "path": "out/more.csv"}
    run(several(here, predictions=other))
    assert here.header()["account"]["consumed"] == 400
    assert (here.folder / "out/more.csv").read_text().startswith("position,prediction,target,probabilities,model\n")


def test_mended_letters_are_learnt_by_each_model(here: Home) -> None:
    run(several(here, models=TWO))
    before, letters = here.header(), here.lines("out/dead.jsonl")
    assert letters
    letters[0]["raw"] = "0.5,-0.5,red,yes"
    (here.folder / "mended.jsonl").write_text(json.dumps(letters[0]) + "\n")
    assert main(["replay", "mended.jsonl", "config.yaml"]) == 0
    header = here.header()
    for name in TWO:
        assert header["models"][name]["shown"] == before["models"][name]["shown"] + 1
        assert digests(header)[name] != digests(before)[name]
    assert here.lines("out/predictions.jsonl")[-1]["model"] == "champion"


def test_a_promotion_is_for_all_partitions_of_a_group_or_for_none(here: Home) -> None:
    topic = {"kind": "kafka", "bootstrap_servers": "127.0.0.1:9", "topic": "in", "target": "y", "target_type": "bool"}
    run(several(here, models=TWO), max_records=300)
    for partition in (0, 3):
        shutil.copytree(here.folder / "out/state", here.folder / f"group/partition-{partition}")
    group = {"source": {**topic, "group": "g"}, "checkpoint": {"directory": "group"}, "predictions": None}
    plan = several(here, models=TWO, dead_letters=None, **group)
    with contextlib.closing(CheckpointStore(here.folder / "group/partition-3")) as held:
        held.lock()
        with pytest.raises(DaemonError, match="partition-3: in use by the daemon"):
            promote(plan, "challenger")
    assert here.header("group/partition-0")["published"] == "champion"
    assert [line.partition(":")[0] for line in promote(plan, "challenger")] == [
        f"group/partition-{partition}" for partition in (0, 3)
    ]
    assert {here.header(f"group/partition-{partition}")["published"] for partition in (0, 3)} == {"challenger"}
