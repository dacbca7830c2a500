"""However many names, labels, files or paths a stream or a client makes up, there are no more series."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from typing import Any

import pytest
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from streamkernel.daemon.assembly.plan import prepare
from streamkernel.daemon.base.mixture import MOST_INPUTS
from streamkernel.daemon.runtime import run
from tests.daemon.conftest import Home
from tests.daemon.service import DIRECT, serving
from tests.daemon.test_calibration import served

pytestmark = pytest.mark.usefixtures("processes")

MADE_UP = 2_000
# Of a daemon; each bound of a histogram is a series.
MOST_SERIES = 200
# What takes its values from the stream, and how many it may have at a time.
OF_THE_STREAM = {"input": MOST_INPUTS}


def series(families: Iterable[Metric]) -> Counter[str]:
    """How many values each label has, and under the empty name how many series there are."""
    values: dict[str, set[str]] = {}
    count = 0
    for family in families:
        for sample in family.samples:
            count += 1
            for label, value in sample.labels.items():
                values.setdefault(label, set()).add(value)
    return Counter({"": count, **{label: len(found) for label, found in values.items()}})


def exported(home: Home, monkeypatch: pytest.MonkeyPatch, **sections: Any) -> Counter[str]:
    exporters = served(monkeypatch)
    home.configure(metrics={"port": 0}, **sections)
    run(prepare(home.config), fresh=True)
    return series(exporters[-1].registry.collect())


def assert_bounded(few: Counter[str], many: Counter[str]) -> None:
    assert many[""] <= MOST_SERIES
    grown = {label: n for label, n in many.items() if label and n > few[label]}
    assert grown.keys() <= OF_THE_STREAM.keys()
    assert all(n <= OF_THE_STREAM[label] for label, n in grown.items())


ADAPTIVE: dict[str, Any] = {
    "streamkernel.AdaptiveKernelClassifier": {
        "seed": 1,
        "n_features": 4,
        "n_trees": 0,
        "metric_schedule": [50, 150],
        "max_inputs": 40,
        "max_classes": 4,
    }
}


@pytest.mark.filterwarnings("ignore:.*max_(inputs|classes).*:RuntimeWarning")
def test_inputs_and_labels_that_are_new_in_each_record(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    def write(n: int) -> None:
        rows = ({f"input {i}": i % 7, "a": i % 5, "y": f"label {i % 3 if i < 500 else i}"} for i in range(n))
        # One in a hundred is a dead letter, each with a text of its own.
        lines = (json.dumps(row) if i % 100 != 1 else f"{{broken {i}" for i, row in enumerate(rows))
        (home.folder / "stream.jsonl").write_text("\n".join(lines) + "\n")

    source = {"kind": "jsonl", "path": "stream.jsonl", "target": "y"}
    sections: dict[str, Any] = {"source": source, "model": [ADAPTIVE], "limits": {"max_inputs": 100}}
    write(1)
    few = exported(home, monkeypatch, **sections)
    write(MADE_UP)
    many = exported(home, monkeypatch, **sections)
    few["expert"] = many["expert"]  # there are none before a record was learned
    assert many["input"] == MOST_INPUTS
    assert_bounded(few, many)


def test_files_of_many_names(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = home.folder / "parts"
    folder.mkdir()
    source = {"kind": "csv", "path": "parts/*.csv", "target": "y"}
    (folder / "0.csv").write_text("a,b,y\n1,2,yes\n")
    few = exported(home, monkeypatch, source=source)
    for number in range(1, 200):
        (folder / f"{number}.csv").write_text(f"a,b,y\n{number},2,no\n")
    assert_bounded(few, exported(home, monkeypatch, source=source))


def test_paths_and_bodies_that_clients_make_up(home: Home) -> None:
    with serving(home, **DIRECT) as (client, _):

        def asked() -> Counter[str]:
            return series(text_string_to_metric_families(client.ask("/metrics")[1].decode()))

        for path, body in (("/predict", {"a": 1}), ("/learn", {"a": 1, "y": "yes"}), ("/predict", b"{")):
            client.ask(path, body)
        few = asked()
        for number in range(1_000):
            client.ask(f"/predict/{number}?a={number}")
        for number in range(50):
            client.ask("/predict", f"{{broken {number}".encode())
        many = asked()
    assert_bounded(few, many)
