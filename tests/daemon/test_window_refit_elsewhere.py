"""A model that is refitted on its window, in the other commands: each reads it out of a checkpoint as any model."""

from __future__ import annotations

import json
from typing import Any

import pytest

from streamkernel.daemon import cli
from streamkernel.daemon.config.problems import ConfigError
from streamkernel.daemon.evaluate import evaluate
from streamkernel.daemon.monitoring.summary import summary_table
from streamkernel.daemon.promote import promote
from streamkernel.daemon.runtime import run
from streamkernel.daemon.stream.stop import StopSignals
from streamkernel.daemon.wiring.plan import prepare
from tests.daemon.conftest import Home, write_stream
from tests.daemon.labels_stream import sections, write_pair
from tests.daemon.predicting import predicting
from tests.daemon.refits import INNER, refitted
from tests.daemon.service import serving
from tests.daemon.test_several_models import several

SOURCE = {"kind": "csv", "path": "stream.csv", "target": "y"}
SHORT = {"window": 200, "every": 100}


@pytest.fixture
def trained(here: Home) -> Home:
    run(prepare(here.configure(model=refitted(**SHORT))), max_records=280)
    write_stream(here.folder / "other.csv", 100, seed=1, bad=False)
    return here


def test_predictions_are_the_same_by_the_command_in_mode_predict_and_over_http(
    trained: Home, capfd: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["predict", "out/state", "other.csv"]) == 0
    lines = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    assert len(lines) == 100
    run(prepare(trained.configure(**predicting(model=refitted(**SHORT)))))
    probabilities = [line["probabilities"] for line in lines]
    assert [line["probabilities"] for line in trained.lines("own/predictions.jsonl")] == probabilities
    record = {"a": 0.5, "b": -1.0, "colour": "red"}
    (trained.folder / "one.jsonl").write_text(json.dumps(record))
    assert cli.main(["predict", "out/state", "one.jsonl"]) == 0
    alone = json.loads(capfd.readouterr().out)
    with serving(trained, model=refitted(**SHORT), serve={"port": 0}) as (client, _):
        status, answer = client.ask("/predict", record)
    assert status == 200
    assert answer["probabilities"] == alone["probabilities"]


def test_evaluate_says_what_a_run_comes_to(here: Home) -> None:
    plan = prepare(here.configure(model=refitted(**SHORT), checkpoint=None))
    evaluated = evaluate(plan, StopSignals()).view
    assert (evaluated.growth["features"], evaluated.growth["refits"], evaluated.growth["window"]) == (64, 2, 200)
    assert (evaluated.to_json()["refits"], evaluated.to_json()["window"]) == (2, 200)  # as the status page has them
    assert "refits" in [label for column in summary_table({"one": evaluated}).columns[:1] for label in column._cells]
    assert run(prepare(here.config)).overall == pytest.approx(evaluated.overall)


def test_mended_dead_letters_are_replayed_into_it(trained: Home) -> None:
    letters = trained.lines("out/dead.jsonl")
    for letter in letters:
        letter["raw"] = "0.5,0.5,red,yes"
    (trained.folder / "mended.jsonl").write_text("".join(json.dumps(letter) + "\n" for letter in letters))
    before = trained.header()["model"]["n_records"]
    assert cli.main(["replay", "mended.jsonl", "config.yaml"]) == 0
    assert trained.header()["model"]["n_records"] == before + len(letters)


def test_it_begins_with_the_trained_model_of_another_run(trained: Home) -> None:
    before = trained.header()["model"]
    own: dict[str, Any] = {"checkpoint": {"directory": "own/state"}, "predictions": None, "dead_letters": None}
    run(prepare(trained.configure(model=refitted(**SHORT), initial_model={"checkpoint": "out/state"}, **own)))
    assert trained.header("own/state")["model"]["n_refits"] > before["n_refits"]


def test_it_is_promoted_from_beside_a_plain_one(here: Home) -> None:
    plan = several(here, source=SOURCE, models={"plain": [INNER], "one": refitted(**SHORT)})
    run(plan, max_records=280)
    digest = here.header()["models"]["one"]["model"]["state_digest"]
    promote(plan, "one")
    header = here.header()
    assert header["published"] == "one"
    assert header["model"]["state_digest"] == digest
    run(prepare(here.config))
    assert here.header()["models"]["one"]["model"]["n_refits"] == 2


def test_a_regressor_is_refitted_too(here: Home) -> None:
    inner = {"streamkernel.KernelRegressor": {"seed": 1, "max_features": 64, "block_size": 16}}
    source = {"kind": "csv", "path": "stream.csv", "target": "b", "target_type": "float"}
    view = run(prepare(here.configure(source=source, model=refitted(model=inner, **SHORT))))
    assert here.header()["model"]["n_refits"] == 2
    assert {"mae", "rmse", "r2"} <= view.overall.keys()
    other = {**source, "target": "y", "target_type": "str"}
    with pytest.raises(ConfigError, match=r"source\.target_type: must be float for a regressor, is str"):
        prepare(here.configure(source=other, model=refitted(model=inner, **SHORT)))


def test_it_learns_from_late_labels(home: Home) -> None:
    write_pair(home.folder, "jsonl", 800)
    run(prepare(home.configure(model=refitted(), **sections())))
    account, model = home.header()["account"], home.header()["model"]
    assert model["n_records"] == account["learnt"] > 600
    assert model["n_refits"] == account["learnt"] // 300
