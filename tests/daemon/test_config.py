"""What a configuration may say: every mistake is one line with the path of its key, all at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from streamkernel.daemon.assembly.plan import prepare
from streamkernel.daemon.config.problems import ConfigError
from streamkernel.daemon.config.schema import Config, KafkaSourceConfig
from tests.daemon.configurations import CSV, GOOD, KAFKA, MODEL, PREDICT, SAVED, SOURCE, lines_of, plan_of, topic
from tests.daemon.conftest import Home, Launcher


def test_only_source_and_model_are_required(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, GOOD)
    assert plan.config.predictions is plan.config.dead_letters is plan.config.checkpoint is None
    assert plan.config.metrics is not None
    assert (plan.config.metrics.host, plan.config.metrics.port, plan.config.metrics.window) == ("127.0.0.1", 9108, 1000)
    assert plan.task == "classification"
    assert plan.report == ("accuracy", "macro_f1", "log_loss")


def test_a_mistake_is_one_line(tmp_path: Path, subtests: pytest.Subtests) -> None:
    for text, line in [
        ("", "config.yaml: must hold a mapping with the keys source and model, holds nothing"),
        ("- a", "config.yaml: must hold a mapping with the keys source and model, holds a list"),
        ("a: [1, 2", "config.yaml, line 1, column 9: cannot be read as YAML: close the bracket that line 1 opens"),
        ("a: 'b\n\n", "line 3, column 1: cannot be read as YAML: close the quote that line 1 opens (found unexpected"),
        ("a: [\x85{b: ${X}}\u2028]", 'inside {...} write "${VAR}" with its quotes (expected'),
        ("a: b: c", "line 1, column 5: cannot be read as YAML: check the indentation of 'a', and put a text that"),
        (
            "a:\n  b: 1\nc: 2\n\n  d: 3",
            "line 5, column 4: cannot be read as YAML: check the indentation of 'c' and 'd', and",
        ),
        ("a:\n\tb: 1", "line 2, column 1: cannot be read as YAML: indent with spaces, not with a tab"),
        ('a: "C:\\data"', "cannot be read as YAML: put a text with backslashes in single quotes"),
        ("a: @b", "line 1, column 4: cannot be read as YAML: put this text in quotes"),
        ("a: 1\nb\nc: 2", "cannot be read as YAML: write a key as 'key: value'"),
        ("a: !!python/object:os.system {}", "cannot be read as YAML: could not determine a constructor"),
        ("a: &a [*a]", "config.yaml: nested too deeply, or an anchor contains itself"),
        ("metrics: {host: ${HOST}}", 'cannot be read as YAML: inside {...} write "${VAR}" with its quotes'),
        (SOURCE, "model: required"),
        (MODEL, "source: required"),
        (GOOD + "mode: learn\nmode: learn", "mode: given twice, in line 3 and in line 4"),
        (GOOD + "metrics: {port: 1, port: 2}", "metrics.port: given twice, in line 3 and in line 3"),
        (GOOD + "predicitons: null", "predicitons: unknown key, did you mean 'predictions'?"),
        (GOOD + "1: 2", "configuration: a key must be text, got 1"),
        (
            MODEL + "source: {kind: kafca}",
            "source.kind: must be one of csv, jsonl, river, kafka, journal, got 'kafca', did you",
        ),
        (MODEL + "source: {path: a}", "source.kind: required, one of csv, jsonl, river, kafka"),
        (MODEL + "source: {kind: csv}", "source.path: required"),
        (CSV + "delimeter: ','}", "source.delimeter: unknown key, did you mean 'delimiter'?"),
        (CSV + "encoding: utf-99}", "source.encoding: unknown encoding 'utf-99'"),
        (CSV + "encoding: utf-16}", "source: the encoding must write ASCII characters as"),
        (MODEL + "source: {kind: csv, path: 5}", "source.path: must be text, got 5"),
        (MODEL + 'source: {kind: csv, path: "a\\0b"}', "source.path: must not contain a null character"),
        (CSV + "target_type: float}", "source.target_type: must be str, int or bool for a"),
        (
            MODEL + "source: {kind: river, dataset: Phishin}",
            "source: river has no data set 'Phishin', did you mean 'Phishing'?",
        ),
        (
            MODEL + "source: {kind: river, dataset: synth.SEA, args: {sed: 1}}",
            "source: river data set synth.SEA: it does not",
        ),
        (
            KAFKA.replace("t,", "'a b',"),
            "source.topic: must be letters, digits, '.', '_' and '-', at most 249 of them, got",
        ),
        (KAFKA.replace("a:1", "a:b"), "source.bootstrap_servers[0]: must be host:port, got 'a:b'"),
        (KAFKA.replace("a:1", "'a:1,b:x'"), "source.bootstrap_servers[1]: must be host:port, got 'b:x'"),
        (topic("partitions: some"), "source.partitions: must be all, or a list of the numbers of partitions"),
        (topic("start: now"), "source.start: must be one of earliest, latest, got 'now'"),
        (topic("on_gap: skp"), "source.on_gap: must be one of stop, skip, got 'skp', did you mean 'skip'?"),
        (
            topic("order: logged"),
            "source.order: logged needs checkpoint.directory (in mode predict, in addition to serve_from): the",
        ),
        (topic("target_type: float"), "source.target_type: must be str, int or bool for a classifier"),
        (topic("options: {groupid: g}"), "source.options.groupid: unknown key, did you mean 'group_id'?"),
        (
            topic("options: {enable_auto_commit: true}"),
            "source.options.enable_auto_commit: cannot be set: the checkpoint stores where to continue",
        ),
        (
            topic("options: {sasl_mechanism: PLAIN}"),
            "source.options: sasl_mechanism needs a security_protocol of SASL_PLAINTEXT or SASL_SSL",
        ),
        (
            SOURCE + "model: river.linear_model.LogisticRegression",
            "model: must be a list, got 'river.linear_model.Logistic",
        ),
        (GOOD + "mode: lern", "mode: must be one of learn, predict, got 'lern', did you mean 'learn'?"),
        (
            GOOD + "mode: predict",
            "serve_from: required in mode predict: the checkpoint directory of the run that learned",
        ),
        (
            GOOD + "mode: predict\nserve_from: a/b\ncheckpoint: {directory: a/../a/b}",
            "checkpoint.directory: must differ from serve_from, which is read-only: leave it out to store nothing",
        ),
        (
            PREDICT + "initial_model: {checkpoint: b}",
            "initial_model: not in mode predict, which reads its model from serve_from",
        ),
        (
            GOOD + "serve_from: a",
            "serve_from: only in mode predict. A run that learns starts from a trained model with initial_model",
        ),
        (
            GOOD + "reload: 5",
            "reload: only in mode predict. A run that learns starts from a trained model with initial_model",
        ),
        (
            GOOD + "initial_model: {checkpoint: a}\ncheckpoint: {directory: ./a}",
            "initial_model.checkpoint: must differ from checkpoint.directory, which this run continues anyway",
        ),
        (
            GOOD + "predictions: {kind: excel, path: a}",
            "predictions.kind: must be one of jsonl, csv, kafka, parquet, none, got 'excel'",
        ),
        (GOOD + "predictions: {kind: jsonl, path: a.csv}", "predictions.path: must differ from source.path"),
        (
            GOOD + "predictions: {kind: csv, path: p}\ndead_letters: {kind: jsonl, path: p}",
            "dead_letters.path: must differ from predictions.path",
        ),
        (SAVED + "every_records: -5}", "checkpoint.every_records: must be > 0, got -5"),
        (SAVED + "every_seconds: .inf}", "checkpoint.every_seconds: must be a finite number, got"),
        (
            GOOD + "metrics: {report: [mae]}",
            "metrics.report[0]: mae does not fit a model for classification, use accuracy",
        ),
        (
            GOOD + "metrics: {basic_auth: {username: 'a:b', password: c}}",
            "metrics.basic_auth.username: must not contain a",
        ),
        (GOOD + "limits: {max_waiting_bytes: 9}", "limits.max_waiting_bytes: must be >= 1048576, got 9"),
        (GOOD + "imports: [not a name]", "imports[0]: must be the name of a Python package, got 'not a name'"),
        (GOOD + "log: loud", "log: must be a mapping, got 'loud'"),
        (SOURCE + "model: [{streamkernel.KernelClassifier: {max_features: -5}}]", "model[0].max_features: "),
        (
            SOURCE + "model: [{streamkernel.KernelClassifier: {max_feature: 5}}]",
            "model[0].max_feature: unknown argument of",
        ),
        (
            SOURCE + "model: [streamkernel.KernelClasifier]",
            "model[0]: streamkernel has no KernelClasifier, did you mean",
        ),
        (SOURCE + "model: [streamkernel.KernelRegressor]", "source.target_type: must be float for a regressor, is str"),
    ]:
        with subtests.test(text=text, line=line):
            (found,) = lines_of(tmp_path, text)
            assert line in found
            assert "\n" not in found


def test_all_mistakes_come_at_once(tmp_path: Path) -> None:
    text = """
    source: {kind: csv, path: "${NOWHERE}", delimiter: ab}
    model:
      - river.compose.Discrad
      - streamkernel.KernelClassifier: {max_feature: 5, kernel: {os.system: {args: [ls]}}}
    metrics: {port: -1}
    metrics: {prot: 1}
    """
    assert lines_of(tmp_path, text) == [
        "metrics: given twice, in line 6 and in line 7",
        "source.path: the environment variable NOWHERE is not set",
        "source.delimiter: must be one character, got 'ab'",
        "metrics.prot: unknown key, did you mean 'port'?",
        "model[0]: river.compose has no Discrad, did you mean 'Discard'?",
        "model[1].max_feature: unknown argument of streamkernel.KernelClassifier, did you mean 'max_features'?",
        "model[1].kernel: os.system is outside river and streamkernel; list its package under imports",
    ]


def test_a_bad_configuration_ends_with_status_2_and_no_traceback(home: Home, launcher: Launcher) -> None:
    home.config.write_text(SOURCE + "model: [{streamkernel.KernelClassifier: {max_feature: 5}}]\nmode: lern\n")
    ended = launcher.call(home, "run", "config.yaml")
    assert ended.returncode == 2
    assert ended.stdout == ""
    assert ended.stderr.splitlines() == [
        "mode: must be one of learn, predict, got 'lern', did you mean 'learn'?",
        "model[0].max_feature: unknown argument of streamkernel.KernelClassifier, did you mean 'max_features'?",
    ]


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", None])
def test_a_file_that_is_no_text_is_one_line(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "config.yaml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError, match=r"is not UTF-8 text \(byte 0\)|cannot be read: No such file") as caught:
        prepare(path)
    assert len(caught.value.lines) == 1


def test_a_topic_of_kafka(tmp_path: Path) -> None:
    plan = plan_of(
        tmp_path, KAFKA.replace("a:1", "'a:1, b'").replace("}", "options: {fetch_max_wait_ms: 5, client_rack: null}}")
    )
    assert isinstance(plan.config.source, KafkaSourceConfig)
    assert plan.config.source.bootstrap_servers == ["a:1", "b"]
    assert plan.config.source.options.given() == {"fetch_max_wait_ms": 5}
    assert plan.source.describe() == "kafka topic t at a:1,b"


def test_the_schema_describes_what_is_accepted() -> None:
    schema = Config.model_json_schema()
    assert set(schema["required"]) == {"source"}
    assert schema["oneOf"] == [{"required": ["model"]}, {"required": ["models"]}]
    assert schema["additionalProperties"] is False
    assert set(schema["properties"]) == set(Config.model_fields)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.text(max_size=8), children, max_size=3),
    max_leaves=8,
)
sections = st.fixed_dictionaries(
    {},
    optional={
        name: json_values
        | st.dictionaries(st.sampled_from(["kind", "path", "target", "directory", "port", "level", "x"]), json_values)
        for name in [
            "source",
            "model",
            "mode",
            "predictions",
            "dead_letters",
            "checkpoint",
            "metrics",
            "imports",
            "log",
        ]
    },
)


@given(sections)
def test_anything_is_a_configuration_or_clear_lines(
    tmp_path_factory: pytest.TempPathFactory, data: dict[str, Any]
) -> None:
    path = tmp_path_factory.getbasetemp() / "anything.yaml"
    path.write_text(yaml.safe_dump(data, allow_unicode=True), encoding="utf-8")
    lines = ["it is one"]
    try:
        prepare(path, {})
    except ConfigError as error:
        lines = error.lines
    assert lines
    assert all(line and "\n" not in line for line in lines)


class TestEnvironment:
    """`${VAR}`: secrets and places come from the environment; secrets are shown nowhere."""

    def test_it_is_taken_in_values_and_stays_a_name_in_what_is_kept(self, tmp_path: Path) -> None:
        text = "source: {kind: csv, path: '${PLACE}/a.csv', target: y}\n" + MODEL
        plan = plan_of(tmp_path, text, PLACE="/data")
        assert plan.config.source.path == "/data/a.csv"  # type: ignore[union-attr]
        assert plan.raw["source"]["path"] == "${PLACE}/a.csv"
        assert plan.redact("cannot read /data/a.csv") == "cannot read /data/a.csv"

    def test_numbers_become_numbers(self, tmp_path: Path) -> None:
        text = f"""{SOURCE}
model: [{{streamkernel.KernelClassifier: {{seed: "${{SEED}}", regularization: "${{NU}}"}}}}]
metrics: {{port: "${{PORT}}"}}"""
        plan = plan_of(tmp_path, text, SEED="17", PORT="9999", NU="1e-5")
        assert (plan.model.seed, plan.model.regularization) == (17, 1e-5)  # type: ignore[union-attr]
        assert plan.config.metrics is not None
        assert plan.config.metrics.port == 9999

    def test_a_secret_of_digits_stays_a_text(self, tmp_path: Path) -> None:
        text = GOOD + "metrics: {basic_auth: {username: me, password: '${PASSWORD}'}}"
        plan = plan_of(tmp_path, text, PASSWORD="0123")
        assert plan.config.metrics is not None
        assert plan.config.metrics.basic_auth is not None
        assert plan.config.metrics.basic_auth.password.get_secret_value() == "0123"
        assert "0123" not in repr(plan.config)

    @pytest.mark.parametrize(
        "text", [GOOD + "mode: '${SECRET}'", GOOD + "metrics: {port: '${SECRET}'}", GOOD + "log: '${SECRET}'"]
    )
    def test_an_error_line_does_not_show_it(self, tmp_path: Path, text: str) -> None:
        (line,) = lines_of(tmp_path, text, SECRET="hunter2")
        assert "hunter2" not in line
        assert "${SECRET}" in line

    def test_what_is_no_variable_is_an_error(self, tmp_path: Path) -> None:
        assert lines_of(tmp_path, GOOD + "log: {level: '${9}'}") == [
            "log.level: '${9}' is not a variable: write ${NAME}"
        ]
        assert lines_of(tmp_path, GOOD + "mode: '${A'") == ["mode: '${A' is not a variable: write ${NAME}"]

    def test_yaml_is_never_made_of_it(self, tmp_path: Path) -> None:
        (line,) = lines_of(tmp_path, GOOD + "log: '${LOG}'", LOG="{level: debug}")
        assert line == "log: must be a mapping, got '${LOG}'"
