"""The section `inputs` of a source: what it refuses, and that a run reads the columns as it says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from streamkernel.daemon.assembly.plan import prepare
from streamkernel.daemon.check import check
from streamkernel.daemon.runtime import run
from tests.daemon.configurations import MODEL, lines_of
from tests.daemon.conftest import Home

CSV = "source: {{kind: csv, path: a.csv, target: y, inputs: {}}}\n" + MODEL


@pytest.mark.parametrize(
    ("inputs", "line"),
    [
        ("{exclud: [id]}", "exclud: unknown key, did you mean 'exclude'?"),
        ("{exclude: id}", "exclude: must be a list, got 'id'"),
        ("{include: []}", "include: must not be empty"),
        ("{exclude: [id, id]}", "exclude: must name each only once"),
        ("{na: [no]}", "na[0]: must be text, and YAML reads this one as false: put it in quotes"),
        ("{nested: flaten}", "nested: must be one of dead_letter, flatten, ignore, got 'flaten', did you mean"),
        ("{types: {a: strin}}", "types.a: must be one of auto, string, number, date, hash, got 'strin', did"),
        ("{types: {a: [date]}}", "types.a: must be a mapping, got ['date']"),
        ("{types: {a: {type: date, format: dd.mm}}}", "types.a.format: a date's format is iso, unix, unix_ms"),
        ("{types: {a: {type: date, parts: [dayy]}}}", "types.a.parts[0]: must be one of year, quarter"),
        ("{types: {a: {type: date, parts: []}}}", "types.a.parts: must not be empty"),
        ("{types: {a: {type: date, timezone: X/Y}}}", "types.a.timezone: there is no time zone 'X/Y'"),
        ("{types: {a: {type: hash, buckets: 0}}}", "types.a.buckets: must be > 0, got 0"),
        ("{types: {a: {buckets: 5}}}", "types.a: buckets works only with type hash, this one is auto"),
        ("{decimal: ;}", "decimal: must be one of ., ,, got ';'"),
        ("{thousands: ''}", "thousands: must be one character that is not part of a number, got ''"),
        ("{thousands: '5'}", "thousands: must be one character that is not part of a number, got '5'"),
        ("{thousands: .}", ": decimal and thousands must differ, both are '.'"),
        ("{decimal: ',', thousands: ','}", ": decimal and thousands must differ, both are ','"),
        ("{types: {a: {type: number, thousands: .}}}", "types.a: decimal and thousands must differ"),
        ("{types: {a: {decimal: ','}}}", "types.a: decimal works only with type number, this one is auto"),
        ("{exclude: [y]}", "exclude: must not name the target 'y', which is not an input"),
        ("{types: {y: string}}", "types: must not name the target 'y', which is not an input"),
        ("{exclude: [a], types: {a: date}}", "types.a: is not an input: remove the type, or change include"),
        ("{include: [a], types: {b: date}}", "types.b: is not an input: remove the type, or change include"),
    ],
)
def test_mistakes_are_told_with_their_place(tmp_path: Path, inputs: str, line: str) -> None:
    (found,) = lines_of(tmp_path, CSV.format(inputs))
    assert found.startswith(f"source.inputs.{line}".replace(".:", ":"))


@pytest.mark.parametrize(
    ("inputs", "line"),
    [
        ("{exclude: [id]}", "source.inputs.exclude: must not name labels.key 'id', which joins records and labels"),
        ("{include: [a]}", "source.inputs.include: must name labels.key 'id', which joins records and labels"),
        ("{types: {id: {type: hash}}}", "source.inputs.types.id: must be auto or string, it is labels.key"),
    ],
)
def test_the_key_of_late_labels_stays(tmp_path: Path, inputs: str, line: str) -> None:
    labels = "labels: {source: {kind: jsonl, path: b.jsonl, target: y}, key: id}\n"
    source = f"source: {{kind: jsonl, path: a.jsonl, inputs: {inputs}}}\n"
    (found,) = lines_of(tmp_path, source + MODEL + labels)
    assert found.startswith(line)
    labels = labels.replace("target: y", "target: y, inputs: " + inputs)
    (found,) = lines_of(tmp_path, "source: {kind: jsonl, path: a.jsonl}\n" + MODEL + labels)
    assert found.startswith(f"labels.{line}")


INPUTS = {
    "exclude": ["order"],
    "na": ["NA"],
    "types": {
        "zip": "string",
        "when": {"type": "date", "parts": ["weekday", "hour"], "cyclic": False},
        "who": {"type": "hash", "buckets": 4},
    },
}


def write_orders(path: Path, n: int) -> None:
    lines = ["order,zip,when,who,amount,y"]
    for i in range(n):
        when = f"2024-0{1 + i % 9}-1{i % 7}T0{i % 10}:30" if i % 50 else "soon"
        amount = "NA" if i % 5 == 0 else str(i % 13)
        lines.append(f"A{i},0{i % 3},{when},user {i},{amount},{'yes' if i % 3 else 'no'}")
    path.write_text("\n".join(lines) + "\n")


@pytest.fixture
def orders(home: Home) -> Home:
    write_orders(home.folder / "stream.csv", 400)
    return home


def source(**inputs: Any) -> dict[str, Any]:
    return {"kind": "csv", "path": "stream.csv", "target": "y", "inputs": INPUTS | inputs}


def test_a_run_reads_the_columns_as_it_is_told_wherever_it_is_interrupted(orders: Home, tmp_path: Path) -> None:
    plan = prepare(orders.configure(source=source()))
    run(plan)
    hashed = {name for name in plan.model.input_names if name.startswith("who=")}
    others = {"amount", "when.weekday", "when.hour", "zip=00", "zip=01", "zip=02"}
    assert set(plan.model.input_names) == others | hashed
    assert len(hashed) == 4
    whole = orders.result()
    assert {line["reason"] for line in orders.lines("out/dead.jsonl")} == {"input_type"}
    assert len(orders.lines("out/dead.jsonl")) == 8
    (orders.folder / "out").rename(tmp_path / "out-whole")
    for n in (7, 150, 400):
        run(prepare(orders.config), max_records=n)
    assert orders.result() == whole


def test_check_shows_the_columns(orders: Home) -> None:
    (orders.folder / "stream.csv").write_text("order,zip,when,who,amount,y\nA1,02134,2024-05-01T10:30,user 7,NA,yes\n")
    found = check(prepare(orders.configure(source=source())))
    assert found.bad == []
    assert found.columns == [
        "columns of source, by its first record:",
        "  y       'yes'               string  target 'yes'",
        "  order   'A1'                string  excluded",
        "  zip     '02134'             string  input",
        "  when    '2024-05-01T10:30'  date    input when.weekday=2, when.hour=10",
        "  who     'user 7'            hash    input who='3'",
        "  amount  'NA'                string  input, missing here",
    ]
