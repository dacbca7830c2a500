"""The end says what happened: dead letters with what to do, the status of a bad source, warnings as sentences."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from streamkernel.connectors.ports import CausedFault, Fault, Position
from streamkernel.daemon import cli
from streamkernel.daemon.monitoring.dead_letters import DeadLetterLog, remedy
from streamkernel.daemon.stream.lines import dead_letter
from streamkernel.daemon.stream.record_batch import RecordBatch
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

    def test_more_than_max_rate_of_a_short_file(self, home: Home, capsys: pytest.CaptureFixture[str]) -> None:
        content = "a,b,y\n" + "1,2,yes\n" * 4 + "1\n" * 6
        assert ended(home, content) == 1
        assert "6 of the 10 records were dead letters, more than dead_letters.max_rate (50%)" in capsys.readouterr().err
        assert len(home.lines("out/dead.jsonl")) == 6
        assert home.header()["source"]["account"]["consumed"] == 10

    def test_it_bears_as_many_as_it_says(self, home: Home) -> None:
        assert ended(home, "a,b,y\n" + "1,2,yes\n" * 5 + "1\n" * 5) == 0

    def test_mended_letters_make_it_well(self, home: Home) -> None:
        assert ended(home, "a,b,y\n" + "1,2,yes\n" * 4 + "1;2;yes\n" * 6) == 1
        assert cli.main(["replay", "out/dead.jsonl", "config.yaml"]) == 1
        letters = home.folder / "out/dead.jsonl"
        letters.write_text(letters.read_text().replace("1;2;yes", "1,2,yes"))
        assert cli.main(["replay", "out/dead.jsonl", "config.yaml"]) == 0
        assert cli.main(["run", "config.yaml"]) == 0


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

    def test_what_a_step_of_river_cannot_use(self) -> None:
        fault = CausedFault("refused", "TypeError: unsupported operand type(s) for -: 'str' and 'float'", "type")
        assert "source.inputs.exclude leaves out" in remedy(fault, "source", "csv")
        assert remedy(fault, "source", "river") == ""


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
