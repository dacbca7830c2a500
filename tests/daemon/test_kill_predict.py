"""A run that predicts with the checkpoints of another is killed: each record has one line, of the model it names."""

from __future__ import annotations

from typing import Any

import pytest

from streamkernel.daemon.checkpoints.file import read
from streamkernel.daemon.checkpoints.payload import load_model
from streamkernel.daemon.wiring.plan import prepare
from tests.daemon.conftest import Home, write_stream
from tests.daemon.predicting import OWN, predicting
from tests.kills.simulated import killed, runs

RECORDS = 700


def learning(home: Home, keep: int) -> None:
    write_stream(home.folder / "stream.csv", RECORDS)
    write_stream(home.folder / "other.csv", RECORDS, seed=1)
    home.configure(checkpoint={"directory": "out/state", "every_records": 100, "keep": keep})


def test_each_line_is_what_the_checkpoint_it_names_says(home: Home) -> None:
    learning(home, keep=100)
    home.config.rename(home.folder / "learn.yaml")
    source = {"kind": "csv", "path": "other.csv", "target": "y"}
    home.configure(**predicting(checkpoint=OWN, reload=0.001, source=source))
    for where in ("consumed:150", "mid-batch:5", "consumed:250"):
        assert runs(home, "run", "learn.yaml", "--max-records", "200") == 0
        killed(home, where)
    assert runs(home) == 0
    account, lines = home.header("own/state")["account"], home.lines("own/predictions.jsonl")
    offsets = [line["position"]["offset"] for line in lines]
    assert offsets == sorted(set(offsets))
    assert (account["consumed"], account["predicted"], account["learnt"]) == (RECORDS, len(lines), 0)
    assert len(home.lines("own/dead.jsonl")) == account["dead"]
    rows = (home.folder / "other.csv").read_text()
    models: dict[int, Any] = {}
    for line in lines:
        number = line["checkpoint"]
        if number not in models:
            checkpoint = read(home.folder / f"out/state/checkpoint-{number:012d}.skc")
            models[number] = load_model(checkpoint.payload, prepare(home.folder / "learn.yaml").model)
        values = rows[line["position"]["offset"] :].partition("\n")[0].split(",")
        x = {
            name: float(value) if name in "ab" else value
            for name, value in zip(("a", "b", "colour"), values, strict=False)
            if value
        }
        assert {str(label): one for label, one in models[number].predict_proba_one(x).items()} == line["probabilities"]
    assert len(models) > 1


def test_without_a_directory_a_killed_run_begins_anew(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    learning(home, keep=3)
    assert runs(home) == 0
    home.configure(**predicting())
    killed(home, "consumed:450")
    assert runs(home) == 0
    capsys.readouterr()
    assert runs(home, "predict", "out/state", "other.csv") == 0
    assert (home.folder / "own/predictions.jsonl").read_text() == capsys.readouterr().out
