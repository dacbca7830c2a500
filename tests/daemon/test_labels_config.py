"""The section `labels` of a configuration, and what `check`, `schema`, `inspect` and the status page say of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from streamkernel.daemon.assembly.plan import prepare
from streamkernel.daemon.check import check
from streamkernel.daemon.components.caveats import caveats
from streamkernel.daemon.runtime import run
from tests.daemon.configurations import MODEL, lines_of, plan_of
from tests.daemon.conftest import Home, Launcher
from tests.daemon.labels_stream import sections, write_pair

SOURCE = "source: {kind: csv, path: a.csv}\n"
LABELS = "labels: {source: {kind: jsonl, path: b.jsonl, target: y}, key: id}\n"


CSV = "{source: {kind: csv, path: b, target: y"


def test_the_defaults(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, SOURCE + MODEL + LABELS)
    assert plan.config.labels is not None
    assert (plan.config.labels.timeout_seconds, plan.config.labels.max_pending) == (86_400, 100_000)
    assert plan.sources["labels.source"].describe() == "jsonl file b.jsonl"
    assert not any("no record has a label" in line for line in caveats(plan, {}))
    assert plan_of(tmp_path, SOURCE + MODEL + "labels: null").sources.keys() == {"source"}


@pytest.mark.parametrize(
    ("labels", "line"),
    [
        ("{key: id}", "labels.source: required"),
        ("{source: {kind: cvs, path: b}, key: id}", "labels.source.kind: must be one of csv, jsonl, river"),
        (
            "{source: {kind: csv, path: b}, key: id}",
            "labels.source.target: required, it names the field that holds the label",
        ),
        (CSV + "}, key: y}", "labels.key: must not be a target, got 'y'"),
        (CSV + "}, key: id, timeout_seconds: -1}", "labels.timeout_seconds: must be > 0, got -1"),
        (
            CSV + ", target_type: float}, key: id}",
            "labels.source.target_type: must be str, int or bool for a classifier, is float",
        ),
        ("{source: {kind: csv, path: p.jsonl, target: y}, key: id}", "predictions.path: must differ from labels.sour"),
        ("{source: {kind: csv, path: '${NO}', target: y}, key: id}", "labels.source.path: the environment variable NO"),
    ],
)
def test_a_mistake_is_one_line(tmp_path: Path, labels: str, line: str) -> None:
    text = SOURCE + MODEL + f"predictions: {{kind: jsonl, path: p.jsonl}}\nlabels: {labels}"
    (found,) = lines_of(tmp_path, text)
    assert found.startswith(line)


def test_standard_input_is_read_once(tmp_path: Path) -> None:
    text = "source: {kind: csv, path: '-'}\n" + MODEL
    text += "labels: {source: {kind: jsonl, path: '-', target: y}, key: id}"
    assert lines_of(tmp_path, text) == ["labels.source.path: standard input is read by source already"]


def test_the_type_of_a_target_matters_where_there_is_one(tmp_path: Path) -> None:
    regressor = "model: [streamkernel.KernelRegressor]\n"
    labels = "labels: {source: {kind: jsonl, path: b, target: y, target_type: float}, key: id}\n"
    assert plan_of(tmp_path, SOURCE + regressor + labels).task == "regression"
    own = "source: {kind: csv, path: a.csv, target: z}\n"
    assert lines_of(tmp_path, own + regressor + labels) == ["source.target_type: must be float for a regressor, is str"]


def test_a_source_that_cannot_be_resumed_is_said(tmp_path: Path) -> None:
    labels = "labels: {source: {kind: jsonl, path: '-', target: y}, key: id}\n"
    plan = plan_of(tmp_path, SOURCE + MODEL + labels + "checkpoint: {directory: state}\n")
    (sentence,) = [line for line in caveats(plan, {}) if "standard input" in line]
    assert sentence.endswith("cannot be resumed: a restart keeps the model, but may miss or repeat labels")


@pytest.mark.parametrize("which", ["source", "labels", None])
def test_files_that_grow_come_as_they_come_which_is_said(tmp_path: Path, which: str | None) -> None:
    follow = {key: ", follow: true" if key == which else "" for key in ("source", "labels")}
    plan = plan_of(
        tmp_path,
        f"source: {{kind: csv, path: a.csv{follow['source']}}}\n{MODEL}checkpoint: {{directory: state}}\n"
        f"labels: {{source: {{kind: csv, path: b.csv, target: y{follow['labels']}}}, key: id}}\n",
    )
    sentence = "records and labels are learned as they arrive: after a kill, their order may"
    assert any(line.startswith(sentence) for line in caveats(plan, {})) is (which is not None)


@pytest.fixture
def here(home: Home) -> Home:
    write_pair(home.folder, "jsonl", 400)
    return home


class TestCheck:
    def test_it_tries_both_sources(self, here: Home) -> None:
        found = check(prepare(here.configure(**sections())))
        assert found.bad == []
        first, second = found.good[:2]
        assert first.startswith(
            "source: jsonl file records.jsonl; 2 of its first 50 records cannot be used; the first, at"
        )
        assert second.startswith(
            "labels: jsonl file labels.jsonl; 1 of its first 21 records cannot be used; the first, at"
        )

    def test_a_first_label_that_cannot_be_used_is_said(self, here: Home) -> None:
        (here.folder / "labels.jsonl").write_text("[]\n")
        (bad,) = check(prepare(here.configure(**sections()))).bad
        said = (
            "labels: jsonl file labels.jsonl; 1 of its first 1 records cannot be used; the first, at line 1 (offset 0)"
        )
        assert bad == f"{said}: a list, not an object: write each record as a JSON object, names and values"


def test_what_waits_is_shown(here: Home, launcher: Launcher) -> None:
    here.configure(**sections())
    ended = launcher.call(here, "run", "config.yaml")
    header = here.header()["labels"]
    assert header["pending"] > 0
    assert f"{header['pending']} records wait for their labels" in ended.stderr
    assert "labels: pending" in ended.stdout
    table = launcher.call(here, "inspect", "out/state").stdout
    assert f"labels        {header['pending']:,} records wait for theirs" in table
    described: dict[str, Any] = json.loads(launcher.call(here, "inspect", "out/state", "--json").stdout)
    assert described["labels"] == header


def test_a_view_has_the_account(here: Home) -> None:
    view = run(prepare(here.configure(**sections())))
    header = here.header()["labels"]
    assert dict(view.labels) == {**header["account"], "pending": header["pending"], "waiting": header["waiting"]}
    assert view.to_json()["labels"] == view.labels
