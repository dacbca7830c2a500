"""Real faults of daemons at work: a flood of dead letters, an outage of labels, a full disk. The alerts come and go.

A source that stalls is in tests/kafka/test_shown.py.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.daemons import Daemon, Sabotage, Starter
from tests.chaos.small_disk import small_disk
from tests.daemon.conftest import Home, program
from tests.mixin.hurried import hurried_rules, wait_until_clear, wait_until_fired
from tests.mixin.scraping import prometheus, rules

pytestmark = pytest.mark.usefixtures("processes")

FLOOD, OUTAGE = "StreamkernelDeadLetters", "StreamkernelLabelsMissing"
FULL_DISK = {"StreamkernelCheckpointFailing", "StreamkernelCheckpointStale"}
OTHERS = {"StreamkernelRestarting", "StreamkernelSourceSilent", "StreamkernelNotFinite"}


class FedDaemons:
    """Three daemons and what they are fed, a few records at a time, with a fault or without."""

    def __init__(self, homes: Callable[[str], Home], starter: Starter) -> None:
        self.faults: set[str] = set()
        self._number = 0
        self._homes = {name: homes(name) for name in ("letters", "labels", "disk")}
        self.state = self._homes["disk"].folder / "state"
        self._starter = starter
        self._daemons: list[Daemon] = []

    def start(self, sabotage: Sabotage) -> list[str]:
        """Start the daemons; gives where they serve."""
        self.feed()
        labels = {"source": {"kind": "jsonl", "path": "labels.jsonl", "target": "y", "follow": True}, "key": "id"}
        often = {"every_seconds": 0.5}
        self._start("letters", checkpoint={"directory": "out/state", **often})
        self._start("labels", labels=labels, checkpoint={"directory": "out/state", **often})
        self._start("disk", sabotage, checkpoint={"directory": "state", "keep": 1, **often})
        return [self._address(daemon) for daemon in self._daemons]

    def _start(self, name: str, sabotage: Sabotage = (), **sections: Any) -> None:
        home = self._homes[name]
        source = {"kind": "jsonl", "path": "records.jsonl", "target": "y", "follow": True}
        model = [{"streamkernel.KernelClassifier": {"seed": 1, "max_features": 32, "block_size": 16}}]
        home.configure(source=source, model=model, metrics={"port": 0}, **sections)
        self._daemons.append(self._starter.start(home.folder, "run", "config.yaml", sabotage=sabotage))

    def _address(self, daemon: Daemon) -> str:
        serving = r"serving metrics at http://(127\.0\.0\.1:\d+)/metrics"
        daemon.wait_until_it_says(serving)
        return re.findall(serving, daemon.log)[0]

    def feed(self) -> None:
        """Write the next records, and their labels."""
        for _ in range(10):
            self._number += 1
            record = {"id": f"k{self._number}", "a": self._number % 7}
            label = {"id": record["id"], "y": "yes" if record["a"] > 3 else "no"}
            self._append("labels", "records", json.dumps(record))
            if OUTAGE not in self.faults:
                self._append("labels", "labels", json.dumps(label))
            self._append("disk", "records", json.dumps(record | label))
            self._append("letters", "records", json.dumps(record | label))
        if FLOOD in self.faults:
            for _ in range(3):
                self._append("letters", "records", "no record")

    def _append(self, name: str, file: str, line: str) -> None:
        with (self._homes[name].folder / f"{file}.jsonl").open("a") as opened:
            opened.write(line + "\n")

    def stop(self) -> None:
        assert [daemon.stop() for daemon in self._daemons] == [0, 0, 0]


def assert_told(url: str, name: str, address: str) -> None:
    """Check that what an alert says is of this target, and that its templates could be filled in."""
    for alert in rules(url)[name]["alerts"]:
        assert alert["labels"]["instance"] == address
        texts = alert["annotations"]
        assert address in texts["summary"]
        assert not any("{{" in text or "<no value>" in text or "error" in text.lower() for text in texts.values())
        assert texts["runbook_url"].endswith(f"/{name}.html")


@pytest.mark.long
def test_alerts_come_with_the_fault_and_go_with_it(homes: Callable[[str], Home], tmp_path: Path) -> None:
    installed = program("prometheus")
    faulty = {FLOOD, OUTAGE, *FULL_DISK}
    with ExitStack() as stack:
        fed = FedDaemons(homes, stack.enter_context(Starter(tmp_path / "said")))
        disk = stack.enter_context(small_disk(fed.state))
        addresses = fed.start(disk.sabotage)
        url = stack.enter_context(prometheus(installed, tmp_path, addresses, hurried_rules(tmp_path)))
        wait_until_clear(url, faulty | OTHERS, fed.feed)
        fed.faults = {FLOOD, OUTAGE}
        disk.fill()
        wait_until_fired(url, faulty, OTHERS, fed.feed)
        assert_told(url, FLOOD, addresses[0])
        fed.faults = set()
        disk.free()
        wait_until_clear(url, faulty | OTHERS, fed.feed)
        fed.stop()
