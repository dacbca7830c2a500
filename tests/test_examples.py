"""The scripts in examples/ run; README and docs/examples.md quote them, what they print, and the quickstart."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from streamkernel.daemon.config.schema import Config

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
PAGE = (ROOT / "docs" / "examples.md").read_text()
#: The scripts with a section on the page, and that section.
SECTIONS = {re.findall(r"examples/(\w+)\.py", text)[-1]: text for text in PAGE.split("\n## ")[1:-1]}


def printed(path, *arguments):
    command = [sys.executable, "-W", "error", path, *arguments]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


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
@pytest.mark.usefixtures("processes")
def test_an_example_runs(script, expected):
    assert expected in printed(ROOT / "examples" / f"{script}.py")


@pytest.mark.parametrize("script", SECTIONS)
@pytest.mark.usefixtures("processes")
def test_the_page_quotes_an_example_and_what_it_prints(script, tmp_path):
    pytest.importorskip("matplotlib")
    path, picture = ROOT / "examples" / f"{script}.py", tmp_path / "picture.png"
    out = printed(path, picture)
    quoted = re.findall(r"```(\w+)\n(.*?)```", SECTIONS[script], re.DOTALL)
    assert [body for language, body in quoted if language == "text"] == [out]
    assert all(body in path.read_text() for language, body in quoted if language == "python")
    assert f"](images/{script}.png)" in SECTIONS[script]
    assert picture.stat().st_size > 10_000


def test_every_example_is_tested():
    """kafka_demo and replay beside the tests of Kafka, for they need a broker."""
    scripts = {path.stem for path in (ROOT / "examples").glob("*.py")} - {"__init__"}
    assert set(SECTIONS) == {"fraud", "demand", "drift", "clicks", "anomaly"}
    assert scripts - set(SECTIONS) == {
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
