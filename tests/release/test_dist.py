"""What is made of the README for PyPI, and which program a trial runs."""

import subprocess
import sys
from pathlib import Path

import pytest

from release.dist import absolute
from release.trial import FILES, quoted_example

ROOT = Path(__file__).parents[2]


def test_relative_links_lead_to_the_repository_of_the_version():
    text = "[a](docs/a.md#b) ![c](d/c.png) [d](https://d.org) [e](#e)"
    led = "[a](https://x.org/r/blob/v1.2/docs/a.md#b) ![c](https://x.org/r/raw/v1.2/d/c.png) [d](https://d.org) [e](#e)"
    assert absolute(text, "https://x.org/r", "1.2") == led


def test_the_trial_runs_the_program_of_the_readme():
    program, printed = quoted_example((ROOT / "README.md").read_text())
    assert "AdaptiveKernelClassifier" in program
    assert printed.startswith("Accuracy: ")


def test_what_a_trial_looks_for_is_shipped():
    for path in FILES:
        assert (ROOT / "streamkernel/data" / path).read_bytes() == (ROOT / path).read_bytes()


@pytest.mark.long
@pytest.mark.usefixtures("processes")
def test_everything_is_built_and_used_from_empty_environments(tmp_path):
    subprocess.run([sys.executable, "-m", "release.dist", str(tmp_path / "dist")], cwd=ROOT, check=True)
    assert {path.suffix for path in (tmp_path / "dist").iterdir()} == {".gz", ".whl"}
