"""The report of an evaluation: strict HTML that loads nothing, the figures of --json, hostile names as text."""

from __future__ import annotations

import json
import math
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

from streamkernel.daemon.cli import main
from streamkernel.daemon.monitoring.evaluation import Evaluation
from streamkernel.daemon.monitoring.report import report
from streamkernel.daemon.monitoring.tables import shown_number
from streamkernel.daemon.monitoring.view import View
from tests.daemon.conftest import Home, write_stream
from tests.daemon.report_page import ReportPage
from tests.daemon.test_evaluate import ADAPTIVE, write_drifting

WHEN = datetime(2026, 11, 24, 11, 0, tzinfo=UTC)
GROWING = [{"streamkernel.KernelClassifier": {"seed": 1, "max_features": 256}}]


def test_it_has_the_figures_of_json_and_a_chart_of_each_curve(here: Home, capsys: pytest.CaptureFixture[str]) -> None:
    write_drifting(here.folder / "stream.csv")
    for name, model in (("grows", GROWING), ("adapts", ADAPTIVE)):
        here.configure(model=model).rename(here.folder / f"{name}.yaml")
    files = ["--json", "figures.json", "--html", "report.html", "--plot", "curves.png"]
    assert main(["evaluate", "grows.yaml", "adapts.yaml", *files]) == 0
    assert re.search(r"grows +adapts", capsys.readouterr().out)
    assert (here.folder / "curves.png").read_bytes().startswith(b"\x89PNG")
    figures = json.loads((here.folder / "figures.json").read_text())
    assert list(figures) == ["grows", "adapts"]
    assert figures["grows"]["reused"] > 0
    for one in figures.values():
        assert one["account"]["consumed"] == 900
        assert one["curve"]["records"] == list(range(50, 901, 50))
        assert len(one["curve"]["records"]) == len(one["curve"]["progressive_loss"])
    assert len(figures["grows"]["curve"]["features"]) == len(figures["grows"]["curve"]["records"])
    page = ReportPage((here.folder / "report.html").read_text("utf-8"))
    for name in ("accuracy", "macro_f1", "log_loss"):
        values = [figures[run]["metrics"][name] for run in ("grows", "adapts")]
        best = (min if name == "log_loss" else max)(values)
        shown = [shown_number(one) + " (best)" * (one == best) for one in values]
        assert page.rows[name.replace("_", " ") + ", all records" * (name == "log_loss")] == shown
    baseline = figures["grows"]["baseline"]
    assert page.rows["accuracy of the majority class"][0] == shown_number(baseline["accuracy"])
    losses = [shown_number(one["progressive_loss"]) for one in figures.values()]
    assert page.rows["progressive loss, last 900"] == losses
    assert page.rows["features"] == [f"{figures['grows']['features']:,}", ""]
    curve = figures["adapts"]["curve"]
    assert page.rows["drifts detected"] == ["", str(len(curve["drifts"]))] == ["", "1"]
    assert f"after {curve['drifts'][0]:,} records" in page.text
    assert [label.split(" by")[0] for label in page.labels] == [
        "Progressive loss",
        "Rolling accuracy",
        "Rolling macro f1",
        "Rolling log loss",
        "Random features",
    ]
    assert page.labels[1].endswith(f"adapts {shown_number(curve['rolling']['accuracy'][-1])}")
    assert "csv file stream.csv" in page.text
    assert "max_features=256" in page.text  # the pipeline, as River writes it
    assert not {"script", "link", "img", "iframe"} & set(page.tags)


def test_what_is_hostile_stays_text(here: Home) -> None:
    """The names of the run, of an input and of a label hold markup, and what turns the direction of text."""
    name = "<script>alert(1)</script>\u202e'\"&amp;".replace("/", "\u2215")
    stream = "<img src=x onerror=alert(1)>,y\n" + "1,</table><b>\n2,--><i>\n" * 30
    (here.folder / "<style>.csv").write_text(stream)
    source = {"kind": "csv", "path": "<style>.csv", "target": "y"}
    here.configure(source=source, model=ADAPTIVE).rename(here.folder / f"{name}.yaml")
    assert main(["evaluate", f"{name}.yaml", "--html", "report.html", "--plot", "curves.png"]) == 0
    page = ReportPage((here.folder / "report.html").read_text("utf-8"))
    assert {"script", "img", "b>", "i>"} & set(page.tags) == set()
    shown = name.replace("\u202e", "\\u202e")
    assert f"Evaluation of {shown}" in page.text
    assert "csv file <style>.csv" in page.text
    assert "\u202e" not in page.text


def test_secrets_are_not_in_it(here: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PW", "hunter<2>")
    written = yaml.safe_load(here.config.read_text())
    written["predictions"] = {"kind": "kafka", "bootstrap_servers": "nowhere:9092", "topic": "out"}
    written["predictions"]["options"] = {
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "PLAIN",
        "sasl_plain_username": "me",
        "sasl_plain_password": "${PW}",
    }
    # A secret that stands elsewhere, too, as it may in an argument of a model of one's own.
    written["source"]["path"] = "hunter<2>.csv"
    here.config.write_text(yaml.safe_dump(written))
    write_stream(here.folder / "hunter<2>.csv", 100)
    assert main(["evaluate", "config.yaml", "--html", "report.html"]) == 0
    text = (here.folder / "report.html").read_text("utf-8")
    assert "hunter" not in text
    assert "${PW}.csv" in ReportPage(text).text


def test_several_models_of_one_configuration(here: Home, capsys: pytest.CaptureFixture[str]) -> None:
    write_drifting(here.folder / "stream.csv")
    models = {"first": GROWING, "second": ADAPTIVE, "broken": ["river.linear_model.LogisticRegression"]}
    written = {"source": {"kind": "csv", "path": "stream.csv", "target": "y"}, "models": models}
    here.config.write_text(yaml.safe_dump(written, sort_keys=False))
    assert main(["evaluate", "config.yaml", "--html", "report.html", "--plot", "curves.png"]) == 0
    said = capsys.readouterr().out
    page = ReportPage((here.folder / "report.html").read_text("utf-8"))
    for name in ("config: first", "config: second", "config: broken"):
        assert name in page.text
        assert name in said
    assert page.rows["records"][:2] == ["900", "900"]
    assert "config: broken none" in page.labels[0]
    assert "it refused more than 50%" in page.text
    assert "n_features=16" in page.text


def test_a_point_between_gaps_is_a_dot() -> None:
    dotted = report({"a": Evaluation(View(), [50, 100, 150], [math.nan, 1.0, math.nan])}, WHEN)
    assert dotted.count("<use") == report({"a": Evaluation(View(), [50, 100], [1.0, 1.0])}, WHEN).count("<use") + 1


@pytest.mark.parametrize("option", ["--json", "--plot", "--html"])
def test_a_file_that_cannot_be_written_is_told_before_the_work(
    option: str, here: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    (here.folder / "folder").mkdir()
    for file, why in (("nowhere/file", "No such file or directory"), ("folder", "Is a directory")):
        assert main(["evaluate", "config.yaml", option, file]) == 1
        said = capsys.readouterr()
        assert said.err.endswith(f"{file}: cannot be written: {why}\n")
        assert (said.out, said.err.count("Traceback")) == ("", 0)
    (here.folder / "link").symlink_to("stream.csv")
    for file, key in (("link", "source.path"), ("./config.yaml", "the configuration itself")):
        before = Path(file).read_bytes()
        assert main(["evaluate", "config.yaml", option, file]) == 2
        assert capsys.readouterr().err == f"{option}: must differ from {key} of config.yaml, they are the same file\n"
        assert Path(file).read_bytes() == before
