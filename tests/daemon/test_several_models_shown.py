"""Several models in tables, metrics and the status page."""

from __future__ import annotations

import json

import pytest

from streamkernel.daemon.monitoring.exporter import Exporter
from streamkernel.daemon.monitoring.tables import summary_table
from streamkernel.daemon.monitoring.view import ModelView, View
from streamkernel.daemon.runtime import run
from tests.daemon.conftest import Home
from tests.daemon.test_several_models import OURS, RIVER, several


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_tables_have_a_column_for_the_name_and_one_for_the_others(here: Home, kind: str) -> None:
    run(several(here, predictions={"kind": kind, "path": f"out/table.{kind}", "models": "all"}))
    if kind == "csv":
        import csv

        with (here.folder / "out/table.csv").open(newline="") as file:
            last = list(csv.DictReader(file))[-1]
    else:
        from pyarrow import dataset

        last = dataset.dataset(here.folder / "out/table.parquet").to_table().to_pylist()[-1]
    assert last["model"] == "champion"
    assert "probabilities" in json.loads(last["models"])["challenger"]


def test_the_metrics_have_the_label_model(here: Home) -> None:
    from prometheus_client import generate_latest
    from river import linear_model

    view = run(several(here, models={"champion": OURS, "challenger": RIVER}))
    exporter = Exporter(linear_model.LogisticRegression(), ["accuracy"], 1000)
    exporter.refresh(view)
    text = generate_latest(exporter.registry).decode()
    for line in (
        'streamkernel_model_published{model="champion"} 1.0',
        'streamkernel_model_published{model="challenger"} 0.0',
        'streamkernel_model_enabled{model="challenger"} 1.0',
        'streamkernel_model_rolling_metric{metric="accuracy",model="challenger",window="1000"} 0.',
        'streamkernel_model_events_total{model="challenger"}',
        'streamkernel_model_loss_sum{model="champion"}',
    ):
        assert line in text
    shown = view.to_json()["models"]
    assert {name: one["published"] for name, one in shown.items()} == {"champion": True, "challenger": False}
    table = summary_table(view.by_model())
    assert [column.header for column in table.columns] == ["", "champion (published)", "challenger (challenger)"]
    assert "models" not in View().to_json()
    assert ModelView(disabled="x").state == "disabled"
