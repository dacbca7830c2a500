"""A run that learns and one that predicts share a directory, both are killed again and again, and neither shows it."""

from __future__ import annotations

import itertools
import json
import random
import signal
from collections.abc import Callable
from typing import Any

import pytest

from streamkernel.daemon.checkpoints.file import read
from streamkernel.daemon.checkpoints.payload import load_model
from streamkernel.daemon.wiring.plan import prepare
from tests.daemon.conftest import Home, Launcher, write_stream
from tests.daemon.predicting import OWN, predicting

RECORDS = 1200
KILLS = ["consumed:{}", "mid-batch:4", "flushed:2", "checkpoint-before-rename:2", "checkpoint-writing:2", "consumed:{}"]


def learning(home: Home, keep: int) -> None:
    write_stream(home.folder / "stream.csv", RECORDS)
    write_stream(home.folder / "other.csv", RECORDS, seed=1)
    home.configure(checkpoint={"directory": "out/state", "every_records": 100, "keep": keep})


def write_predicting(home: Home) -> None:
    """Write the configuration of the run that predicts beside that of the run that learns."""
    text = home.config.read_text()
    home.configure(
        **predicting(checkpoint=OWN, reload=0.001, source={"kind": "csv", "path": "other.csv", "target": "y"})
    )
    home.config.rename(home.folder / "predict.yaml")
    home.config.write_text(text)


@pytest.mark.parametrize("rounds", [4, pytest.param(40, marks=pytest.mark.long)])
def test_kills_on_both_sides(homes: Callable[[str], Home], launcher: Launcher, rounds: int) -> None:
    alone, home = homes("alone"), homes("both")
    learning(alone, keep=1)
    assert launcher.call(alone, "run", "config.yaml").returncode == 0
    learning(home, keep=1)
    assert launcher.call(home, "run", "config.yaml", "--max-records", "100").returncode == 0
    write_predicting(home)

    draw = random.Random(13)
    killed = 0
    for kill in itertools.islice(itertools.cycle(KILLS), rounds):
        started = [
            launcher.start(home, "run", config, STREAMKERNEL_CRASH=kill.format(draw.randint(1, 200)))
            for config in ("config.yaml", "predict.yaml")
        ]
        for done in [one.wait() for one in started]:
            assert done.returncode in (0, -signal.SIGKILL), done.stderr
            killed += done.returncode != 0
    assert killed > rounds // 2
    for done in [one.wait() for one in [launcher.start(home, "run", name) for name in ("config.yaml", "predict.yaml")]]:
        assert done.returncode == 0, done.stderr

    assert home.result() == alone.result()  # the run that learns, to the byte
    once = launcher.call(home, "predict", "out/state", "other.csv").stdout
    offsets = [json.loads(line)["position"]["offset"] for line in once.splitlines()]
    assert [line["position"]["offset"] for line in home.lines("own/predictions.jsonl")] == offsets
    numbers = [line["checkpoint"] for line in home.lines("own/predictions.jsonl")]
    assert numbers == sorted(numbers)
    assert len(set(numbers)) > 1
    account = home.header("own/state")["account"]
    assert (account["consumed"], account["predicted"], account["learnt"]) == (RECORDS, len(offsets), 0)
    assert len(home.lines("own/dead.jsonl")) == account["dead"]


def test_each_line_is_what_the_checkpoint_it_names_says(home: Home, launcher: Launcher) -> None:
    learning(home, keep=100)
    write_predicting(home)
    assert launcher.call(home, "run", "config.yaml", "--max-records", "100").returncode == 0
    started = [
        launcher.start(home, "run", "config.yaml"),
        launcher.start(home, "run", "predict.yaml", STREAMKERNEL_CRASH="consumed:700"),
    ]
    assert [one.wait().returncode for one in started] == [0, -signal.SIGKILL]
    assert launcher.call(home, "run", "predict.yaml").returncode == 0
    rows = (home.folder / "other.csv").read_text()
    models: dict[int, Any] = {}
    for line in home.lines("own/predictions.jsonl"):
        number = line["checkpoint"]
        if number not in models:
            checkpoint = read(home.folder / f"out/state/checkpoint-{number:012d}.skc")
            models[number] = load_model(checkpoint.payload, prepare(home.config).model)
        values = rows[line["position"]["offset"] :].partition("\n")[0].split(",")
        x = {
            name: float(value) if name in "ab" else value
            for name, value in zip(("a", "b", "colour"), values, strict=False)
            if value
        }
        assert {str(label): one for label, one in models[number].predict_proba_one(x).items()} == line["probabilities"]
    assert len(models) > 1


def test_without_a_directory_a_killed_run_begins_anew(home: Home, launcher: Launcher) -> None:
    learning(home, keep=3)
    assert launcher.call(home, "run", "config.yaml").returncode == 0
    home.configure(**predicting())
    killed = launcher.call(home, "run", "config.yaml", STREAMKERNEL_CRASH="consumed:800")
    assert killed.returncode == -signal.SIGKILL
    assert launcher.call(home, "run", "config.yaml").returncode == 0
    assert (home.folder / "own/predictions.jsonl").read_text() == launcher.call(
        home, "predict", "out/state", "other.csv"
    ).stdout
