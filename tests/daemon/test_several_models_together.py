"""Several models together with a warm start, an initial model, several files, schemas of topics and the service."""

from __future__ import annotations

import contextlib
import json
import shutil
import time
from typing import Any

import pytest
import yaml

from streamkernel.connectors.ports import SinkError
from streamkernel.connectors.registry.line_schema import schema_text
from streamkernel.daemon.assembly.plan import prepare
from streamkernel.daemon.base.errors import CheckpointError, DaemonError
from streamkernel.daemon.checkpoints.store import CheckpointStore
from streamkernel.daemon.cli import main
from streamkernel.daemon.promote import promote
from streamkernel.daemon.run_state.models import published_entry
from streamkernel.daemon.runtime import run
from streamkernel.daemon.stream.line_schemas import prediction_schema
from tests.daemon.conftest import Home, write_stream
from tests.daemon.service import serving
from tests.daemon.test_several_models import BOOLEAN, OURS, digests, several
from tests.daemon.test_several_models_elsewhere import OTHER, TWO

WARM = {"source": {**BOOLEAN, "path": "history.csv"}}


class TestWarmStart:
    """Each of the models learns the source that comes first."""

    def test_each_is_as_if_it_were_alone_with_several_files_as_well(self, here: Home) -> None:
        write_stream(here.folder / "history.csv", 200, seed=1)
        write_stream(here.folder / "more.csv", 100, seed=2)
        files = {"source": {**BOOLEAN, "path": ["stream.csv", "more.csv"]}, "warm_start": WARM}
        run(several(here, models=TWO, **files))
        header = here.header()
        assert header["source"]["account"]["consumed"] == 500
        assert header["warm_start"]["account"]["consumed"] == 200
        assert {line["model"] for line in here.lines("out/predictions.jsonl")} == {"champion"}
        nothing = {"predictions": None, "dead_letters": None}
        for name, steps in TWO.items():
            alone = {**files, **nothing, "model": steps, "checkpoint": {"directory": f"out/{name}"}}
            run(prepare(here.configure(**alone)))
            assert published_entry(here.header(f"out/{name}"))["state_digest"] == digests(header)[name]


class TestInitialModel:
    """The published model of a checkpoint begins as the one that is published, the others start over."""

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
        assert published_entry(here.header("next/alone"))["state_digest"] == digests(header)["champion"]
        assert header["models"]["learners"]["challenger"]["shown"] == header["models"]["learners"]["champion"]["shown"]
        assert (header["models"]["published"], header["source"]["account"]["consumed"]) == ("champion", 400)

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
        (here.folder / "row.jsonl").write_text('{"a": 0.25, "b": -1.0, "color": "red"}\n')
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
    assert here.header()["source"]["account"]["consumed"] == 400
    assert (here.folder / "out/more.csv").read_text().startswith("position,prediction,target,probabilities,model\n")


def test_mended_letters_are_learned_by_each_model(here: Home) -> None:
    run(several(here, models=TWO))
    before, letters = here.header(), here.lines("out/dead.jsonl")
    assert letters
    letters[0]["raw"] = "0.5,-0.5,red,yes"
    (here.folder / "mended.jsonl").write_text(json.dumps(letters[0]) + "\n")
    assert main(["replay", "mended.jsonl", "config.yaml"]) == 0
    header = here.header()
    for name in TWO:
        assert header["models"]["learners"][name]["shown"] == before["models"]["learners"][name]["shown"] + 1
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
    assert here.header("group/partition-0")["models"]["published"] == "champion"
    assert [line.partition(":")[0] for line in promote(plan, "challenger")] == [
        f"group/partition-{partition}" for partition in (0, 3)
    ]
    assert {here.header(f"group/partition-{partition}")["models"]["published"] for partition in (0, 3)} == {
        "challenger"
    }
