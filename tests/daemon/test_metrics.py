"""The metrics that the daemon serves, by their public names."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from prometheus_client import generate_latest
from river import linear_model

from streamkernel import (
    AdaptiveKernelClassifier,
    AdaptiveKernelRegressor,
    KernelClassifier,
    KernelDensityRatio,
    KernelNoveltyDetector,
    KernelRegressor,
    WindowRefit,
)
from streamkernel.connectors import Position
from streamkernel.daemon.base.counts import LabelCounts, RecordCounts
from streamkernel.daemon.http.published import answer_scrape
from streamkernel.daemon.labels.join import LabelJoin
from streamkernel.daemon.monitoring.exporter import Exporter
from streamkernel.daemon.monitoring.view import ModelView, View
from streamkernel.daemon.run_state.models import published_entry
from streamkernel.daemon.stream.loop_time import ACTIVITIES
from streamkernel.daemon.stream.record_batch import LabelChunk, Labeled, RecordBatch
from tests.daemon.conftest import Home, Launcher, write_stream
from tests.daemon.endpoint import get, values_of
from tests.daemon.service import service_metrics
from tests.daemon.test_metrics_models import learned


def test_counters_start_at_0_and_the_lifetime_goes_on(home: Home, launcher: Launcher) -> None:
    write_stream(home.folder / "stream.csv", 1500)
    metrics = {"port": 0, "window": 500}
    home.configure(metrics=metrics)
    assert launcher.call(home, "run", "config.yaml", "--max-records", "600").returncode == 0
    before = home.header()["source"]["account"]
    home.configure(source={"kind": "csv", "path": "stream.csv", "target": "y", "follow": True}, metrics=metrics)
    daemon = launcher.start(home, "run", "config.yaml")
    url = daemon.wait_for(r"serving metrics at (http://127\.0\.0\.1:\d+)/metrics")[1]
    daemon.wait_for("reading csv file")
    while (values := values_of(get(f"{url}/metrics")[1]))["lifetime_records"] < 1500:
        time.sleep(0.05)
    assert get(f"{url}/healthz") == (200, "ok\n")
    assert get(f"{url}/readyz") == (200, "ready\n")
    assert get(f"{url}/")[0] == 200
    status, answer = get(f"{url}/api/status")
    assert status == 200
    assert json.loads(answer)["source"] == "csv file stream.csv, followed"
    assert get(f"{url}/elsewhere")[0] == 404
    daemon.signal(signal.SIGTERM)
    assert daemon.wait().returncode == 0
    after = home.header()["source"]["account"]
    assert after["consumed"] == 1500
    for name, key in (
        ("consumed", "consumed"),
        ("learned", "learned"),
        ("predicted", "predicted"),
        ("skipped", "skipped"),
    ):
        assert values[f"records_{name}_total"] == after[key] - before[key]
    dead = sum(value for name, value in values.items() if name.startswith("records_dead_lettered_total"))
    assert dead == after["dead"] - before["dead"]
    assert values["records_dead_lettered_total{reason=csv_width}"] > 0
    assert values["loss_observations_total"] == values["records_learned_total"]
    assert 0 < values["progressive_loss"] < 2
    assert 0.5 < values["rolling_metric{metric=accuracy,window=500}"] <= 1
    model = published_entry(home.header())
    assert values["random_features"] == model["n_features"]
    assert values["max_features"] == 256
    steps = values["feature_blocks_total{action=grown}"] + values["feature_blocks_total{action=reused}"]
    assert 0 < steps < model["n_grown"] + model["n_reused"]
    assert values["checkpoint_size_bytes"] > 0
    assert values["checkpoint_last_success_timestamp_seconds"] > 1.7e9
    assert values["learn_duration_seconds_count"] > 0
    assert values["model_memory_bytes"] > 0


def test_a_chunk_is_counted() -> None:
    exporter = Exporter(linear_model.LogisticRegression(), ["accuracy"], 10)
    account = RecordCounts(consumed=9, predicted=6, learned=4, unlabeled=2, skipped=1, dead=2)
    processed = RecordBatch(counts=account, labeled={"": Labeled(losses=[0.5, 0.25])}, learn_seconds=3e-6)
    processed.dead.update(["infinite", "refused"])
    exporter.chunk(processed)
    exporter.refresh(View(account={"consumed": 100}, loss=0.375, loss_sum=-0.75, rolling={"accuracy": 0.5}))
    values = values_of(generate_latest(exporter.registry).decode())
    assert values["records_consumed_total"] == 9
    assert values["records_dead_lettered_total{reason=refused}"] == 1
    assert values["records_dead_lettered_total{reason=nested}"] == 0
    assert values["lifetime_records"] == 100
    assert values["loss_sum"] == -0.75
    assert values["rolling_metric{metric=accuracy,window=10}"] == 0.5
    assert values["learn_duration_seconds_bucket{le=5e-06}"] == 1


class TestLag:
    """What is consumed and what is still to come add up, whenever they are asked for."""

    def scrape(self, exporter: Exporter, query: str = "") -> dict[str, float]:
        return values_of(answer_scrape(exporter.registry, query)[0].decode())

    def test_it_is_what_the_source_knows_of_less_what_was_dealt_with(self) -> None:
        source: Any = SimpleNamespace(known={})
        labels: Any = SimpleNamespace(known={})
        exporter = Exporter(linear_model.LogisticRegression(), ["accuracy"], 10, None, source, labels)
        assert not [name for name in self.scrape(exporter) if name.startswith("consumer_lag_records")]
        source.known = {("clicks", 0): 100, ("clicks", 3): 50}
        labels.known = {("bought", 3): 9}
        late = LabelChunk(LabelCounts(taken=4), next=Position("b", 3, 4))
        exporter.chunk(RecordBatch(counts=RecordCounts(consumed=7), next=Position("c", 3, 7), late=late))
        exporter.chunk(
            RecordBatch(counts=RecordCounts(consumed=2), next=Position("c", 3, 9), late=LabelChunk(LabelCounts()))
        )
        found = self.scrape(exporter)
        assert found["records_consumed_total"] == 9
        assert {name: value for name, value in found.items() if name.startswith("consumer_lag")} == {
            "consumer_lag_records{partition=0,topic=clicks}": 100,
            "consumer_lag_records{partition=3,topic=clicks}": 41,
            "consumer_lag_records{partition=3,topic=bought}": 5,
        }
        source.known = {("clicks", 3): 60}  # nothing but a scrape is needed to see it
        assert self.scrape(exporter)["consumer_lag_records{partition=3,topic=clicks}"] == 51
        assert self.scrape(exporter, "name[]=streamkernel_records_consumed_total") == {"records_consumed_total": 9}


KINDS: dict[str, Callable[[], Exporter]] = {
    "growing": lambda: Exporter(KernelClassifier(), ["accuracy"], 1000),
    "adaptive": lambda: Exporter(learned(30), ["accuracy"], 1000),
    "adaptive, fresh": lambda: Exporter(AdaptiveKernelClassifier(), ["accuracy"], 1000),
    "a regressor": lambda: Exporter(AdaptiveKernelRegressor(), ["mae"], 1000),
    "refitted": lambda: Exporter(WindowRefit(KernelRegressor(max_features=64)), ["mae"], 1000),
    "a detector": lambda: Exporter(KernelNoveltyDetector(), ["flagged"], 1000),
    "a ratio": lambda: Exporter(KernelDensityRatio(), [], 1000),
    "River's": lambda: Exporter(linear_model.LogisticRegression(), ["accuracy"], 1000),
    "late": lambda: Exporter(KernelClassifier(), ["accuracy"], 1000, LabelJoin("id", "y", 60.0, 10)),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shown", [False, True], ids=["before a record", "after some"])
def test_promtool_finds_nothing_to_say(kind: str, shown: bool, promtool: str) -> None:
    exporter = KINDS[kind]()
    if shown:
        exporter.chunk(
            RecordBatch(
                counts=RecordCounts(consumed=9, predicted=6), labeled={"": Labeled(losses=[0.5])}, learn_seconds=3e-6
            )
        )
        models = {"one": ModelView(rolling={"accuracy": 0.5}), "other": ModelView(disabled="it raised")}
        seconds = dict.fromkeys(ACTIVITIES, 0.25)
        figures = {"calibration_error": 0.1, "interval_coverage": 0.8, "loop_seconds": seconds, "slowest_record": 0.5}
        view = View(account={"consumed": 100}, loss=0.375, loss_sum=-0.75, models=models, **figures)  # type: ignore[arg-type]
        exporter.refresh(view)
    text = generate_latest(exporter.registry).decode()
    assert 'streamkernel_loop_seconds_total{activity="source"}' in text
    assert "process_cpu_seconds_total" in text
    checked = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, text=True, check=False)
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, "", "")


def test_promtool_finds_no_fault_in_the_metrics_of_the_service(promtool: str) -> None:
    shown = generate_latest(service_metrics().registry)
    checked = subprocess.run([promtool, "check", "metrics"], input=shown, capture_output=True, check=False)
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, b"", b"")
