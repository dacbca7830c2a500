"""Columns of predictions: what a configuration may say of them, and whole runs that are killed and go on."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from streamkernel.connectors.ports import SinkError, SourceError
from streamkernel.daemon.assembly.plan import prepare
from streamkernel.daemon.check import check
from streamkernel.daemon.runtime import run
from tests.daemon.configurations import GOOD, SOURCE, lines_of
from tests.daemon.conftest import Home
from tests.daemon.outputs import RIVER, configured
from tests.importing import import_again

RECORDS = 700
STEPS = [{"river.compose.Discard": {"args": ["id", "when"]}}, *RIVER]
INCLUDE = ["id", {"column": "when", "type": "timestamp"}]
PARQUET = {"kind": "parquet", "path": "out/predictions", "include": INCLUDE, "classes": [True]}
CSV = {"kind": "csv", "path": "out/predictions.csv", "include": INCLUDE, "classes": [True]}
WAY_ON = "change them back, give another path to continue in a new f"
TABLES = pytest.mark.parametrize("output", [PARQUET, CSV], ids=["parquet", "csv"])


def write_ids(path: Path) -> None:
    """Write records with an id that reads as a number, and every kind that is not learned."""
    odd = {5: ",,,,", 6: "1,2", 7: " ", 8: "00008,,inf,1,yes"}
    lines = [
        odd.get(number % 100)
        or f"{number:05d},2026-11-22T09:00:{number % 60:02d}Z,{number % 7},{number % 3},{'no' if number % 2 else 'yes'}"
        for number in range(RECORDS)
    ]
    path.write_text("id,when,a,b,y\n" + "\n".join(lines) + "\n")


def outputs(home: Home) -> dict[str, bytes]:
    """Give what is below the folder of outputs, but for the checkpoints."""
    out = home.folder / "out"
    found = (one for one in sorted(out.rglob("*")) if one.is_file() and "state" not in one.parts)
    return {str(one.relative_to(out)): one.read_bytes() for one in found}


def arranged(home: Home, output: dict[str, Any]) -> Home:
    write_ids(home.folder / "stream.csv")
    configured(home, model=STEPS, predictions=output, checkpoint={"directory": "out/state", "every_records": 100})
    return home


def test_what_passes_stands_in_the_rows(home: Home) -> None:
    arranged(home, PARQUET)
    run(prepare(home.config))
    rows = pq.read_table(home.folder / "out/predictions").to_pylist()
    assert [row["id"] for row in rows[:6]] == ["00000", "00001", "00002", "00003", "00004", None]
    assert rows[3]["when"].isoformat() == "2026-11-22T09:00:03+00:00"
    assert all(row["probability_true"] + row["other_probability"] == pytest.approx(1.0) for row in rows)
    assert set(rows[9]) == {
        *("partition", "offset", "prediction", "target"),
        *("probability_true", "other_probability", "id", "when"),
    }


@TABLES
def test_other_columns_are_refused_and_each_way_on_leads_on(home: Home, output: dict[str, Any]) -> None:
    arranged(home, output)
    run(prepare(home.config), max_records=300)
    before = outputs(home)
    for more in ({"include": [*INCLUDE, "a"]}, {"classes": [True, False]}):
        arranged(home, {**output, **more})
        assert any(WAY_ON in line for line in check(prepare(home.config)).bad)
        with pytest.raises(SinkError, match=WAY_ON):
            run(prepare(home.config))
        assert outputs(home) == before
    arranged(home, {**output, "include": ["id"]})
    with pytest.raises(SinkError, match=WAY_ON):
        run(prepare(home.config))
    # Back, and on.
    arranged(home, output)
    run(prepare(home.config), max_records=100)
    # Another path.
    other = {**output, "path": output["path"].replace("predictions", "others"), "include": ["id"]}
    arranged(home, other)
    run(prepare(home.config), max_records=100)
    # Anew.
    arranged(home, {**output, "path": other["path"]})
    run(prepare(home.config), fresh=True)
    assert home.header()["source"]["account"]["consumed"] == RECORDS
    assert any(name.startswith("others") and ".old" in name for name in outputs(home))


def test_a_column_that_is_not_there_is_told_before_anything_begins(home: Home) -> None:
    arranged(home, {**CSV, "include": ["idd"]})
    (bad,) = check(prepare(home.config)).bad
    assert (
        "there is no column 'idd' to pass through, the header has 'id', 'when', 'a', 'b', 'y', did you mean 'id'?"
        in bad
    )
    with pytest.raises(SourceError, match="there is no column 'idd' to pass through"):
        run(prepare(home.config))
    assert not (home.folder / "out/predictions.csv").exists()


ROWS = GOOD + "predictions: {kind: csv, path: out.csv, "
PARTS = GOOD + "predictions: {kind: parquet, path: out, "
TOPIC = "\npredictions: {kind: kafka, topic: out, bootstrap_servers: a:1, "


def test_what_cannot_be_is_one_line(tmp_path: Path, subtests: pytest.Subtests) -> None:
    for text, line in [
        (
            ROWS + "include: [target]}",
            "predictions.include[0]: each line has target already: write {column: target, na",
        ),
        (
            ROWS + "include: [id, id]}",
            "predictions.include[1]: 'id' is listed twice: remove one, or rename it",
        ),
        (ROWS + "include: [{name: a}]}", "predictions.include[0].column: required"),
        (ROWS + "include: ['']}", "predictions.include[0].column: must not be empty"),
        (
            ROWS + "include: [{column: a, type: data}]}",
            "predictions.include[0].type: must be one of str, int, float, bo",
        ),
        (ROWS + "include: id}", "predictions.include: must be a list, got 'id'"),
        (ROWS + "include: [5]}", "predictions.include[0]: must be a mapping, got 5"),
        (
            ROWS + "include: [kafka.key]}",
            "predictions.include[0]: 'kafka.key' exists only in Kafka messages, and source.kind is",
        ),
        (
            ROWS + "classes: [yes, 'no']}",
            "predictions.classes[0]: must be text, in quotes, as the target_type says, got",
        ),
        (ROWS + "classes: [a, b, a]}", "predictions.classes[2]: 'a' is listed twice"),
        (
            ROWS + "classes: [a], include: [probability_a]}",
            "predictions.include[0]: each line has probability_a already",
        ),
        (ROWS + "classses: [a]}", "predictions.classses: unknown key, did you mean 'classes'?"),
        (
            PARTS + "include: [offset]}",
            "predictions.include[0]: each line has offset already: write {column: offset",
        ),
        (PARTS + "roll_seconds: 0}", "predictions.roll_seconds: must be > 0, got 0"),
        (
            PARTS + "classes: [1]}",
            "predictions.classes[0]: must be text, in quotes, as the target_type says, got 1",
        ),
        (
            PARTS.replace("out", "'-'") + "}",
            "predictions.path: parquet goes to a folder, not to standard output: na",
        ),
        (
            PARTS + "}\ncheckpoint: {directory: out/state}",
            "predictions.path: must be a folder only for its parts, and checkpoint.directory is in it: name another",
        ),
        (
            GOOD.replace("a.csv", "out/a.csv") + "predictions: {kind: parquet, path: ./out/}",
            "predictions.path: must be a folder only for its parts, and source.path is in it: name another folder",
        ),
        (
            GOOD.replace("a.csv", "[b.csv, out/*.csv]") + "predictions: {kind: parquet, path: out}",
            "predictions.path: must be a folder only for its parts, and source.path is in it: name another folder",
        ),
        (
            GOOD + "dead_letters: {kind: parquet, path: a}",
            "dead_letters.kind: parquet is only for predictions: use jsonl,",
        ),
        (GOOD + "dead_letters: {kind: csv, path: a, include: [id]}", "dead_letters.include: unknown key"),
        (
            GOOD + TOPIC + "key: source}",
            "predictions.key: source needs a source of kind kafka: only its messages have keys.",
        ),
        (GOOD + TOPIC + "key: id}", "predictions.key: must be one of position, source, got 'id'"),
        (
            GOOD + TOPIC + "pass_through: [headers]}",
            "predictions.pass_through: needs a source of kind kafka: only messages have headers",
        ),
        (
            SOURCE.replace("y}", "y, target_type: float}")
            + "model: [streamkernel.KernelRegressor]\npredictions: {kind: csv, path: a, classes: [a]}",
            "predictions.classes",
        ),
    ]:
        with subtests.test(text=text, line=line):
            assert lines_of(tmp_path, text)[0].startswith(line)


def test_without_pyarrow_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import_again(monkeypatch, "streamkernel.connectors.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert lines_of(tmp_path, PARTS + "}") == [
        "predictions.kind: parquet needs libraries that are not installed: pip install 'streamkernel[parquet]'"
    ]
