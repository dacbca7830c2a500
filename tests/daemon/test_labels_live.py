"""Late labels in files that grow, and labels that are refused, deadly or too many."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from streamkernel.daemon.assembly.plan import prepare
from streamkernel.daemon.runtime import run
from tests.daemon.conftest import Home, Launcher
from tests.daemon.labels_stream import adds_up, sections, write_pair
from tests.daemon.test_labels_run import MODELS


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
        assert home.header()["source"]["account"]["learned"] == 200
        # Labels first, this time.
        append(home.folder / "labels.jsonl", [f'{{"id": {i}, "y": "p"}}' for i in range(200, 300)])
        daemon = launcher.start(home, "run", "config.yaml")
        wait_until(daemon, home, lambda header: header["labels"]["waiting"] == 100)
        append(home.folder / "records.jsonl", [f'{{"id": {i}, "a": {i}}}' for i in range(200, 300)])
        wait_until(daemon, home, lambda header: header["source"]["account"]["learned"] == 300)
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


def test_a_label_that_kills_the_process_is_found_and_the_others_are_learned(home: Home, launcher: Launcher) -> None:
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
    assert (header["source"]["account"]["learned"], header["labels"]["pending"]) == (899, 1)
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
    # The record was predicted, and waits for a label it can be learned with.
    assert (header["source"]["account"]["predicted"], header["labels"]["pending"]) == (21, 1)


def test_labels_that_are_not_what_the_configuration_says_stop_it(home: Home, launcher: Launcher) -> None:
    write_pair(home.folder, "jsonl", 600, bad=False)
    made = sections(key="a")
    home.configure(**made)
    ended = launcher.call(home, "run", "config.yaml")
    assert ended.returncode == 1
    assert "labels are all dead letters (the last one: key, there is no a to find its record by" in ended.stderr


def test_what_waits_is_bounded_by_its_bytes(home: Home, launcher: Launcher) -> None:
    write_pair(home.folder, "jsonl", 600)
    home.configure(**sections(max_pending_bytes=6000))
    assert launcher.call(home, "run", "config.yaml", "--max-records", "500").returncode == 0
    adds_up(home.header())
    labels = home.header()["labels"]
    assert 20 < labels["pending"] < 60  # of some hundred bytes each, where 250 might wait
    assert labels["account"]["expired"] > 100
