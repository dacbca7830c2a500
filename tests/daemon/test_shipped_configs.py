"""The configurations that come with the project: all are valid, and those for the bundled data run to their end."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from streamkernel.daemon.wiring.plan import prepare
from tests.daemon.conftest import Home, Launcher

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
    assert described["account"]["learnt"] == 5300
    assert shares == {"expert_weights", "input_importance"} & set(described["model"])
    again = launcher.call(home, "run", "config.yaml", "--fresh", "--max-records=100")
    assert again.returncode == 0, again.stderr
    assert len(home.lines(settings["predictions"]["path"])) == 100
