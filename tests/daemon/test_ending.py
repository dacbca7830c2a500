"""The end says what happened: dead letters with what to do, the status of a bad source, warnings as sentences."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

from streamkernel.connectors.ports import CausedFault, Fault, Position
from streamkernel.daemon import cli
from streamkernel.daemon.base.dead_letters import LABEL_REASONS, REASONS
from streamkernel.daemon.cli import main
from streamkernel.daemon.config.schema import LogConfig
from streamkernel.daemon.config.secrets import Redactor
from streamkernel.daemon.monitoring.dead_letters import DeadLetterLog, remedy
from streamkernel.daemon.monitoring.log import start_logging
from streamkernel.daemon.stream.lines import dead_letter
from streamkernel.daemon.stream.record_batch import RecordBatch
from streamkernel.estimators import base
from tests.daemon.conftest import Home
from tests.daemon.outputs import RIVER, configured, predictions

CSV = {"kind": "csv", "path": "stream.csv", "target": "y", "target_type": "bool"}


def ended(home: Home, content: str | bytes, command: str = "run", **sections: Any) -> int:
    content = content if isinstance(content, bytes) else content.encode()
    (home.folder / "stream.csv").write_bytes(content)
    configured(home, **{"source": CSV, "dead_letters": predictions("out/dead.jsonl"), **sections})
    return cli.main([command, "config.yaml"])


class TestStatus:
    def test_everything_dead(self, home: Home, capsys: pytest.CaptureFixture[str]) -> None:
        assert ended(home, "a,b,y\n" + "1;2;yes\n" * 5 + "\n") == 1
        said = capsys.readouterr()
        assert "none of the 5 records could be used: the source does not match" in said.err
        assert (
            "5 dead letters of the records: csv_width: 1 field where the header has 3: set source.delimiter to"
            in said.err
        )
        assert said.err.count("Traceback") == 0
        # The configuration is wrong, not the letters.
        assert "streamkernel replay" not in said.err
        # It is all in the checkpoint, and a restart says the same.
        assert home.header()["source"]["account"]["dead"] == 5
        assert cli.main(["run", "config.yaml"]) == 1
        assert "none of the 5 records could be used" in capsys.readouterr().err

    def test_evaluate_says_it_too(self, home: Home, capsys: pytest.CaptureFixture[str]) -> None:
        assert ended(home, "a,b,y\n" + "1;2;yes\n" * 5, "evaluate") == 1
        assert "none of the 5 records could be used" in capsys.readouterr().err

    def test_more_than_max_rate_of_a_short_file(self, home: Home, capsys: pytest.CaptureFixture[str]) -> None:
        content = "a,b,y\n" + "1,2,yes\n" * 4 + "1\n" * 6
        assert ended(home, content) == 1
        assert "6 of the 10 records were dead letters, more than dead_letters.max_rate (50%)" in capsys.readouterr().err
        assert len(home.lines("out/dead.jsonl")) == 6
        assert home.header()["source"]["account"]["consumed"] == 10

    def test_it_bears_as_many_as_it_says(self, home: Home) -> None:
        assert ended(home, "a,b,y\n" + "1,2,yes\n" * 5 + "1\n" * 5) == 0

    def test_all_may_be_borne(self, home: Home) -> None:
        assert ended(home, "a,b,y\n1\n1\n", dead_letters={"kind": "none", "max_rate": 1}) == 0

    def test_mended_letters_make_it_well(self, home: Home) -> None:
        assert ended(home, "a,b,y\n" + "1,2,yes\n" * 4 + "1;2;yes\n" * 6) == 1
        assert cli.main(["replay", "out/dead.jsonl", "config.yaml"]) == 1
        letters = home.folder / "out/dead.jsonl"
        letters.write_text(letters.read_text().replace("1;2;yes", "1,2,yes"))
        assert cli.main(["replay", "out/dead.jsonl", "config.yaml"]) == 0
        assert cli.main(["run", "config.yaml"]) == 0

    def test_late_labels(self, home: Home, capsys: pytest.CaptureFixture[str]) -> None:
        (home.folder / "labels.csv").write_text("id,y\n1\n2\n")
        source = {"kind": "csv", "path": "stream.csv"}
        labels = {"source": {**CSV, "path": "labels.csv"}, "key": "id"}
        assert ended(home, "id,a\n1,2\n2,3\n", source=source, labels=labels) == 1
        said = capsys.readouterr().err
        assert "none of the 2 labels could be used" in said
        assert (
            "2 dead letters of the labels: csv_width: 1 field where the header has 2: set labels.source.delimiter"
            in said
        )


def test_the_table_says_which_rows_are_of_all_runs(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    said = []
    for _ in range(2):  # the second run has nothing new
        assert ended(home, "a,b,y\n" + "1,2,yes\n" * 5) == 0
        said.append("account: of all runs since the first start" in capsys.readouterr().out)
    assert said == [False, True]


class TestLog:
    def test_the_way_back_is_told(self, home: Home, capsys: pytest.CaptureFixture[str]) -> None:
        assert ended(home, b"a,b,y\n1,\xe9,yes\n" + b"1,2,yes\n" * 3) == 0
        said = capsys.readouterr().err
        assert "a dead letter of the records at line 2 (offset 6): encoding: byte 0xe9 at 2 is not utf-8" in said
        assert "1 dead letter of the records: encoding: byte 0xe9 at 2 is not utf-8: set source.encoding to" in said
        assert "streamkernel replay out/dead.jsonl config.yaml learns them" in said

    def test_lines_are_bounded(self, caplog: pytest.LogCaptureFixture) -> None:
        now = [0.0]
        log = DeadLetterLog({"source": "csv"}, lambda: now[0])

        def bad(reason: str, offset: int) -> None:
            done = RecordBatch()
            done.letters.append(dead_letter(Position("", 0, offset), reason, "because", b""))
            done.faults.append(Fault(reason, "because"))
            log.chunk(done)

        with caplog.at_level(logging.INFO):
            for second in range(121):
                now[0] = float(second)
                for _ in range(10):
                    bad("csv_width", second)
                bad("target", 7)
            log.summarize("mend them")
        assert caplog.messages == [
            "a dead letter of the records at offset 0: csv_width: because",
            "a dead letter of the records at offset 7: target: because",
            "600 dead letters of the records, the last at offset 60: csv_width: because",
            "60 dead letters of the records, the last at offset 7: target: because",
            "600 dead letters of the records, the last at offset 120: csv_width: because",
            "60 dead letters of the records, the last at offset 7: target: because",
            f"1210 dead letters of the records: csv_width: because: {remedy(Fault('csv_width', ''), 'source', 'csv')}",
            f"121 dead letters of the records: target: because: {remedy(Fault('target', ''), 'source', 'csv')}",
            "mend them",
        ]

    @pytest.mark.parametrize("reason", sorted({*REASONS, *LABEL_REASONS} - {"refused"}))
    def test_each_reason_has_a_remedy(self, reason: str) -> None:
        assert remedy(Fault(reason, "it is broken"), "source", "csv")

    @pytest.mark.parametrize(
        ("fault", "kind", "advice"),
        [
            (("refused", "it has no y", "type"), "csv", "source.inputs.exclude leaves out"),
            (("refused", "it has no y", "type"), "river", ""),
            (("csv_width", "invalid", "quotes"), "csv", "close the quote"),
            (("nested", "twice", "same_name"), "jsonl", "rename one"),
            (("corrupt", "short"), "kafka", "check what writes to the topic"),
            (("corrupt", "short"), "csv", "that file cannot be read"),
            (("encoding", "0xe9"), "jsonl", "convert the text to UTF-8"),
            (("not_json", "a comma"), "jsonl", "write one JSON object a line; source.kind: csv"),
            (("not_json", "a comma"), "kafka", "check what writes to the topic"),
            (("not_json", "a comma"), "journal", "write each record as a JSON object"),
        ],
    )
    def test_the_remedy_follows_the_cause_and_the_source(self, fault: tuple[str, ...], kind: str, advice: str) -> None:
        said = remedy(CausedFault(*fault) if fault[2:] else Fault(*fault), "source", kind)
        assert said.startswith(advice)
        assert bool(said) == bool(advice)


def test_the_input_that_select_trips_over_is_named(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    model = [{"river.compose.Select": {"args": ["a", "b"]}}, *RIVER]
    content = "a,b,y\n" + "1,2,yes\n" * 5 + "1,,yes\n"
    assert ended(home, content, model=model) == 0
    (letter,) = home.lines("out/dead.jsonl")
    assert letter["reason"] == "refused"
    assert letter["detail"].startswith("KeyError: 'b': a step of the model needs this input")
    assert "1 dead letter of the records: refused: KeyError: 'b'" in capsys.readouterr().err
    # The way on that it names.
    model[0] = {"river.compose.Discard": {"args": ["c"]}}
    outputs = {"predictions": predictions("new.jsonl"), "dead_letters": predictions("none.jsonl")}
    assert ended(home, content, model=model, checkpoint={"directory": "new"}, **outputs) == 0
    assert home.lines("none.jsonl") == []


@pytest.mark.parametrize("kind", ["Perceptron", "LogisticRegression", "ALMAClassifier"])
def test_labels_that_a_model_for_two_classes_cannot_take_name_the_way_on(
    home: Home, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    content = "a,b,y\n" + "1,2,spam\n2,1,ham\n" * 5
    source = CSV | {"target_type": "str"}
    name = f"river.linear_model.{kind}"
    assert ended(home, content, source=source, model=[name]) == 1
    said = capsys.readouterr().err
    advice = f"{kind} knows only the labels true and false: set source.target_type: bool (it reads yes, no, true,"
    starts, first, *_ = [line for line in said.splitlines() if advice in line]
    assert f"model: {advice}" in starts
    assert "a dead letter of the records at line 2 (offset 6)" in first
    assert "inputs.exclude" not in said
    assert cli.main(["check", "config.yaml"]) == 0
    assert f"model: {advice}" in capsys.readouterr().out
    # The two ways on that it names.
    model = [{"river.multiclass.OneVsRestClassifier": {"classifier": {name: {}}}}]
    outputs = {"predictions": predictions("new.jsonl"), "dead_letters": predictions("none.jsonl")}
    assert ended(home, content, source=source, model=model, checkpoint={"directory": "new"}, **outputs) == 0
    assert home.lines("new.jsonl")[-1]["prediction"] in ("spam", "ham")
    labeled = content.replace("spam", "yes").replace("ham", "no")
    assert ended(home, labeled, model=[name], checkpoint=None, predictions=None, dead_letters=None) == 0
    assert "knows only the labels true" not in capsys.readouterr().err


@pytest.fixture
def logged() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        start_logging(LogConfig(), Redactor({"password": "hush"}))
        yield


@pytest.mark.usefixtures("logged")
def test_a_warning_of_ours_is_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    warnings.warn_explicit("inputs past max_inputs=3 are ignored", RuntimeWarning, base.__file__, 122)
    told = capsys.readouterr().err
    assert told.endswith("Z warning inputs past max_inputs=3 are ignored\n")


@pytest.mark.usefixtures("logged")
def test_a_warning_of_others_says_where_it_arose(capsys: pytest.CaptureFixture[str]) -> None:
    warnings.warn_explicit("divided by zero", RuntimeWarning, __file__, 1)
    told = capsys.readouterr().err
    assert told.endswith(f"warning {__file__}:1: RuntimeWarning: divided by zero\n")


def test_records_without_labels_have_no_loss(here: Home, capsys: pytest.CaptureFixture[str]) -> None:
    lines = "\n".join('{"a": 1}' for _ in range(1100))
    (here.folder / "stream.jsonl").write_text(lines + "\n")
    model = [{"streamkernel.KernelClassifier": {"seed": 1, "max_features": 64}}]
    here.configure(source={"kind": "jsonl", "path": "stream.jsonl", "target": "y"}, model=model)
    assert main(["run", "config.yaml"]) == 1
    told = capsys.readouterr().err
    assert " info    600 records, 0 features\n" in told
    assert "nan" not in told
