"""Late labels through a whole run: each record is predicted at once and learnt when its label comes, once."""

from __future__ import annotations

import json
import random
from itertools import zip_longest
from typing import Any

import pytest

from streamkernel import KernelClassifier
from streamkernel.daemon.runtime import run
from streamkernel.daemon.stream import batch_size
from streamkernel.daemon.wiring.plan import prepare
from tests.daemon.conftest import Home
from tests.daemon.labels_stream import adds_up, outcome, sections, write_pair
from tests.kills.simulated import killed, runs

RECORDS = 4000
MODELS: dict[str, list[Any]] = {
    "adaptive": [{"streamkernel.AdaptiveKernelClassifier": {"n_features": 16, "seed": 1}}],
    "growing": [{"streamkernel.KernelClassifier": {"seed": 1, "max_features": 64}}],
    "River's": [
        {"river.compose.Discard": {"args": ["colour"]}},
        "river.preprocessing.StandardScaler",
        "river.linear_model.LogisticRegression",
    ],
}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """A run over two files that nothing disturbs."""
    home = Home(tmp_path_factory.mktemp("undisturbed"))
    write_pair(home.folder, "jsonl", RECORDS)
    home.configure(**sections())
    assert runs(home) == 0
    return home


@pytest.fixture
def copied(undisturbed: Home, home: Home) -> Home:
    """The same files, to be disturbed."""
    for name in ("records.jsonl", "labels.jsonl", "config.yaml"):
        (home.folder / name).write_bytes((undisturbed.folder / name).read_bytes())
    return home


def test_everything_that_can_be_is_in_the_account_and_adds_up(undisturbed: Home) -> None:
    header = undisturbed.header()
    adds_up(header)
    assert min(header["account"].values()) > 20
    assert min(header["labels"]["account"].values()) > 20
    assert header["labels"]["pending"] > 100
    assert header["labels"]["waiting"] > 0
    assert header["model"]["n_records"] == header["account"]["learnt"] > 0.7 * RECORDS


def test_each_record_has_one_prediction_and_no_label_line(undisturbed: Home) -> None:
    lines = undisturbed.lines("out/predictions.jsonl")
    assert len(lines) == undisturbed.header()["account"]["predicted"]
    offsets = [line["position"]["offset"] for line in lines]
    assert offsets == sorted(set(offsets))
    assert sum(line["target"] is not None for line in lines) < 0.1 * RECORDS


def test_a_dead_letter_says_whose_it_is_and_where_it_stands(undisturbed: Home) -> None:
    letters = undisturbed.lines("out/dead.jsonl")
    header = undisturbed.header()
    mine = [letter for letter in letters if letter["position"].get("source") == "labels"]
    assert len(mine) == header["labels"]["account"]["dead"]
    assert len(letters) - len(mine) == header["account"]["dead"]
    assert {letter["reason"] for letter in mine} == {"not_json", "key", "target"}
    text = (undisturbed.folder / "labels.jsonl").read_bytes()
    for letter in mine:
        assert text[letter["position"]["offset"] :].startswith(letter["raw"].encode())


def test_it_learns_what_a_loop_by_hand_learns(home: Home) -> None:
    write_pair(home.folder, "jsonl", 400, bad=False)
    config = home.configure(**sections(max_pending=5000), model=MODELS["growing"])
    run(prepare(config))
    records, labels = ((home.folder / name).read_text().split("\n") for name in ("records.jsonl", "labels.jsonl"))
    model = KernelClassifier(seed=1, max_features=64)
    pending: dict[str, Any] = {}
    early: dict[str, str] = {}
    for line, late in zip_longest(records, labels, fillvalue=""):
        if line:
            record = json.loads(line)
            x = {name: value for name, value in record.items() if name not in ("id", "y") and value is not None}
            if record["id"] in early:
                model.learn_one(x, early.pop(record["id"]))
            else:
                pending[record["id"]] = x
        if late:
            label = json.loads(late)
            if label["id"] in pending:
                model.learn_one(pending.pop(label["id"]), label["y"])
            else:
                early[label["id"]] = label["y"]
    assert not early
    assert not pending
    assert home.header()["model"]["state_digest"] == model.state_digest()
    assert home.header()["account"]["learnt"] == 400


@pytest.mark.parametrize(("kind", "model"), [("csv", "growing"), ("jsonl", "River's")])
def test_the_length_of_the_chunks_changes_no_byte(
    home: Home, monkeypatch: pytest.MonkeyPatch, kind: str, model: str
) -> None:
    write_pair(home.folder, kind, 200)
    home.configure(**sections(kind, target_type="bool", max_pending=40), model=MODELS[model])
    results, marks = [], []
    for most in (1, 7, 512):
        monkeypatch.setattr(batch_size, "MOST_RECORDS", most)
        view = run(prepare(home.config), fresh=True)
        results.append(outcome(home)[1:])
        marks.append({**view.overall, **view.rolling, "loss": view.loss})
    assert results[1:] == results[:1] * 2
    assert marks[1] == pytest.approx(marks[0], rel=1e-12)
    assert marks[2] == pytest.approx(marks[0], rel=1e-12)
    adds_up(home.header())


def test_the_account_is_exact_where_time_decides_and_kills_interfere(copied: Home) -> None:
    copied.configure(**sections(timeout_seconds=0.02))
    draw = random.Random(5)
    for _ in range(4):
        count = draw.randint(301, 900)
        killed(copied, f"consumed:{count}")
        adds_up(copied.header())
    assert runs(copied) == 0
    header = copied.header()
    adds_up(header)
    assert header["labels"]["account"]["expired"] > 100
    assert header["model"]["n_records"] == header["account"]["learnt"]
    assert len(copied.lines("out/predictions.jsonl")) == header["account"]["predicted"]
