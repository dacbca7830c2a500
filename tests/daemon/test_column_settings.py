"""What a configuration may say about the columns of predictions, and what it is told."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from connectors.passed import PassedColumn
from streamkernel.daemon.config.schema import CsvPredictionsConfig, KafkaPredictionsConfig
from streamkernel.daemon.wiring.columns import passed_columns, target_type_of
from tests.daemon.configurations import GOOD, KAFKA, MODEL, SOURCE, lines_of, plan_of

CSV = GOOD + "predictions: {kind: csv, path: out.csv, "
PARQUET = GOOD + "predictions: {kind: parquet, path: out, "
TOPIC = "\npredictions: {kind: kafka, topic: out, bootstrap_servers: a:1, "


def test_a_name_stands_for_a_column(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, CSV + "include: [id, {column: when, name: at, type: timestamp}]}")
    assert isinstance(plan.config.predictions, CsvPredictionsConfig)
    assert passed_columns(plan.config.predictions) == [
        PassedColumn("id", "id"),
        PassedColumn("when", "at", "timestamp"),
    ]


def test_the_time_of_a_message_is_a_timestamp(tmp_path: Path) -> None:
    text = KAFKA + TOPIC + "key: source, include: [kafka.timestamp, {column: kafka.timestamp, name: s, type: float}]}"
    plan = plan_of(tmp_path, text)
    assert isinstance(plan.config.predictions, KafkaPredictionsConfig)
    assert [one.type for one in passed_columns(plan.config.predictions)] == ["timestamp", "float"]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (GOOD, "str"),
        (GOOD.replace("target: y", "target: y, target_type: bool"), "bool"),
        (GOOD + "labels: {key: id, source: {kind: csv, path: b.csv, target: y, target_type: int}}", "int"),
        ("source: {kind: river, dataset: synth.Friedman}\nmodel: [streamkernel.KernelRegressor]", "float"),
        ("source: {kind: river, dataset: Phishing}\n" + MODEL, "str"),
    ],
)
def test_predictions_are_what_targets_are(tmp_path: Path, text: str, kind: str) -> None:
    assert target_type_of(plan_of(tmp_path, text)) == kind


def test_what_cannot_be_is_one_line(tmp_path: Path, subtests: pytest.Subtests) -> None:
    for text, line in [
        (CSV + "include: [target]}", "predictions.include[0]: each line has target already: write {column: target, na"),
        (CSV + "include: [id, id]}", "predictions.include[1]: 'id' stands there twice: drop one, or give it another"),
        (CSV + "include: [{name: a}]}", "predictions.include[0].column: required"),
        (CSV + "include: ['']}", "predictions.include[0].column: must not be empty"),
        (
            CSV + "include: [{column: a, type: data}]}",
            "predictions.include[0].type: must be one of str, int, float, bo",
        ),
        (CSV + "include: id}", "predictions.include: must be a list, got 'id'"),
        (CSV + "include: [5]}", "predictions.include[0]: must be a mapping, got 5"),
        (CSV + "include: [kafka.key]}", "predictions.include[0]: 'kafka.key' is of messages of Kafka, and source is"),
        (
            CSV + "classes: [yes, 'no']}",
            "predictions.classes[0]: must be text, in quotes, as the target_type says, got",
        ),
        (CSV + "classes: [a, b, a]}", "predictions.classes[2]: 'a' stands there twice"),
        (
            CSV + "classes: [a], include: [probability_a]}",
            "predictions.include[0]: each line has probability_a already",
        ),
        (CSV + "classses: [a]}", "predictions.classses: unknown key, did you mean 'classes'?"),
        (PARQUET + "include: [offset]}", "predictions.include[0]: each line has offset already: write {column: offset"),
        (PARQUET + "roll_seconds: 0}", "predictions.roll_seconds: must be > 0, got 0"),
        (PARQUET + "classes: [1]}", "predictions.classes[0]: must be text, in quotes, as the target_type says, got 1"),
        (PARQUET.replace("out", "'-'") + "}", "predictions.path: parquet goes to a folder, not to standard output: na"),
        (
            PARQUET + "}\ncheckpoint: {directory: out/state}",
            "predictions.path: must be a folder for its parts alone, and checkpoint.directory is in it: name another",
        ),
        (
            GOOD.replace("a.csv", "out/a.csv") + "predictions: {kind: parquet, path: ./out/}",
            "predictions.path: must be a folder for its parts alone, and source.path is in it: name another one",
        ),
        (GOOD + "dead_letters: {kind: parquet, path: a}", "dead_letters.kind: parquet is for predictions: what is to"),
        (GOOD + "dead_letters: {kind: csv, path: a, include: [id]}", "dead_letters.include: unknown key"),
        (GOOD + TOPIC + "key: source}", "predictions.key: source needs a source of kind kafka, whose messages have ke"),
        (GOOD + TOPIC + "key: id}", "predictions.key: must be one of position, source, got 'id'"),
        (GOOD + TOPIC + "pass_through: [headers]}", "predictions.pass_through: needs a source of kind kafka, whose m"),
        (
            SOURCE.replace("y}", "y, target_type: float}")
            + "model: [streamkernel.KernelRegressor]\npredictions: {kind: csv, path: a, classes: [a]}",
            "predictions.classes",
        ),
    ]:
        with subtests.test(text=text, line=line):
            assert lines_of(tmp_path, text)[0].startswith(line)


def test_without_pyarrow_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("connectors.parquet.columns", "connectors.parquet.sink"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert lines_of(tmp_path, PARQUET + "}") == [
        "predictions.kind: parquet needs pyarrow: pip install 'streamkernel[parquet]'"
    ]
