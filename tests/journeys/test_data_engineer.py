"""A data engineer with files: from an export to predictions in a table, and each order is there once."""

from __future__ import annotations

import csv
import io
import json
import re
import signal
from typing import Any

import pyarrow.parquet
import pytest
import yaml

from tests.journeys.conftest import Person
from tests.journeys.orders import as_csv, as_json_lines, orders
from tests.journeys.pages import command

COMMANDS = "reference/command-line.md"
GUESSED = "guessed the target 'late': to predict another column, add --target NAME\n"
ROWS = 400
#: A field too few, a price that is none, and the decimal comma of somebody's spreadsheet.
MISTAKES = {
    50: "A-00050,05.02.2024 10:00,01003,Köln,12.00,ok",
    120: 'A-00120,05.03.2024 10:00,01003,Köln,inf,"a, b",no',
    200: "A-00200,05.04.2024 10:00,01003,Köln,12,50,ok,no",
}
#: A model that starts at once stands in for ours where it is not looked at.
QUICK = ("--set", 'model=["river.dummy.PriorClassifier"]')
IDS = [row["order id"] for row in orders(ROWS)]


def ids(person: Person, folder: str = "out/orders") -> list[str]:
    return [line["order id"] for line in person.lines(f"{folder}/predictions.jsonl")]


@pytest.fixture
def export(person: Person) -> Person:
    """The export, and the configuration that `init` makes of it."""
    (person.folder / "orders.csv").write_bytes(as_csv(orders(ROWS), MISTAKES))
    made = person.types(command(COMMANDS, "init orders.csv"))
    assert (made.returncode, made.stderr) == (0, GUESSED)
    return person


def test_from_an_export_to_predictions_and_mended_mistakes(export: Person) -> None:
    source = yaml.safe_load((export.folder / "orders.yaml").read_text())["source"]
    assert source["encoding"] == "cp1252"
    assert source["inputs"] == {
        "exclude": ["order id"],
        "types": {
            "placed at": {"type": "date", "format": "%d.%m.%Y %H:%M"},
            "zip": "string",
            "price": {"na": ["n/a"]},
        },
    }

    checked = export.types(command(COMMANDS, "check", CONFIG="orders.yaml"))
    assert (checked.returncode, checked.stderr) == (0, "")
    assert re.search(r"order id +'A-00000' +string +excluded", checked.stdout)
    assert re.search(r"zip +'010\d\d' +string +input", checked.stdout)
    assert "placed at.hour.sin=" in checked.stdout

    ran = export.types(command(COMMANDS, "run", CONFIG="orders.yaml"))
    assert ran.returncode == 0, ran.stderr
    letters = export.lines("out/orders/dead-letters.jsonl")
    assert [letter["reason"] for letter in letters] == ["csv_width", "infinite", "csv_width"]
    assert ids(export) == [one for number, one in enumerate(IDS) if number not in MISTAKES]
    account = export.inspects("out/orders/state")["source"]["account"]
    assert (account["consumed"], account["learned"], account["dead"]) == (ROWS + 1, ROWS - 3, 3)  # and a blank line
    lines = export.lines("out/orders/predictions.jsonl")
    assert sum(line["prediction"] == line["target"] for line in lines) > 0.6 * len(lines)

    # A letter can be read and mended, also in the encoding of the export.
    assert [letter["encoding"] for letter in letters] == ["cp1252"] * 3
    assert letters[0]["raw"] == MISTAKES[50]

    # The log names the way on: mend, then the command it gives.
    advised = re.search(r"fix them, then (streamkernel replay \S+ orders\.yaml) learns them", ran.stderr)
    assert advised, ran.stderr
    replay = advised[1].split()[1:]
    file = export.folder / replay[1]
    mended = file.read_text(encoding="utf-8").replace("12.00,ok", "12.00,ok,yes").replace("12,50,ok", "12.50,ok")
    file.write_text(mended, encoding="utf-8")
    first = export.types(replay)
    assert first.returncode == 1
    assert "2 replayed; 1 still dead (1 infinite): fix them and replay again" in first.stdout
    file.write_text(mended.replace("Köln,inf,", "Köln,n/a,"), encoding="utf-8")
    assert export.types(replay).returncode == 0
    again = export.types(replay)
    assert (again.returncode, again.stdout) == (0, f"{replay[1]}: 0 replayed; 3 replayed before\n")
    assert sorted(ids(export)) == IDS
    assert export.inspects("out/orders/state")["source"]["account"]["dead"] == 0

    # New orders: without ids and labels, in another encoding, from a file of another name.
    new = [{name: row[name] for name in row if name not in ("order id", "late")} for row in orders(30, first=900)]
    (export.folder / "new.csv").write_bytes(as_csv(new, encoding="utf-8"))
    predict = command("how-to/predicting.md", "predict out/state", out_state="out/orders/state")
    done = export.types([*predict[:-2], "--encoding", "utf-8", *predict[-2:]])
    assert (done.returncode, done.stderr) == (0, "")
    predicted = export.lines("predictions.jsonl")
    assert [line["prediction"] in ("yes", "no") for line in predicted] == [True] * 30
    assert all(abs(sum(line["probabilities"].values()) - 1) < 1e-9 for line in predicted)
    table = export.types(["predict", "out/orders/state", "new.csv", "--encoding", "utf-8", "--format", "csv"]).stdout
    assert [row["prediction"] for row in csv.DictReader(io.StringIO(table))] == [
        line["prediction"] for line in predicted
    ]


def test_a_replay_of_letters_from_elsewhere_changes_nothing(export: Person) -> None:
    assert export.types(["run", "orders.yaml", *QUICK]).returncode == 0
    before = export.inspects("out/orders/state")
    letter = export.lines("out/orders/dead-letters.jsonl")[0]
    # A place that the run has not come to yet, a partition that there is none of, no letters at all, and nothing.
    for text, status, said in (
        (json.dumps({**letter, "position": {"partition": 0, "offset": 10**12}}), 0, "1 left to the daemon"),
        (json.dumps({**letter, "position": {"partition": 7, "offset": 0}}), 0, "1 left to the daemon"),
        ((export.folder / "orders.csv").read_bytes().decode("latin-1"), 1, "a header of CSV with the columns position"),
        ("", 0, "0 replayed"),
    ):
        export.writes("foreign.jsonl", text)
        done = export.types(["replay", "foreign.jsonl", "orders.yaml", *QUICK])
        assert re.search(f"foreign.jsonl.*{said}", done.stderr + done.stdout)
        assert "Traceback" not in done.stderr
        assert done.returncode == status, done
    assert export.inspects("out/orders/state")["source"]["account"] == before["source"]["account"]


def test_nested_json(person: Person) -> None:
    person.writes("orders.jsonl", as_json_lines(orders(ROWS)))
    assert person.types(["init", "orders.jsonl", ">", "orders.yaml"]).returncode == 0
    settings = yaml.safe_load((person.folder / "orders.yaml").read_text())
    types = {"at": "date", "price": "number"}
    assert settings["source"].pop("inputs") == {"exclude": ["id"], "nested": "flatten", "types": types}

    # Somebody who does not know of `inputs` is told what to do, by check and by run, and does it.
    person.writes("by-hand.yaml", settings)
    checked = person.types(["check", "by-hand.yaml"])
    failed = person.types(["run", "by-hand.yaml", *QUICK])
    assert (checked.returncode, failed.returncode) == (1, 1)
    for said in (checked.stderr, failed.stderr):
        assert "set source.inputs.nested: flatten" in said
    advised = ["--set", "source.inputs.nested=flatten"]
    listed = person.types(["check", "by-hand.yaml", *advised]).stdout
    assert re.search(r"customer\.zip +'010\d\d' +string +input", listed)
    include = ["--set", "predictions.include=[id, {column: customer.zip, name: zip}]"]
    assert person.types(["run", "by-hand.yaml", "--fresh", *QUICK, *advised, *include]).returncode == 0
    lines = person.lines("out/orders/predictions.jsonl")
    assert [(line["id"], line["zip"]) for line in lines] == [(row["order id"], row["zip"]) for row in orders(ROWS)]


def test_tables_and_a_kill_in_between(export: Person) -> None:
    parquet: dict[str, Any] = {"kind": "parquet", "path": "out/table", "include": ["order id", "price"]}
    settings = ["--set", f"predictions={json.dumps({**parquet, 'classes': ['yes']})}"]
    settings += [*QUICK, "--set", "checkpoint={directory: out/tables, every_records: 100}"]
    killed = export.types(["run", "orders.yaml", *settings], STREAMKERNEL_CRASH="consumed:250")
    assert killed.returncode == -signal.SIGKILL
    # The letters of the killed run are known by the checkpoint: nothing has to be said about them.
    assert export.types(["run", "orders.yaml", *settings]).returncode == 0
    table = pyarrow.parquet.read_table(export.folder / "out/table")
    assert table.column("order id").to_pylist() == [one for number, one in enumerate(IDS) if number not in MISTAKES]
    assert "n/a" in table.column("price").to_pylist()
    assert {"probability_yes", "other_probability"} <= set(table.schema.names)
    assert len(export.lines("out/orders/dead-letters.jsonl")) == len(MISTAKES)

    # Another column later is refused, and the sentence says how to go on: another path, and it goes on there.
    other = {**parquet, "include": ["order id"], "classes": ["yes"]}
    refused = export.types(["run", "orders.yaml", *settings, "--set", f"predictions={json.dumps(other)}"])
    assert refused.returncode == 1
    assert re.search("another path|--fresh", refused.stderr), refused.stderr
    elsewhere = ["--set", f"predictions={json.dumps({**other, 'path': 'out/other'})}"]
    assert export.types(["run", "orders.yaml", *settings, *elsewhere]).returncode == 0


def test_the_wrong_delimiter_and_encoding_are_told_with_the_right_ones(export: Person) -> None:
    wrong = ["--set", "source.encoding=utf-8"]
    failed = export.types(["run", "orders.yaml", *QUICK, *wrong])
    assert failed.returncode == 1
    advised = re.search(r"set (source\.encoding) to the encoding of the file, such as (cp1252)", failed.stderr)
    assert advised, failed.stderr
    assert (
        export.types(
            ["run", "orders.yaml", *QUICK, "--fresh", "--set", f"{advised[1]}={advised[2]}"],
        ).returncode
        == 0
    )
    assert len(ids(export)) == ROWS - len(MISTAKES)
    semicolons = export.types(["check", "orders.yaml", "--set", "source.delimiter=;"])
    assert semicolons.returncode == 1
    assert 'the header has one column that contains ",": set delimiter: "," next to path' in semicolons.stderr
