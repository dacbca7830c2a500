"""One version, one address, and dependencies that are split as the pages say."""

import re
import tomllib
from pathlib import Path

import yaml

import streamkernel
from configs.mixin.settings import MixinSettings

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]


def names(requirements):
    return {re.match(r"[\w-]+", one)[0].lower() for one in requirements}


def test_the_version_is_in_one_place():
    assert PROJECT["dynamic"] == ["version"]
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == streamkernel.__version__
    assert citation["repository-code"] == PROJECT["urls"]["Repository"]


def test_alerts_lead_to_the_site():
    assert MixinSettings().runbooks == PROJECT["urls"]["Documentation"] + "/runbooks"


def test_the_badge_shows_a_workflow_of_the_repository():
    (workflow,) = re.findall(r"\]\((\S+)/badge.svg\)", (ROOT / "README.md").read_text())
    address, _, file = workflow.partition("/actions/workflows/")
    assert address == PROJECT["urls"]["Repository"]
    assert (ROOT / ".github/workflows" / file).exists()


def test_the_status_page_leads_to_the_site():
    script = (ROOT / "streamkernel/daemon/monitoring/page/page.js").read_text()
    assert f'"{PROJECT["urls"]["Documentation"]}/how-to/status-page.html"' in script


def test_an_estimator_needs_six_packages():
    assert names(PROJECT["dependencies"]) == {"river", "numpy", "scipy", "numba", "narwhals", "threadpoolctl"}


def test_the_shipped_code_is_of_the_newest_numba_that_is_allowed():
    (allowed,) = re.findall(r"numba>=[\d.]+,<=([\d.]+)", " ".join(PROJECT["dependencies"]))
    (locked,) = re.findall(r"^numba==([\d.]+)", (ROOT / "requirements.lock").read_text(), re.MULTILINE)
    assert allowed == locked


def test_make_run_needs_few_packages():
    locked = (ROOT / "requirements-run.lock").read_text()
    here = [line for line in re.findall(r"^[\w-]+==.*$", locked, re.MULTILINE) if "win32" not in line]
    assert len({line.partition("==")[0] for line in here}) <= 32


def test_each_extra_has_a_row_in_the_table():
    page = (ROOT / "docs/how-to/install.md").read_text()
    assert set(re.findall(r"^\| `\[([\w-]+)\]` \|", page, re.MULTILINE)) == EXTRAS.keys() - {"dev", "docs", "peers"}
