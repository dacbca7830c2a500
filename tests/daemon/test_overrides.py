"""`--set`, and a configuration from standard input."""

from __future__ import annotations

import io
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from streamkernel.daemon.assembly.plan import prepare
from streamkernel.daemon.config.document import parse
from streamkernel.daemon.config.overrides import parse_override
from streamkernel.daemon.config.problems import ConfigError
from tests.daemon.configurations import GOOD


def values(text: str, *settings: str, **environment: str) -> dict[str, Any]:
    return parse(text, "c.yaml", environment, [parse_override(one) for one in settings]).values


TEXT = """
source: &all {kind: csv, path: a.csv}
other: *all
model: [river.preprocessing.StandardScaler, {streamkernel.KernelClassifier: {seed: 1, kernel: {a.Gaussian: {b: 2}}}}]
metrics: null
"""


@pytest.mark.parametrize(
    ("setting", "path", "value"),
    [
        ("source.path=b.csv", ["source", "path"], "b.csv"),
        ("source.path=-", ["source", "path"], "-"),
        ("source.follow=true", ["source", "follow"], True),
        ("limits.max_string=1e3", ["limits", "max_string"], 1000.0),
        ("metrics.port=0", ["metrics", "port"], 0),
        ("source.target=", ["source", "target"], None),
        ("source.path=${NAME}.csv", ["source", "path"], "here.csv"),
        ("predictions={kind: csv, path: p}", ["predictions"], {"kind": "csv", "path": "p"}),
        ("model[1].seed=7", ["model", 1, "streamkernel.KernelClassifier", "seed"], 7),
        ("model[1].kernel.b=3", ["model", 1, "streamkernel.KernelClassifier", "kernel", "a.Gaussian", "b"], 3),
        ("model[0].with_std=false", ["model", 0, "river.preprocessing.StandardScaler", "with_std"], False),
        ("model[0]=a.B", ["model", 0], "a.B"),
        ("source.path=a=b", ["source", "path"], "a=b"),
    ],
)
def test_a_value_is_put_where_its_key_says(setting: str, path: list[Any], value: Any) -> None:
    found: Any = values(TEXT, setting, NAME="here")
    for part in path:
        found = found[part]
    assert found == value


def test_the_rest_stays_and_the_last_one_counts() -> None:
    before = values(TEXT)
    after = values(TEXT, "source.path=b.csv", "source.path=c.csv")
    assert after["other"] == before["source"]  # though they share an anchor
    assert after == {**before, "source": {"kind": "csv", "path": "c.csv"}}


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("source", "--set: must be key=value with a key like source.path"),
        ("source..=1", "--set: must be key=value"),
        ("source.path.x=1", "source.path.x: --set: source.path is not a mapping"),
        ("model[7].seed=1", "model[7].seed: --set: model has 2 entries, the first is model[0]"),
        ("source.path={", "source.path: --set: line 1, column 2: cannot be read as YAML: close each bracket"),
        ("source.path=" + "[" * 5_000, "source.path: --set: nested too deeply"),
    ],
)
def test_a_mistake_names_the_key(setting: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        values(TEXT, setting)
    assert caught.value.lines[0].startswith(said)


def test_a_wrong_value_is_told_as_one_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(GOOD)
    with pytest.raises(ConfigError) as caught:
        prepare(tmp_path / "c.yaml", {}, [parse_override(one) for one in ("sourc.x=1", "model[0].sed=2", "mode=lern")])
    assert sorted(line.partition(":")[0] for line in caught.value.lines) == ["mode", "model[0].sed", "sourc"]


class TestStandardInput:
    @pytest.fixture
    def given(self, monkeypatch: pytest.MonkeyPatch) -> Any:
        return lambda text: monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(text.encode())))

    def test_it_is_read(self, given: Any) -> None:
        given(GOOD)
        assert prepare(Path("-"), {}).raw["source"]["path"] == "a.csv"

    def test_mistakes_name_it(self, given: Any) -> None:
        given("source: [")
        with pytest.raises(ConfigError, match="standard input, line 1, column 10: cannot be read as YAML"):
            prepare(Path("-"), {})

    def test_no_source_is_there_too(self, given: Any) -> None:
        given(GOOD.replace("a.csv", "'-'"))
        with pytest.raises(ConfigError) as caught:
            prepare(Path("-"), {})
        assert caught.value.lines == [
            "source.path: standard input holds the configuration: give that as a file, or name another source"
        ]
