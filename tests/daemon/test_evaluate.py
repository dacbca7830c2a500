"""Progressive validation: the same figures as a loop by hand, several configurations side by side, a plot."""

from __future__ import annotations

import pytest
from river import datasets, linear_model, metrics, preprocessing

from streamkernel.daemon.assembly.plan import prepare
from streamkernel.daemon.base.errors import DaemonError
from streamkernel.daemon.cli import main
from streamkernel.daemon.evaluate import evaluate
from streamkernel.daemon.stream.stop import StopSignals
from tests.daemon.conftest import Home

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
