"""Late labels in files that grow: what an operator sees of them, and labels that are refused, deadly or too many."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from prometheus_client import generate_latest
from river import linear_model

from streamkernel.daemon.labels.join import LabelJoin
from streamkernel.daemon.monitoring.exporter.exporter import Exporter
from streamkernel.daemon.monitoring.view import View
from streamkernel.daemon.runtime import run
from streamkernel.daemon.wiring.plan import prepare
from tests.daemon.conftest import Home, Launcher
from tests.daemon.endpoint import get, values_of
from tests.daemon.labels_stream import adds_up, sections, write_pair
from tests.daemon.labels_twin import Counting, Daemon, event
from tests.daemon.test_labels_run import MODELS


def test_a_chunk_is_counted() -> None:
    now = [0.0]
    daemon = Daemon(2, Counting(), LabelJoin("id", "y", 3600.0, 2, clock=lambda: now[0]))
    exporter = Exporter(linear_model.LogisticRegression(), ["accuracy"], 10, daemon.join)
    values = values_of(generate_latest(exporter.registry).decode())
    assert values["labels_max_pending"] == 2
    assert values["labels_dead_lettered_total{reason=key}"] == values["record_keys_refused_total{reason=missing}"] == 0
    records = [event(False, i, key, None, "good") for i, key in enumerate(["p", "q", "r", "p", None])]
    labels = [event(True, i, key, "a", "good") for i, key in enumerate(["r", "r", "p", "s", "t", "u", None])]
    exporter.chunk(daemon.processor.process(records))
    now[0] += 5.0
    exporter.chunk(daemon.processor.process(labels))
    exporter.refresh(View(account={"consumed": 0}, loss=0.0, loss_sum=0.0, rolling={}), 0.0)
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


def followed(kind: str = "jsonl", **labels: Any) -> dict[str, Any]:
    made = sections(kind, **labels)
    for source in (made["source"], made["labels"]["source"]):
        source["follow"] = True
    return made


def append(path: Path, lines: list[str]) -> None:
    with path.open("a") as file:
        file.write("".join(line + "\n" for line in lines))


def wait_until(daemon: Any, home: Home, holds: Callable[[dict[str, Any]], bool]) -> None:
    for _ in range(3000):
        if holds(home.header()):
            return
        time.sleep(0.01)
    raise AssertionError(daemon.log)


class TestLive:
    """Files that grow: nobody waits for the other, and a stop is a stop."""

    def start(self, home: Home, launcher: Launcher, **labels: Any) -> Any:
        home.configure(**followed(**labels), model=MODELS["growing"])
        home.config.write_text(home.config.read_text().replace("every_records: 300", "every_seconds: 0.05"))
        for name in ("records.jsonl", "labels.jsonl"):
            (home.folder / name).touch()
        daemon = launcher.start(home, "run", "config.yaml")
        daemon.wait_for("from label 1 on")
        return daemon

    def test_a_silent_source_starves_nobody_and_labels_alone_are_saved(self, home: Home, launcher: Launcher) -> None:
        daemon = self.start(home, launcher)
        labels = [f'{{"id": {i}, "y": "{"pq"[i % 2]}"}}' for i in range(200)]
        append(home.folder / "records.jsonl", [f'{{"id": {i}, "a": {i}}}' for i in range(200)])
        wait_until(daemon, home, lambda header: header["labels"]["pending"] == 200)
        append(home.folder / "labels.jsonl", labels[:120])
        wait_until(daemon, home, lambda header: header["labels"]["account"]["matched"] == 120)
        append(home.folder / "labels.jsonl", labels[120:])
        wait_until(daemon, home, lambda header: header["labels"]["account"]["matched"] == 200)
        daemon.signal(signal.SIGKILL)
        daemon.wait()
        assert home.header()["account"]["learnt"] == 200
        # Labels first, this time.
        append(home.folder / "labels.jsonl", [f'{{"id": {i}, "y": "p"}}' for i in range(200, 300)])
        daemon = launcher.start(home, "run", "config.yaml")
        wait_until(daemon, home, lambda header: header["labels"]["waiting"] == 100)
        append(home.folder / "records.jsonl", [f'{{"id": {i}, "a": {i}}}' for i in range(200, 300)])
        wait_until(daemon, home, lambda header: header["account"]["learnt"] == 300)
        daemon.signal(signal.SIGTERM)
        ended = daemon.wait()
        assert ended.returncode == 0
        assert "SIGTERM came; everything up to record 300 and label 300 is saved" in ended.stderr
        adds_up(home.header())


MODEL = """
import os
from river import dummy

class Deadly(dummy.PriorClassifier):
    '''Dies over a label.'''

    def learn_one(self, x, y):
        if y == "die":
            os.abort()
        super().learn_one(x, y)
"""


def test_a_label_that_kills_the_process_is_found_and_the_others_are_learnt(home: Home, launcher: Launcher) -> None:
    (home.folder / "deadly.py").write_text(MODEL)
    append(home.folder / "records.jsonl", [f'{{"id": {i}, "a": {i}}}' for i in range(900)])
    labels = [f'{{"id": {i}, "y": "{"pq"[i % 2]}"}}' for i in range(900)]
    labels[413] = '{"id": 413, "y": "die"}'
    append(home.folder / "labels.jsonl", labels)
    home.configure(**sections(), model=["deadly.Deadly"], imports=["deadly"])
    statuses: list[int] = []
    while 0 not in statuses and len(statuses) < 10:
        statuses.append(launcher.call(home, "run", "config.yaml").returncode)
    # Once with its chunk, three times by itself; then it is tried in a child, and that dies too.
    assert statuses == [-signal.SIGABRT] * 4 + [0]
    (letter,) = home.lines("out/dead.jsonl")
    assert (letter["reason"], letter["raw"], letter["position"]["source"]) == ("kills_process", labels[413], "labels")
    header = home.header()
    adds_up(header)
    assert (header["account"]["learnt"], header["labels"]["pending"]) == (899, 1)
    assert len(home.lines("out/predictions.jsonl")) == 900


def test_an_early_label_the_model_refuses_is_a_dead_letter_when_its_record_comes(
    home: Home,
) -> None:
    append(home.folder / "labels.jsonl", [f'{{"id": "k{i}", "y": "{"pq"[i % 2]}"}}' for i in range(20)])
    append(home.folder / "labels.jsonl", ['{"id": "late one", "y": "third"}'])
    records = [f'{{"id": "k{i}", "a": {i}}}' for i in range(20)] + ["", "", "", '{"id": "late one", "a": 1}']
    append(home.folder / "records.jsonl", records)
    model = [{"streamkernel.KernelClassifier": {"seed": 1, "loss": {"streamkernel.losses.Log": {}}}}]
    run(prepare(home.configure(**sections(), model=model)))
    (letter,) = home.lines("out/dead.jsonl")
    assert letter["reason"] == "refused"
    assert letter["raw"] == '{"id": "late one", "y": "third"}'
    offset = (home.folder / "labels.jsonl").read_text().index('{"id": "late one"')
    assert letter["position"] == {"partition": 0, "offset": offset, "source": "labels"}
    header = home.header()
    adds_up(header)
    # The record was predicted, and waits for a label it can be learnt with.
    assert (header["account"]["predicted"], header["labels"]["pending"]) == (21, 1)


def test_labels_that_are_not_what_the_configuration_says_stop_it(home: Home, launcher: Launcher) -> None:
    write_pair(home.folder, "jsonl", 600, bad=False)
    made = sections(key="a")
    home.configure(**made)
    ended = launcher.call(home, "run", "config.yaml")
    assert ended.returncode == 1
    assert "of the last 1,000 labels were dead letters (the last one: key, there is no a to know" in ended.stderr


def test_what_waits_is_bounded_by_its_bytes(home: Home, launcher: Launcher) -> None:
    write_pair(home.folder, "jsonl", 600)
    home.configure(**sections(max_pending_bytes=6000))
    assert launcher.call(home, "run", "config.yaml", "--max-records", "500").returncode == 0
    adds_up(home.header())
    labels = home.header()["labels"]
    assert 20 < labels["pending"] < 60  # of some hundred bytes each, where 250 might wait
    assert labels["account"]["expired"] > 100
