"""The inputs that a run reads: the section `inputs` of a source, and the names that a model of River's is given."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from connectors.columns.dates import PARTS
from connectors.columns.settings import ColumnSettings
from streamkernel.daemon.check import check
from streamkernel.daemon.config.inputs import ColumnConfig, InputsConfig
from streamkernel.daemon.recovery.resume import begin
from streamkernel.daemon.runtime import run
from streamkernel.daemon.stream.input_names import InputNames
from streamkernel.daemon.stream.river_learner import learner_for
from streamkernel.daemon.wiring.plan import prepare
from streamkernel.daemon.wiring.processor import make_processor
from tests.daemon.configurations import MODEL, lines_of, plan_of
from tests.daemon.conftest import Home
from tests.daemon.test_calibration import served
from tests.kills.simulated import killed, runs

CSV = "source: {{kind: csv, path: a.csv, target: y, inputs: {}}}\n" + MODEL


@pytest.mark.parametrize(
    ("inputs", "line"),
    [
        ("{exclud: [id]}", "exclud: unknown key, did you mean 'exclude'?"),
        ("{exclude: id}", "exclude: must be a list, got 'id'"),
        ("{include: []}", "include: must not be empty"),
        ("{exclude: [id, id]}", "exclude: must name each only once"),
        ("{na: [no]}", "na[0]: must be a text, YAML reads this one as false: put it in quotes"),
        ("{nested: flaten}", "nested: must be one of dead_letter, flatten, ignore, got 'flaten', did you mean"),
        ("{types: {a: strin}}", "types.a: must be one of auto, string, number, date, hash, got 'strin', did"),
        ("{types: {a: [date]}}", "types.a: must be a mapping, got ['date']"),
        ("{types: {a: {type: date, format: dd.mm}}}", "types.a.format: a date's format is iso, unix, unix_ms"),
        ("{types: {a: {type: date, parts: [dayy]}}}", "types.a.parts[0]: must be one of year, quarter"),
        ("{types: {a: {type: date, parts: []}}}", "types.a.parts: must not be empty"),
        ("{types: {a: {type: date, timezone: X/Y}}}", "types.a.timezone: there is no time zone 'X/Y'"),
        ("{types: {a: {type: hash, buckets: 0}}}", "types.a.buckets: must be > 0, got 0"),
        ("{types: {a: {buckets: 5}}}", "types.a: buckets has a meaning only with type hash, this one is auto"),
        ("{exclude: [y]}", "exclude: must not name the target 'y', which is no input"),
        ("{types: {y: string}}", "types: must not name the target 'y', which is no input"),
        ("{exclude: [a], types: {a: date}}", "types.a: is no input: drop the type, or let it in"),
        ("{include: [a], types: {b: date}}", "types.b: is no input: drop the type, or let it in"),
    ],
)
def test_mistakes_are_told_with_their_place(tmp_path: Path, inputs: str, line: str) -> None:
    (found,) = lines_of(tmp_path, CSV.format(inputs))
    assert found.startswith(f"source.inputs.{line}")


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


def test_the_defaults_are_those_of_the_connectors() -> None:
    assert ColumnConfig().settings() == ColumnSettings()
    assert InputsConfig(types={"a": ColumnConfig(na=[])}).settings().types["a"].na == ()
    schema = ColumnConfig.model_json_schema()["properties"]["parts"]["items"]["enum"]
    assert schema == list(PARTS)


def test_numbers_are_spellings_too(tmp_path: Path) -> None:
    config = plan_of(tmp_path, CSV.format("{na: [-999, 0.5, NA]}")).config
    assert config.source.inputs is not None  # type: ignore[union-attr]
    assert config.source.inputs.na == ["-999", "0.5", "NA"]  # type: ignore[union-attr]


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


def test_check_says_that_the_header_lacks_a_column(orders: Home) -> None:
    (bad,) = check(prepare(orders.configure(source=source(exclude=["ordr"])))).bad
    assert "there is no column 'ordr' for inputs.exclude, do you mean order?" in bad


RECORDS, NEW, MOST = 300, 20, 300


def write(home: Home, **sections: Any) -> Home:
    """Write records that bring twenty new names each, one known one, and now and then no label."""
    draw = random.Random(0)
    lines = []
    for number in range(RECORDS):
        inputs = {f"name {number} {place}": draw.random() for place in range(NEW)} | {"a": draw.gauss(number % 2, 0.5)}
        lines.append(json.dumps(inputs | ({} if number % 7 == 3 else {"y": "pq"[number % 2]})))
    (home.folder / "stream.jsonl").write_text("\n".join(lines) + "\n")
    home.configure(
        source={"kind": "jsonl", "path": "stream.jsonl", "target": "y"},
        checkpoint={"directory": "out/state", "every_records": 100},
        limits={"max_inputs": MOST},
        **{"model": ["river.naive_bayes.GaussianNB"], **sections},
    )
    return home


def test_kills_change_nothing_and_checkpoints_do_not_grow(
    homes: Callable[[str], Home], capsys: pytest.CaptureFixture[str]
) -> None:
    undisturbed, home = write(homes("undisturbed")), write(homes("killed"))
    assert runs(undisturbed) == 0
    said = capsys.readouterr().err
    assert "inputs were ignored" in said
    assert "their names are past limits.max_inputs" in said
    for count in (70, 30, 90):
        killed(home, f"consumed:{count}")
    assert runs(home) == 0
    assert home.result() == undisturbed.result()
    sizes = [path.stat().st_size for path in sorted((home.folder / "out/state").glob("*.skc"))]
    assert sizes[-1] < 1.1 * sizes[-2]


@pytest.mark.usefixtures("processes")
def test_what_is_ignored_is_counted(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    exporters = served(monkeypatch)
    run(prepare(write(home, metrics={"port": 0}).config))
    learnt = sum(number % 7 != 3 for number in range(RECORDS))
    ignored = exporters[-1].registry.get_sample_value("streamkernel_ignored_inputs_total")
    assert ignored == learnt * NEW + 1 - MOST


def test_a_step_of_ours_behind_one_of_rivers_has_its_own_limit(home: Home) -> None:
    ours = {"streamkernel.KernelClassifier": {"seed": 1, "max_features": 64, "max_inputs": 2000}}
    write(home, model=["river.preprocessing.StandardScaler", ours])
    plan = prepare(home.config)
    record = {f"input {number}": 1.0 for number in range(2100)}
    assert make_processor(plan, begin(plan)).learner.advance([record], ["p"]).n_ignored_inputs == 100


class TestNames:
    def test_the_first_ones_to_be_learnt_have_the_room(self) -> None:
        names = InputNames(3)
        assert names.bound({"p": 1, "q": 1, "r": 1}, learn=False) == ({"p": 1, "q": 1, "r": 1}, 0)
        assert names.bound({"p": 1, "q": 1, "r": 1, "s": 1}, learn=False)[1] == 1
        assert names.bound({"a": 1, "b": 2}, learn=True) == ({"a": 1, "b": 2}, 0)
        assert names.bound({"x": 9, "b": 2, "y": 8, "a": 1}, learn=True) == ({"x": 9, "b": 2, "a": 1}, 1)
        assert names.knows({"a": 1, "b": 1, "x": 1})
        assert names.bound({"p": 1, "a": 2}, learn=False) == ({"a": 2}, 1)

    def test_a_restart_knows_them(self) -> None:
        names = InputNames(4)
        names.bound({"a": 1, "\ud800": 2, 7: 3, "7": 4}, learn=True)  # type: ignore[dict-item]
        again = InputNames(4, names.to_text())
        assert again.bound({"b": 1, 7: 2, "\ud800": 3}, learn=False) == ({7: 2, "\ud800": 3}, 1)  # type: ignore[dict-item]
        assert again.to_text() == names.to_text()

    def test_a_lower_limit_takes_none_away(self) -> None:
        names = InputNames(4)
        names.bound({"a": 1, "b": 1}, learn=True)
        assert InputNames(1, names.to_text()).bound({"a": 1, "c": 1, "b": 1}, learn=True) == ({"a": 1, "b": 1}, 1)

    def test_a_model_that_only_serves_is_given_no_more_than_there_is_room_for(self) -> None:
        from river.naive_bayes import GaussianNB

        learner = learner_for(GaussianNB(), learn=False, names=InputNames(2))
        assert learner.advance([{"a": 1.0, "b": 1.0, "c": 1.0}] * 2, ["p", "q"]).n_ignored_inputs == 0
        assert learner.input_names == ""
