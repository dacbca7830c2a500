"""What an operator sees of late labels: counters, gauges, the delay, the status page."""

from __future__ import annotations

import json
import signal
import time

from prometheus_client import generate_latest
from river import linear_model

from streamkernel.daemon.labels.join import LabelJoin
from streamkernel.daemon.monitoring.exporter import Exporter
from streamkernel.daemon.monitoring.view import View
from tests.daemon.conftest import Home, Launcher
from tests.daemon.endpoint import get, values_of
from tests.daemon.labels_stream import sections, write_pair
from tests.daemon.labels_twin import Counting, Daemon, event


def test_a_chunk_is_counted() -> None:
    now = [0.0]
    daemon = Daemon(2, Counting(), LabelJoin("id", "y", 3600.0, 2, clock=lambda: now[0]))
    exporter = Exporter(linear_model.LogisticRegression(), ["accuracy"], 10, daemon.join)
    values = values_of(generate_latest(exporter.registry).decode())
    assert values["labels_max_pending"] == 2
    assert values["labels_dead_lettered_total{reason=key}"] == values["record_keys_refused_total{reason=missing}"] == 0
    records = [event(False, i, key, None, "good") for i, key in enumerate(["p", "q", "r", "p", None])]
    labels = [event(True, i, key, "a", "good") for i, key in enumerate(["r", "r", "p", "s", "t", "u", None])]
    exporter.chunk(*daemon.processor.process(records))
    now[0] += 5.0
    exporter.chunk(*daemon.processor.process(labels))
    exporter.refresh(View(account={"consumed": 0}, loss=0.0, loss_sum=0.0, rolling={}))
    values = values_of(generate_latest(exporter.registry).decode())
    for name, count in (
        ("labels_consumed_total", 7),
        ("labels_matched_total", 1),
        ("labels_expired_total", 1),
        ("labels_doubled_total", 1),
        ("labels_early_total", 3),
        ("labels_unmatched_total", 2),
        ("labels_dead_lettered_total{reason=key}", 1),
        ("record_keys_refused_total{reason=missing}", 1),
        ("record_keys_refused_total{reason=repeated}", 1),
        ("labels_pending", 1),
        ("labels_waiting", 2),
        ("label_delay_seconds_count", 1),
        ("label_delay_seconds_sum", 5),
        ("records_learned_total", 1),
    ):
        assert values[name] == count, name


def test_what_a_daemon_serves_is_what_its_checkpoint_says(home: Home, launcher: Launcher) -> None:
    write_pair(home.folder, "jsonl", 1500)
    made = sections()
    for source in (made["source"], made["labels"]["source"]):
        source["follow"] = True
    home.configure(**made, metrics={"port": 0})
    lines = [len((home.folder / name).read_text().splitlines()) for name in ("records.jsonl", "labels.jsonl")]
    daemon = launcher.start(home, "run", "config.yaml")
    url = daemon.wait_for(r"serving metrics at (http://127\.0\.0\.1:\d+)/metrics")[1]
    # Page and gauges follow twice a second, together.
    for _ in range(1000):
        figures = json.loads(get(f"{url}/api/status")[1])["figures"]
        values = values_of(get(f"{url}/metrics")[1])
        shown = [figures["account"].get("consumed"), figures.get("labels", {}).get("taken")]
        if shown == lines == [values[f"{one}_consumed_total"] for one in ("records", "labels")]:
            break
        time.sleep(0.02)
    daemon.signal(signal.SIGTERM)
    assert daemon.wait().returncode == 0
    header = home.header()["labels"]
    for name, key in (("consumed", "taken"), *((one, one) for one in ("matched", "expired", "early", "unmatched"))):
        assert values[f"labels_{name}_total"] == header["account"][key]
    assert values["labels_pending"] == header["pending"] > 0
    assert values["labels_waiting"] == header["waiting"] > 0
    dead = sum(value for name, value in values.items() if name.startswith("labels_dead_lettered_total"))
    assert dead == header["account"]["dead"]
    assert figures["labels"]["pending"] == header["pending"]
    assert figures["labels"] == {**header["account"], **{name: header[name] for name in ("pending", "waiting")}}


def test_the_status_of_a_daemon_without_late_labels_has_none() -> None:
    assert "labels" not in View().to_json()
