"""Texts that UTF-8 does not have: refused in one sentence, but for the names of files that are on the disk."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from streamkernel.daemon import cli
from tests.daemon.configurations import GOOD, MODEL, lines_of
from tests.daemon.conftest import Home

BYTE = "caf\udce9"
NAME = os.fsdecode(b"caf\xe9.csv")
WHOLE = r"\ud800 is half of a character: write the whole one, as it is or as \U with eight digits"
IN_UTF8 = "the byte 0xe9 is not UTF-8: write the text in UTF-8, and rename a file with such a name or use a pattern"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (MODEL + 'source: {kind: csv, path: "\\ud800", target: y}', f"source.path: {WHOLE}"),
        (GOOD + 'predictions: {kind: csv, path: "caf\\udce9.csv"}', f"predictions.path: {IN_UTF8}"),
        (GOOD + '"\\ud800": 1', rf"'\ud800': {WHOLE}"),
        (GOOD + 'checkpoint: {<<: {directory: "\\ud800"}}', f"checkpoint.directory: {WHOLE}"),
    ],
)
def test_the_line_says_where_and_what_to_do(tmp_path: Path, text: str, line: str) -> None:
    assert lines_of(tmp_path, text) == [line]


def test_a_variable_is_named_and_not_shown(tmp_path: Path) -> None:
    text = GOOD + "checkpoint: {directory: 'a/${DIR}/${OTHER}'}"
    (line,) = lines_of(tmp_path, text, DIR="secret\udce9", OTHER="b")
    assert line == f"checkpoint.directory: the environment variable DIR: {IN_UTF8}"


@pytest.mark.parametrize(
    ("arguments", "key"),
    [
        (["run", "c.yaml", "--set", f"source.path={BYTE}"], "--set"),
        (["run", "c.yaml", "--set", f"{BYTE}=1"], "--set"),
        (["predict", "state", BYTE, "--target", BYTE], "--target"),
        (["predict", "state", "a.csv", "--include", "a", "--include", BYTE], "--include"),
        (["predict", "state", "a.csv", "--model", BYTE], "--model"),
        (["promote", "c.yaml", BYTE], "NAME"),
        (["init", BYTE, "--target", BYTE], "--target"),
    ],
)
def test_a_text_of_the_command_line(arguments: list[str], key: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(arguments) == 2
    assert capsys.readouterr().err == f"{key}: {IN_UTF8}\n"


def test_a_file_on_the_disk_may_have_any_name(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    """Standard output is strict here, as it is where the locale is any but C."""
    Path("in").mkdir()
    for name in ("a.csv", NAME):
        Path("in", name).write_text("a,y\n" + "".join(f"{n},{n % 2}\n" for n in range(20)))
    home.configure(
        source={"kind": "csv", "path": "in/*.csv", "target": "y"},
        model=["river.naive_bayes.GaussianNB"],
        checkpoint={"directory": "out/state", "every_records": 10},
    )
    config = os.fsdecode(b"caf\xe9.yaml")
    home.config.rename(config)
    for arguments in (
        ["check", config],
        ["run", config, "--max-records", "25"],
        ["run", config],
        ["inspect", "out/state"],
        ["inspect", "--json", "out/state"],
        ["evaluate", config, "--json", "figures.json"],
        ["predict", "out/state", f"in/{NAME}"],
    ):
        assert cli.main(arguments) == 0, arguments
    assert home.header()["source"]["account"]["learned"] == 40
    assert len(home.lines("out/predictions.jsonl")) == 40
    assert list(json.loads(Path("figures.json").read_text())) == [r"caf\udce9"]
    capsys.readouterr()
    assert cli.main(["init", f"in/{NAME}"]) == 1
    assert capsys.readouterr().err.endswith(f": {IN_UTF8}\n")
