"""The scripts in examples/ run, and the README quotes them and the quickstart as they are."""

import re
import runpy
import sys
from pathlib import Path

import pytest
import yaml

from streamkernel.daemon.config.schema import Config

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("river_pipeline", "Accuracy: 8"),
        ("frames", "same state: True"),
        ("categories", "'tue': False"),
        ("novelty", "flagged: "),
        ("drift_alarm", "no alarm before the drift: True"),
        ("quantile_bands", "inside the band: "),
        ("gaussian_process", "between them"),
    ],
)
def test_an_example_runs(script, expected, capsys, monkeypatch):
    """In this process: a namespace of its own is what an interpreter of its own, which takes seconds, would show."""
    path = str(ROOT / "examples" / f"{script}.py")
    monkeypatch.setattr(sys, "argv", [path])
    runpy.run_path(path, run_name="__main__")
    assert expected in capsys.readouterr().out


def test_every_example_is_tested():
    """kafka_demo and replay beside the tests of Kafka, for they need a broker."""
    scripts = {path.stem for path in (ROOT / "examples").glob("*.py")} - {"__init__"}
    assert scripts == {
        "river_pipeline",
        "frames",
        "categories",
        "gaussian_process",
        "kafka_demo",
        "novelty",
        "drift_alarm",
        "quantile_bands",
        "replay",
    }


def test_the_readme_quotes_the_river_example():
    (quoted,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    code = [re.sub(r"  #.*", "", line) for line in quoted.splitlines() if line]
    script = (ROOT / "examples" / "river_pipeline.py").read_text().splitlines()
    assert [line for line in script if line and not line.startswith('"""')] == code


def test_the_readme_quotes_the_quickstart():
    quoted, _ = re.findall(r"```yaml\n(.*?)```", README, re.DOTALL)
    quickstart = yaml.safe_load((ROOT / "configs" / "quickstart.yaml").read_text())
    config = yaml.safe_load(quoted)
    assert all(config[key] == quickstart[key] for key in ("source", "model", "predictions"))
    Config.model_validate(config)


def test_what_the_readme_says_of_kafka_can_be_configured():
    quickstart, kafka = re.findall(r"```yaml\n(.*?)```", README, re.DOTALL)
    Config.model_validate(yaml.safe_load(quickstart) | yaml.safe_load(kafka))
