"""`init`: what it makes of the first lines of a file runs as it is, and so do the configurations of the project."""

from __future__ import annotations

import gzip
import json
import random
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from streamkernel.connectors import CsvSource
from streamkernel.connectors.columns.settings import InputSettings
from streamkernel.daemon import cli
from streamkernel.daemon.assembly.plan import prepare
from streamkernel.daemon.init.configuration import configuration_for
from streamkernel.daemon.init.sample import SampleError
from streamkernel.daemon.run_state.models import published_entry
from tests.daemon.configurations import plan_of
from tests.daemon.conftest import Home, Launcher


def rows(records: int = 60) -> list[tuple[str, float, str, str]]:
    draw = random.Random(1)
    made = []
    for number in range(records):
        a = draw.gauss(0, 1)
        made.append((f"ORD-{number}", round(a, 3), draw.choice(["zwölf", "eins", ""]), "gut" if a > 0 else "schlecht"))
    return made


def write(folder: Path, name: str = "orders.csv", delimiter: str = ",", encoding: str = "utf-8") -> Path:
    lines = [delimiter.join(("order id", "größe", "note", "class"))]
    lines += [delimiter.join(map(str, row)) for row in rows()]
    data = ("\n".join(lines) + "\n").encode(encoding)
    path = folder / name
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return path


def made(path: Path, target: str | None = None) -> dict[str, Any]:
    settings: dict[str, Any] = yaml.safe_load(configuration_for(path, target))
    return settings


@pytest.mark.usefixtures("processes")
@pytest.mark.parametrize(("delimiter", "encoding", "name"), [(",", "utf-8", "a.csv"), (";", "cp1252", "b.csv.gz")])
def test_it_runs_as_written(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    delimiter: str,
    encoding: str,
    name: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, name, delimiter, encoding)
    assert cli.main(["init", name]) == 0
    text = capsys.readouterr().out
    # A model that starts at once stands in for ours.
    quick = text.replace("- streamkernel.AdaptiveKernelClassifier: {seed: 1}", "- river.dummy.PriorClassifier: {}")
    assert quick != text
    plan_of(tmp_path, text)
    (tmp_path / "config.yaml").write_text(quick)
    assert cli.main(["run", "config.yaml"]) == 0
    folder = tmp_path / "out" / name[0]
    assert (folder / "dead-letters.jsonl").read_text() == ""
    lines = [json.loads(line) for line in (folder / "predictions.jsonl").read_text().splitlines()]
    assert [line["target"] for line in lines] == [row[3] for row in rows()]


@pytest.mark.parametrize(
    ("values", "kind", "estimator"),
    [
        (["yes", "no"], "str", "Classifier"),
        (["0", "1"], "int", "Classifier"),
        ([str(n) for n in range(40)], "float", "Regressor"),
        (["0.5", "1"], "float", "Regressor"),
        ([*(str(n / 2) for n in range(40)), "n/a", "inf"], "float", "Regressor"),
    ],
)
def test_the_model_suits_the_target(tmp_path: Path, values: list[str], kind: str, estimator: str) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b\n" + "".join(f"1,{value}\n" for value in values))
    settings = made(path)
    assert settings["source"]["target"] == "b"
    assert settings["source"]["target_type"] == kind
    assert estimator in next(iter(settings["model"][0]))


def test_the_target_is_the_one_that_is_named(tmp_path: Path) -> None:
    path = write(tmp_path)
    assert made(path)["source"]["target"] == "class"
    assert made(path, "größe")["source"]["target_type"] == "float"
    with pytest.raises(SampleError, match=r"has no column 'größ', it has .* did you mean 'größe'"):
        made(path, "größ")


def test_columns_are_told(tmp_path: Path) -> None:
    text = configuration_for(write(tmp_path))
    assert "#   order id: texts, 60 different" in text
    assert "#   größe: numbers, " in text
    plan = plan_of(tmp_path, text)
    assert plan.config.source.inputs.exclude == ["order id"]
    assert [one.column for one in plan.config.predictions.include] == ["order id"]


def test_columns_are_read_as_what_they_are(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    header = ",id,placed,sent,either,zip,price,country,serial,y"
    rows = [
        f"{n},{n * 7 % 31},{n + 1:02}.01.2024 10:30,2024-01-{n + 1:02},0{n % 9 + 1}/0{n % 7 + 1}/2024,"
        f"0{n % 10}139,{['1.5', 'n/a', '2', '-'][n % 4]},{['NA', 'DE'][n % 2]},{n % 3},{n % 2}"
        for n in range(30)
    ]
    path.write_text("\n".join([header, *rows]) + "\n")
    text = configuration_for(path)
    assert made(path)["source"]["inputs"] == {
        "exclude": ["", "id"],
        "types": {
            "placed": {"type": "date", "format": "%d.%m.%Y %H:%M"},
            "sent": "date",
            "either": {"type": "date", "format": "%d/%m/%Y"},
            "zip": "string",
            "price": {"type": "number", "na": ["-", "n/a"]},
            "serial": "number",
        },
    }
    assert "  # parts of the calendar are the inputs; %m/%d/%Y fits, too\n" in text
    assert "  # a code: as a number it would lose digits\n" in text
    assert [one.column for one in plan_of(tmp_path, text).config.predictions.include] == ["id"]


def test_a_few_wrong_dates_make_no_categories_of_the_others(tmp_path: Path) -> None:
    sold = [f"2024-{1 + n % 12:02}-{1 + n % 28:02}" for n in range(98)] + ["2024-02-30", "31.12.2024"]
    rows = (f"{one},{'soon' if n > 89 else one},{n}\n" for n, one in enumerate(sold))
    (path := tmp_path / "t.csv").write_text("sold,mostly,y\n" + "".join(rows))
    assert made(path)["source"]["inputs"] == {"types": {"sold": "date"}}
    assert "      # not such a date, and so a dead letter: 2, the first '2024-02-30'\n" in configuration_for(path)


def test_json_lines(tmp_path: Path) -> None:
    path = tmp_path / "stream.jsonl"
    records = [{"a": n, "long": "x" * 300, "nested": {"b": 1}, "zip": "01234", "y": n % 2 == 0} for n in range(5)]
    path.write_text("".join(json.dumps(record) + "\n" for record in records) + "broken")
    text = configuration_for(path)
    settings = yaml.safe_load(text)
    assert settings["source"] | {"path": "-"} == {
        "kind": "jsonl",
        "path": "-",
        "target": "y",
        "target_type": "bool",
        "follow": False,
        "inputs": {"nested": "flatten", "types": {"a": "number", "nested.b": "number"}},
    }
    assert settings["limits"]["max_string"] == 600
    assert "#   zip: texts" in text
    assert "#   nested.b: numbers, 1 different" in text


def test_what_would_be_a_dead_letter_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "stream.jsonl"
    deep = '{"a": ' + "[" * 100_000
    path.write_text(f'{deep}\n{{"\\ud800": 1, "y": 2}}\n{{"a": "\\ud800", "y": 3}}\n{{"b": 1, "y": 2}}\n')
    text = configuration_for(path, "y")
    assert "#   b: " in text
    assert "ud800" not in text


def test_quoted_line_ends(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text('a,b,y\n1,"one\ntwo",x\n2,three,y\n')
    assert made(path)["source"]["multiline"] is True


def test_a_quoted_field_may_be_long(tmp_path: Path) -> None:
    text = "\n".join(f"{number},note,maybe" for number in range(12_000))
    path = tmp_path / "t.csv"
    path.write_text(f'a,b,y\n1,"{text}",x\n2,three,y\n')
    assert made(path)["source"]["multiline"] is True
    assert made(path)["source"]["target"] == "y"
    assert made(path)["limits"] == {"max_string": 2 * len(text)}


def test_files_that_were_put_together_and_columns_without_a_name_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    part = "\ufeffa;c;c;y;;\n" + "".join(f"{number};1;2;{number % 2};;\n" for number in range(30))
    path.write_text(part + part, encoding="utf-8")
    settings = made(path)
    assert settings["source"]["target_type"] == "int"
    assert settings["source"]["inputs"] == {"exclude": ["c"], "types": {"a": "number"}}
    with CsvSource(path, "y", "int", ";", inputs=InputSettings(exclude=("c",))) as source:
        source.open()
        records = source.poll(100, 0)
    assert [record.x for record in records if not record.blank] == [{"a": number} for number in range(30)] * 2
    path.write_text('\ufeff{"a": 1, "y": 2}\n\ufeff{"b": 1, "y": 3}\n', encoding="utf-8")
    assert "#   b: numbers" in configuration_for(path)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "is empty: init needs its first lines"),
        (b" \n", "is empty: init needs its first lines"),
        (b"a,b\n", "no line after the header has its 2 fields"),
        (b"sep=;\na;b;y\n1;2;3\n", "first line has 2 fields and most others have 3: remove the lines above the"),
        (b"# orders\na,b,y\n1,2,3\n", "first line has 1 field and most others have 3"),
        (b"a,b,y\r1,2,3\r", "ends its lines in carriage returns alone: convert it"),
        (b"1,2\n3,4\n", "has numbers instead of column names: add the names"),
        (b"a,a\n3,4\n", "the header repeats 'a'"),
        (b"[{}]", "holds a JSON array"),
        (b"{broken\n", "no line of its beginning is a JSON object"),
        (b'{"a": "\xff"}\n', "is not UTF-8, as JSON lines must be"),
        (b"\xff\xfea\x00", "is UTF-16"),
        (b"PK\x00\x01", "is not text"),
        (b"PAR1", r"is Parquet, .* and init that: python -c 'import sys, pyarrow.csv .* \S+/file \S+/file.csv$"),
        (b"a,y\n1,\n2,\n", "the column 'y' is empty in its first records"),
        (b"a," + b"x" * 200_000 + b"\n", "no line after the header has its 2 fields"),
        (b"a,${y}\n1,2\n", "begins a variable in a configuration"),
    ],
)
def test_a_file_it_can_make_nothing_of(tmp_path: Path, data: bytes, said: str) -> None:
    path = tmp_path / "file"
    path.write_bytes(data)
    with pytest.raises(SampleError, match=said):
        configuration_for(path)


def test_a_failure_is_one_line(capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture) -> None:
    assert cli.main(["init", "missing.csv"]) == 1
    # In the log, where one was started before: by another test, say.
    assert (capsys.readouterr().err or caplog.text).endswith("missing.csv: there is no such file\n")
    assert cli.main(["init", "-"]) == 1


@given(
    st.one_of(st.binary(max_size=200), st.lists(st.text(',;"\nab1é{}[]', max_size=20)).map("\n".join).map(str.encode))
)
def test_whatever_the_file_holds_is_a_configuration_or_a_sentence(tmp_path_factory: Any, data: bytes) -> None:
    folder = tmp_path_factory.mktemp("any")
    (folder / "stream.csv").write_bytes(data)
    with suppress(SampleError):
        plan_of(folder, configuration_for(folder / "stream.csv"))


ROOT = Path(__file__).parents[2]
# The others are for other programs: Compose, Grafana, Kubernetes, Prometheus.
CONFIGS = sorted(path for path in (ROOT / "configs").rglob("*.yaml") if "source" in yaml.safe_load(path.read_text()))


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: str(path.relative_to(ROOT)))
def test_it_is_valid(path: Path) -> None:
    plan = prepare(path, {})
    assert plan.task == "classification"
    source = plan.raw["source"]
    assert source["kind"] == "kafka" or (ROOT / source["path"]).exists()


@pytest.fixture
def beside_the_data(home: Home) -> Home:
    place = home.folder / "examples/data"
    place.mkdir(parents=True)
    shutil.copy(ROOT / "examples/data/bananas.csv", place)
    return home


def configured(home: Home, name: str) -> dict[str, Any]:
    """Take a shipped configuration as it is, but for the port, which another test may hold."""
    settings: dict[str, Any] = yaml.safe_load((ROOT / "configs" / name).read_text())
    settings["metrics"]["port"] = 0
    home.configure(**settings)
    return settings


@pytest.mark.parametrize(
    ("name", "shares"),
    [("quickstart.yaml", {"expert_weights", "input_importance"}), ("growing.yaml", set()), ("window.yaml", set())],
)
def test_it_runs_on_the_bundled_data(beside_the_data: Home, launcher: Launcher, name: str, shares: set[str]) -> None:
    home = beside_the_data
    settings = configured(home, name)
    ended = launcher.call(home, "run", "config.yaml")
    assert ended.returncode == 0, ended.stderr
    lines = home.lines(settings["predictions"]["path"])
    assert len(lines) == 5300
    assert sum(line["prediction"] == line["target"] for line in lines) / 5300 > 0.87
    described = json.loads(launcher.call(home, "inspect", settings["checkpoint"]["directory"], "--json").stdout)
    assert described["source"]["account"]["learned"] == 5300
    assert shares == {"expert_weights", "input_importance"} & set(published_entry(described))
    again = launcher.call(home, "run", "config.yaml", "--fresh", "--max-records=100")
    assert again.returncode == 0, again.stderr
    assert len(home.lines(settings["predictions"]["path"])) == 100
