"""Late labels through whole runs: each record is learned once, when its label comes, and what a run goes on from."""

from __future__ import annotations

import json
import random
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pytest

from benchmarks.labels import measure
from streamkernel import KernelClassifier
from streamkernel.daemon.assembly.plan import prepare
from streamkernel.daemon.base.errors import CheckpointError
from streamkernel.daemon.run_state.models import published_entry
from streamkernel.daemon.runtime import run
from streamkernel.daemon.stream import loop_time
from tests.daemon.conftest import Home
from tests.daemon.labels_stream import adds_up, outcome, sections, write_pair
from tests.kills.simulated import killed, runs

RECORDS = 4000
MODELS: dict[str, list[Any]] = {
    "adaptive": [{"streamkernel.AdaptiveKernelClassifier": {"n_features": 16, "seed": 1}}],
    "growing": [{"streamkernel.KernelClassifier": {"seed": 1, "max_features": 64}}],
    "River's": [
        {"river.compose.Discard": {"args": ["color"]}},
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
    assert min(header["source"]["account"].values()) > 20
    assert min(header["labels"]["account"].values()) > 20
    assert header["labels"]["pending"] > 100
    assert header["labels"]["waiting"] > 0
    assert published_entry(header)["n_records"] == header["source"]["account"]["learned"] > 0.7 * RECORDS


def test_each_record_has_one_prediction_and_no_label_line(undisturbed: Home) -> None:
    lines = undisturbed.lines("out/predictions.jsonl")
    assert len(lines) == undisturbed.header()["source"]["account"]["predicted"]
    offsets = [line["position"]["offset"] for line in lines]
    assert offsets == sorted(set(offsets))
    assert sum(line["target"] is not None for line in lines) < 0.1 * RECORDS


def test_a_dead_letter_says_whose_it_is_and_where_it_stands(undisturbed: Home) -> None:
    letters = undisturbed.lines("out/dead.jsonl")
    header = undisturbed.header()
    mine = [letter for letter in letters if letter["position"].get("source") == "labels"]
    assert len(mine) == header["labels"]["account"]["dead"]
    assert len(letters) - len(mine) == header["source"]["account"]["dead"]
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
    assert published_entry(home.header())["state_digest"] == model.state_digest()
    assert home.header()["source"]["account"]["learned"] == 400


@pytest.mark.parametrize(("kind", "model"), [("csv", "growing"), ("jsonl", "River's")])
def test_the_length_of_the_chunks_changes_no_byte(
    home: Home, monkeypatch: pytest.MonkeyPatch, kind: str, model: str
) -> None:
    write_pair(home.folder, kind, 200)
    home.configure(**sections(kind, target_type="bool", max_pending=40), model=MODELS[model])
    results, marks = [], []
    for most in (1, 7, 512):
        monkeypatch.setattr(loop_time, "MOST_RECORDS", most)
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
    assert published_entry(header)["n_records"] == header["source"]["account"]["learned"]
    assert len(copied.lines("out/predictions.jsonl")) == header["source"]["account"]["predicted"]


def predicting() -> dict[str, Any]:
    """Mode predict with a directory and outputs of its own."""
    return {
        "mode": "predict",
        "serve_from": "out/state",
        "checkpoint": {"directory": "out/own"},
        "predictions": {"kind": "jsonl", "path": "out/own.jsonl"},
        "dead_letters": {"kind": "jsonl", "path": "out/own-dead.jsonl"},
    }


class TestWhatItGoesOnFrom:
    @pytest.fixture
    def here(self, home: Home) -> Home:
        write_pair(home.folder, "jsonl", 500)
        home.configure(**sections())
        return home

    @pytest.mark.parametrize(
        ("labels", "difference"),
        [
            (None, "labels is set in the checkpoint and not in the configuration"),
            ({"key": "color"}, "labels.key is 'id' in the checkpoint and 'color' in the configuration"),
            (
                {"source": {"kind": "jsonl", "path": "labels.jsonl", "target": "z"}},
                "labels.source.target is 'y' in the checkpoint and 'z' in the configuration",
            ),
            (
                {"source": {"kind": "csv", "path": "labels.jsonl", "target": "y"}},
                "labels.source.kind is 'jsonl' in the checkpoint and 'csv' in the configuration",
            ),
        ],
    )
    def test_other_labels_are_refused(self, here: Home, labels: dict[str, Any] | None, difference: str) -> None:
        run(prepare(here.config), max_records=300)
        made = sections(**(labels or {}))
        if labels is None:
            made["labels"] = None
        with pytest.raises(CheckpointError) as caught:
            run(prepare(here.configure(**made)))
        assert difference in str(caught.value)

    def test_other_limits_are_taken(self, here: Home) -> None:
        run(prepare(here.config), max_records=300)
        assert here.header()["labels"]["pending"] > 20
        run(prepare(here.configure(**sections(max_pending=20, timeout_seconds=5))), max_records=100)
        assert here.header()["labels"]["pending"] <= 20
        adds_up(here.header())

    def test_labels_may_come_to_a_model_that_had_none(self, here: Home) -> None:
        run(prepare(here.configure(**{**sections(), "labels": None})), max_records=250)
        before = here.header()["source"]["account"]
        run(prepare(here.configure(**sections())))
        header = here.header()
        assert header["source"]["account"]["consumed"] == before["consumed"] + header["labels"]["account"]["kept"] + (
            header["source"]["account"]["learned"] - before["learned"] - header["labels"]["account"]["matched"]
        ) + sum(header["source"]["account"][name] - before[name] for name in ("unlabeled", "skipped", "dead"))
        assert header["labels"]["account"]["matched"] > 100

    def test_a_model_that_serves_is_judged_by_the_labels_and_learns_nothing(self, here: Home) -> None:
        run(prepare(here.config), max_records=300)
        before = here.header()
        view = run(prepare(here.configure(**{**sections(), **predicting()})))
        after = here.header("out/own")
        assert published_entry(after) == published_entry(before)
        assert after["source"]["account"]["learned"] == 0
        assert after["labels"]["account"]["matched"] > 200
        assert view.overall["accuracy"] > 0.6
        assert here.header() == before

    def test_a_model_that_serves_may_do_without(self, here: Home) -> None:
        run(prepare(here.config), max_records=300)
        run(prepare(here.configure(**{**sections(), "labels": None, **predicting()})))
        account = here.header("out/own")["source"]["account"]
        assert account["consumed"] == len((here.folder / "records.jsonl").read_text().splitlines())
        assert account["predicted"] > 450

    def test_records_that_wait_are_given_up_without_labels(self, here: Home, caplog: pytest.LogCaptureFixture) -> None:
        run(prepare(here.config), max_records=300)
        run(prepare(here.configure(**{**sections(), **predicting()})), max_records=150)
        run(prepare(here.configure(**{**sections(), "labels": None, **predicting()})))
        assert "labels is set in the checkpoint and not in the configuration" in caplog.text
        assert "records that wait for labels are given up" in caplog.text

    def test_labels_of_a_file_that_was_replaced_are_refused(self, here: Home) -> None:
        run(prepare(here.config), max_records=300)
        (here.folder / "labels.jsonl").write_text('{"id": 1, "y": "yes"}\n' * 500)
        with pytest.raises(Exception, match=r"labels\.jsonl: "):
            run(prepare(here.config))


def test_a_quick_run_fills_the_tables(tmp_path: Path) -> None:
    speeds, checkpoints = measure(tmp_path, records=1500, pending=600)
    assert [row[:2] for row in speeds] == [["with the record", "0"], ["late", "600"]]
    assert all(float(row[2].replace(",", "")) > 0 for row in speeds)
    assert [row[0] for row in checkpoints] == ["0", "600"]
    assert 0.3 < float(checkpoints[1][1]) - float(checkpoints[0][1]) < 0.6
