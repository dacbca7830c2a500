"""The lines that `inspect` prints: twelve that matter, all of them with --all, and no word is cut."""

from __future__ import annotations

import json

import pytest
import yaml

from streamkernel.daemon.cli import main
from streamkernel.daemon.monitoring.inspection import describe, description_lines
from streamkernel.daemon.run_state.models import published_entry
from tests.daemon.conftest import Home

ADAPTIVE = [{"streamkernel.AdaptiveKernelClassifier": {"seed": 1, "n_features": 4, "metric_schedule": [50]}}]
ROWS = ["checkpoint", "written", "mode", "records", "source", "continues at", "outputs", "model", "experts", "inputs"]


@pytest.fixture
def saved(here: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    here.configure(model=ADAPTIVE)
    assert main(["run", "config.yaml"]) == 0
    capsys.readouterr()


def inspected(capsys: pytest.CaptureFixture[str], *options: str) -> str:
    assert main(["inspect", "out/state", *options]) == 0
    return capsys.readouterr().out


@pytest.mark.usefixtures("saved")
def test_it_prints_the_twelve_things_that_matter(capsys: pytest.CaptureFixture[str]) -> None:
    lines = inspected(capsys).splitlines()
    described = json.loads(inspected(capsys, "--json"))
    assert [line[:12].rstrip() for line in lines if line[0] != " "] == [*ROWS, "state digest", "written by"]
    assert f"state digest  {published_entry(described)['state_digest']}" in lines
    assert f"checkpoint    {described['file']}, the newest of {len(described['directory'])}" in lines
    assert f"continues at  offset {described['source']['positions'][0][2]:,}" in lines
    assert "source        kind csv, target y" in lines
    ordered = sorted(published_entry(described)["expert_weights"].items(), key=lambda one: -one[1])
    (experts,) = (line for line in lines if line.startswith("experts"))
    assert experts.startswith(f"experts       {ordered[0][0]}: {ordered[0][1]:.1%};")


@pytest.mark.usefixtures("saved")
def test_all_has_every_entry(capsys: pytest.CaptureFixture[str]) -> None:
    first, text = inspected(capsys), inspected(capsys, "--all")
    assert text.startswith(first)
    assert yaml.safe_load(text.removeprefix(first)) == json.loads(inspected(capsys, "--json"))


def test_a_long_path_is_whole_and_an_invalid_neighbor_is_shown(here: Home) -> None:
    folder = f"out/{'a-long-name-' * 8}"
    here.configure(checkpoint={"directory": folder, "every_records": 500})
    assert main(["run", "config.yaml"]) == 0
    newest = sorted((here.folder / folder).glob("*.skc"))[-1]
    newest.write_bytes(b"broken")
    text = "\n".join(description_lines(describe(here.folder / folder), 80))
    assert f"{folder}/checkpoint-" in text
    assert "\ninvalid\n" in text
    assert str(newest) in text
