"""Progressive validation: the same figures as a loop by hand, several configurations side by side, a plot."""

from __future__ import annotations

import csv
import errno
import json
import math
import os
import random
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from river import datasets, linear_model, metrics, preprocessing

from streamkernel import AdaptiveKernelClassifier
from streamkernel.daemon.assembly.plan import prepare
from streamkernel.daemon.base.errors import DaemonError
from streamkernel.daemon.cli import main
from streamkernel.daemon.evaluate import evaluate
from streamkernel.daemon.monitoring import evaluation
from streamkernel.daemon.monitoring.evaluation import CurveRecorder, Evaluation
from streamkernel.daemon.monitoring.whole_file import write_whole
from streamkernel.daemon.stream.record_batch import RecordBatch
from streamkernel.daemon.stream.stop import StopSignals
from tests.daemon.conftest import Home, write_stream
from tests.daemon.report_page import ReportPage

PHISHING = {"kind": "river", "dataset": "Phishing"}


def test_it_gives_the_figures_of_a_loop_by_hand(home: Home) -> None:
    steps = ["river.preprocessing.StandardScaler", "river.linear_model.LogisticRegression"]
    found = evaluate(prepare(home.configure(source=PHISHING, model=steps)), StopSignals())
    model = preprocessing.StandardScaler() | linear_model.LogisticRegression()
    accuracy = metrics.Accuracy()
    for x, y in datasets.Phishing():
        accuracy.update(y, max(p := model.predict_proba_one(x), key=p.get))
        model.learn_one(x, y)
    assert found.view.overall["accuracy"] == pytest.approx(accuracy.get())
    assert found.records == list(range(50, 1251, 50))
    assert found.loss[-1] == found.view.loss
    assert found.features == []


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (
            {"kind": "csv", "path": "stream.csv", "target": "y", "follow": True},
            "followed: add --set source.follow=false$",
        ),
        ({"kind": "river", "dataset": "synth.SEA", "args": {"seed": 1}}, "needs a source that ends, river data set"),
    ],
)
def test_a_source_without_an_end_is_refused(home: Home, source: dict[str, object], reason: str) -> None:
    with pytest.raises(DaemonError, match=reason):
        evaluate(prepare(home.configure(source=source)), StopSignals())


@pytest.mark.parametrize("option", ["--plot", "--html"])
def test_charts_without_matplotlib_say_what_to_install(
    option: str, here: Home, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    assert main(["evaluate", "config.yaml", option, "a.file"]) == 1
    assert f"{option} needs matplotlib: pip install 'streamkernel[plot]'" in caplog.text
    assert not (here.folder / "a.file").exists()


ADAPTIVE = [{"streamkernel.AdaptiveKernelClassifier": {"n_features": 16, "seed": 1}}]


def evaluated(config: Path) -> Evaluation:
    return evaluate(prepare(config), StopSignals())


def write_drifting(path: Path, records: int = 900, at: int = 500) -> None:
    """Write a CSV stream of two rings whose labels change places."""
    draw = random.Random(1)
    lines = ["a,b,y"]
    for number in range(records):
        a, b = draw.gauss(0, 1), draw.gauss(0, 1)
        lines.append(f"{a:.5f},{b:.5f},{'yes' if (a * a + b * b < 1.2) != (number >= at) else 'no'}")
    path.write_text("\n".join(lines) + "\n")


def test_marks_stand_where_a_loop_by_hand_finds_them(home: Home) -> None:
    write_drifting(home.folder / "stream.csv")
    home.configure(source={"kind": "csv", "path": str(home.folder / "stream.csv"), "target": "y"}, model=ADAPTIVE)
    found = evaluated(home.config)
    model = AdaptiveKernelClassifier(n_features=16, seed=1)
    drifts, metrics = [], []
    with (home.folder / "stream.csv").open() as file:
        for number, row in enumerate(csv.DictReader(file), 1):
            before = model.n_drifts_detected, model.n_metric_relearnings
            model.learn_one({"a": float(row["a"]), "b": float(row["b"])}, row["y"])
            drifts += [number] * (model.n_drifts_detected - before[0])
            # The curves have their points, and the marks their places, after every 50th record.
            metrics += [math.ceil(number / 50) * 50] * (model.n_metric_relearnings - before[1])
    assert len(drifts) == 1
    assert 500 < drifts[0] <= 800
    assert found.drifts == drifts
    assert found.relearnings == metrics
    curve = found.to_json()["curve"]
    assert (curve["drifts"], curve["metric_relearnings"]) == (drifts, metrics)


def test_a_long_stream_has_few_points(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that are left are the same points, at the same distance, and the end."""
    model = [{"streamkernel.KernelClassifier": {"seed": 1}}]
    home.configure(source=PHISHING, model=model)
    whole = evaluated(home.config)
    monkeypatch.setattr(evaluation, "MOST_POINTS", 10)
    thin = evaluated(home.config)
    assert thin.records == [*range(200, 1250, 200), 1250]
    places = [whole.records.index(record) for record in thin.records]
    assert thin.loss == [whole.loss[place] for place in places]
    assert thin.features == [whole.features[place] for place in places]
    assert thin.rolling == {name: [curve[place] for place in places] for name, curve in whole.rolling.items()}
    assert thin.view.loss == whole.view.loss
    assert whole.features == sorted(whole.features)
    assert whole.features[-1] == whole.view.growth["features"]


def test_challengers_have_their_own_curves_and_marks(here: Home) -> None:
    write_drifting(here.folder / "stream.csv")
    models = {"steady": [{"streamkernel.KernelClassifier": {"seed": 1, "max_features": 256}}], "adaptive": ADAPTIVE}
    config = here.config
    written = json.dumps({"source": {"kind": "csv", "path": "stream.csv", "target": "y"}, "models": models})
    config.write_text(written)
    assert main(["evaluate", "config.yaml", "--json", "figures.json"]) == 0
    figures = json.loads((here.folder / "figures.json").read_text())
    assert list(figures) == ["config: steady", "config: adaptive"]
    steady, adaptive = (one["curve"] for one in figures.values())
    assert len(adaptive["records"]) == len(adaptive["progressive_loss"])
    assert adaptive["records"][-1] == steady["records"][-1] == 900
    assert steady["drifts"] == steady["metric_relearnings"] == []
    assert len(adaptive["drifts"]) == 1
    assert "features" not in adaptive
    assert len(steady["features"]) == len(adaptive["records"])
    assert adaptive["rolling"]["accuracy"] != steady["rolling"]["accuracy"]


MODEL = [{"streamkernel.KernelClassifier": {"seed": 1, "max_features": 64}}]


@pytest.fixture
def small(here: Home) -> Home:
    write_stream(here.folder / "stream.csv", 200)
    for name in ("first", "second"):
        here.configure(model=MODEL).rename(here.folder / f"{name}.yaml")
    return here


def stop_in_the_midst(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    original: Callable[..., None] = CurveRecorder.chunk

    def chunk(recorder: CurveRecorder, done: RecordBatch) -> None:
        original(recorder, done)
        if len(recorder.evaluation.records) == 2:
            os.kill(os.getpid(), number)

    monkeypatch.setattr(CurveRecorder, "chunk", chunk)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_evaluation_that_is_stopped_says_so(
    number: signal.Signals, small: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stop_in_the_midst(monkeypatch, number)
    files = ["--json", "figures.json", "--html", "report.html"]
    assert main(["evaluate", "first.yaml", "second.yaml", *files]) == 128 + number
    told = capsys.readouterr()
    assert "first was stopped after 100 records, second did not start" in told.err
    figures = json.loads((small.folder / "figures.json").read_text())
    assert list(figures) == ["first"]
    assert figures["first"]["stopped"] == number.name
    page = ReportPage((small.folder / "report.html").read_text("utf-8"))
    assert f"by {number.name} before the end of the source" in page.text


def test_a_full_disk_leaves_the_file_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "report.html"
    file.write_text("before")

    def write_bytes(path: Path, content: bytes) -> int:
        path.write_text(content.decode()[:1])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_bytes", write_bytes)
    with pytest.raises(DaemonError, match=r"report\.html: cannot be written: No space left"):
        write_whole(file, b"after")
    assert file.read_text() == "before"
    assert list(tmp_path.iterdir()) == [file]
