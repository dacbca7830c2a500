"""`streamkernel predict MODEL FILE`: lines on standard output, dead letters on standard error, exit status."""

from __future__ import annotations

import contextlib
import csv
import json
import logging
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from streamkernel.daemon import predict as predict_file
from streamkernel.daemon.assembly.plan import prepare
from streamkernel.daemon.checkpoints.file import FORMAT_VERSION
from streamkernel.daemon.cli import main
from streamkernel.daemon.runtime import run
from streamkernel.daemon.stream.record_batch import RecordBatch
from tests.daemon.configurations import predicting
from tests.daemon.conftest import Home

GOLDEN = Path(__file__).parents[1] / "golden"

Predict = Callable[..., tuple[int, list[dict[str, Any]], str]]


@pytest.fixture
def predict(capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture) -> Predict:
    """Run the command, and give status, lines and what stands on standard error, log lines last."""

    def call(*arguments: str) -> tuple[int, list[dict[str, Any]], str]:
        capfd.readouterr()
        caplog.clear()
        status = main(["predict", *arguments])
        sys.stdout.flush()
        out, err = capfd.readouterr()
        lines = list(csv.DictReader(out.splitlines())) if "csv" in arguments else map(json.loads, out.splitlines())
        said = [f"{one.getMessage()}\n" for one in caplog.records if one.levelno >= logging.WARNING]
        return status, list(lines), err + "".join(said)

    return call


class TestLines:
    def test_they_are_those_of_mode_predict(self, trained: Home, predict: Predict) -> None:
        status, lines, err = predict("out/state", "other.csv")
        view = run(prepare(trained.configure(**predicting())))
        assert status == 0
        assert lines == trained.lines("own/predictions.jsonl")
        letters = trained.lines("own/dead.jsonl")
        assert err.splitlines()[-1].startswith(f"other.csv: {view.account['dead']} of 400 records have no prediction: ")
        for letter, line in zip(letters, err.splitlines()[:-1], strict=True):
            offset = letter["position"]["offset"]
            n_before = (trained.folder / "other.csv").read_bytes()[:offset].count(b"\n")
            assert line.startswith(f"other.csv, line {n_before + 1} (offset {offset}): {letter['reason']}: ")

    @pytest.mark.usefixtures("trained")
    def test_columns_pass_through(self, predict: Predict) -> None:
        renamed = "{column: y, name: label}"
        _, lines, _ = predict("out/state", "other.csv", "--include", "a", "--include", renamed)
        _, rows, _ = predict("out/state", "other.csv", "--include", "a", "--include", renamed, "--format", "csv")
        assert {row["label"] for row in rows} == {"yes", "no", ""}
        assert [row["prediction"] for row in rows] == [line["prediction"] for line in lines]
        assert {row["checkpoint"] for row in rows} == {"2"}
        assert [(row["a"], row["label"]) for row in rows] == [(line["a"] or "", line["label"] or "") for line in lines]

    def test_an_argument_may_be_a_number_that_json_does_not_have(self, here: Home, predict: Predict) -> None:
        (here.folder / "stream.csv").write_text("a,y\n" + "1,true\n2,false\n" * 50)
        source = {"kind": "csv", "path": "stream.csv", "target": "y", "target_type": "bool"}
        model = [{"river.linear_model.ALMAClassifier": {"B": float("inf")}}]
        for _ in range(2):
            run(prepare(here.configure(source=source, model=model)), max_records=50)
        assert json.dumps(here.header()["models"]).count("Infinity") == 1
        assert here.header()["source"]["account"]["consumed"] == 100
        status, lines, err = predict("out/state", "stream.csv")
        assert (status, len(lines), err) == (0, 100, "")

    @pytest.mark.parametrize("kind", ["growing", "adaptive-regressor", "river", "late-labels"])
    def test_a_checkpoint_of_each_kind(self, kind: str, tmp_path: Path, predict: Predict) -> None:
        folder = GOLDEN / f"checkpoints-v{FORMAT_VERSION}" / kind
        (tmp_path / "new.jsonl").write_text('{"a": 1.0}\n{"b": 0.5}\n')
        (file,) = [*folder.rglob("*.skc")][-1:]
        status, lines, err = predict(str(file), str(tmp_path / "new.jsonl"))
        assert status == 0, err
        assert len(lines) == 2


@pytest.mark.usefixtures("trained")
class TestRefusals:
    @pytest.mark.parametrize(
        ("arguments", "status", "why"),
        [
            ("nothing other.csv", 1, "nothing: there is no such directory or file: start the run that learns first"),
            ("config.yaml other.csv", 2, "MODEL: config.yaml is a configuration: name its checkpoint.directory, or"),
            ("out/state nothing.csv", 1, "nothing.csv: there is no such file"),
            ("other.csv other.csv", 1, "other.csv: not a checkpoint, its first bytes are wrong"),
            ("out/state other.csv --delimiter ;;", 2, "--delimiter: must be one character, got ';;'"),
            (
                "out/state other.csv --delimiter ;",
                1,
                "other.csv: the model has learned none of the inputs that arrive ('a,b,color,y'); it knows 'a', ",
            ),
            ("out/state other.csv --target-type x", 2, "--target-type: must be one of str, int, bool, float"),
            ("out/state other.csv --target-type float", 2, "--target-type: must be str, int or bool for a cl"),
            ("out/state other.jsonl --delimiter ;", 2, "--delimiter: does not apply to jsonl"),
            ("out/state other.csv --format xml", 2, "'xml' is not one of"),
            ("out/state", 2, "Missing argument"),
            ("out/state out", 2, "FILE: out is a directory: give a pattern such as 'out/*.csv'"),
            ("out/state other.csv --encoding utf-16", 2, "FILE: the encoding must write ASCII characters"),
            ("out/state other.csv --target yy", 2, "--target: other.csv has no column 'yy', it has 'a', 'b'"),
            ("out/state other.csv --target aa", 2, "it has 'a', 'b', 'color', 'y', did you mean 'a'?"),
            ("out/state other.csv --include id", 1, "there is no column 'id' to pass through, the header has"),
            ("out/state other.csv --include target", 2, "--include: each line has target already: write {col"),
        ],
    )
    def test_each_is_one_sentence(self, predict: Predict, arguments: str, status: int, why: str) -> None:
        found, lines, err = predict(*arguments.split())
        assert (found, lines) == (status, [])
        assert why in err
        assert "Traceback" not in err

    @pytest.mark.parametrize(
        ("records", "arguments", "advice"),
        [
            (20, ["--multiline"], "most of them for the reason csv_width: try another --delimiter, or --multiline"),
            (5000, [], "most of them for the reason csv_width"),
            (20, ["--input-format", "jsonl"], "most of them for the reason not_json: try --input-format csv"),
        ],
    )
    def test_a_file_that_is_another_is_a_failure(
        self, trained: Home, predict: Predict, records: int, arguments: list[str], advice: str
    ) -> None:
        (trained.folder / "wrong.csv").write_text("a,b,color,y\n" + "1,2\x1b[2J\n" * records + "1,2,red,yes\n")
        status, lines, err = predict("out/state", "wrong.csv", *arguments)
        assert status == 1
        assert len(lines) <= 1
        assert len(err.splitlines()) == 12  # ten of them, the count and the failure
        assert "; the first 10 are shown" in err
        assert advice in err.splitlines()[-1]
        assert "\x1b" not in err


class TestAsAFilter:
    @pytest.mark.usefixtures("processes")
    def test_lines_come_while_records_come_and_a_reader_may_leave(self, trained: Home) -> None:
        process = subprocess.Popen(
            [sys.executable, "-m", "streamkernel", "predict", "out/state", "-"],
            cwd=trained.folder,
            env=trained.environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(b"a,b,color,y\n0.1,0.2,red,\n")
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["position"]["offset"] == 12  # before the input ends
        process.stdout.close()
        with contextlib.suppress(BrokenPipeError):  # it may have noticed by then
            process.stdin.write(b"0.1,0.2,red,\n" * 3000)
            process.stdin.close()
        assert (process.wait(60), process.stderr.read()) == (1, b"")
        process.stderr.close()

    def test_a_signal_ends_it_before_the_file_does(
        self, trained: Home, predict: Predict, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (trained.folder / "long.csv").write_text("a,b,color,y\n" + "0.1,0.2,red,yes\n" * 5000)
        chunk = predict_file._Flushing.chunk

        def interrupted(self: predict_file._Flushing, done: RecordBatch) -> None:
            chunk(self, done)
            signal.raise_signal(signal.SIGINT)

        monkeypatch.setattr(predict_file._Flushing, "chunk", interrupted)
        status, lines, _ = predict("out/state", "long.csv")
        assert status == 128 + signal.SIGINT
        assert 0 < len(lines) < 5000
