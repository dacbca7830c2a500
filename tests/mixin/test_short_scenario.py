"""One daemon with two real faults, a flood of dead letters and SIGKILL: alerts come with each and go with it."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.chaos.daemons import Daemon, Starter, until
from tests.daemon.conftest import Home, program
from tests.mixin.conftest import MIXIN
from tests.mixin.hurried import hurried_rules, wait_until_clear, wait_until_fired
from tests.mixin.scraping import answer, prometheus, rules
from tests.ports import reserved_port

pytestmark = pytest.mark.usefixtures("processes")

FLOOD, DOWN = "StreamkernelDeadLetters", "StreamkernelDown"
# Time that runs 200 times as fast makes a moment of a busy machine a stall of minutes; and a stream of seven
# different records is no measure of what is learned.
_HASTY = {"StreamkernelLoopStuck", "StreamkernelCheckpointStale", "StreamkernelSourceSilent", "StreamkernelOutputLate"}


def shipped() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each alert that is shipped with the name of its group."""
    for group in yaml.safe_load((MIXIN / "alerts.yaml").read_text())["groups"]:
        for rule in group["rules"]:
            yield group["name"], rule


def unrelated() -> set[str]:
    """The alerts that neither fault has to do with."""
    known = {rule["alert"] for group, rule in shipped() if group != "streamkernel-learning"}
    return known - {FLOOD, DOWN} - _HASTY


class _Fed:
    """A daemon on a port of its own, fed a few records at a time."""

    def __init__(self, home: Home, starter: Starter) -> None:
        self.flooded = False
        self.address = f"127.0.0.1:{reserved_port()}"
        self._stream, self._starter = home.folder / "records.jsonl", starter
        self._folder = home.folder
        self._number = 0
        home.configure(
            source={"kind": "jsonl", "path": "records.jsonl", "target": "y", "follow": True},
            model=[{"streamkernel.KernelClassifier": {"seed": 1, "max_features": 32, "block_size": 16}}],
            metrics={"port": int(self.address.rpartition(":")[2])},
            checkpoint={"directory": "out/state", "every_seconds": 0.5},
        )

    def start(self) -> Daemon:
        self.feed()
        daemon = self._starter.start(self._folder, "run", "config.yaml")
        daemon.wait_until_it_says("reading")
        return daemon

    def feed(self) -> None:
        """Write the next records, in a flood with others between them that are none, of bytes that are no text."""
        with self._stream.open("ab") as stream:
            for _ in range(10):
                self._number += 1
                a = self._number % 7
                stream.write(json.dumps({"a": a, "y": "yes" if a > 3 else "no"}).encode() + b"\n")
                if self.flooded:
                    stream.write(b'{"a": "\xff\x00</script>{{ $value }}\n')


def assert_told(url: str, name: str, address: str) -> None:
    """Check that what an alert says is of this target, and that its templates could be filled in."""
    for _ in range(100):
        told = rules(url)[name]["alerts"]
        if told:
            break
        time.sleep(0.1)
    for alert in told:
        assert alert["labels"]["instance"] == address
        texts = alert["annotations"]
        assert address in texts["summary"]
        assert not any("{{" in text or "<no value>" in text or "error" in text.lower() for text in texts.values())
        assert texts["runbook_url"].endswith(f"/{name}.html")


def test_a_flood_and_a_kill(home: Home, tmp_path: Path) -> None:
    installed = program("prometheus")
    others = unrelated()
    assert len(others) > 15
    with Starter(tmp_path / "said") as starter:
        fed = _Fed(home, starter)
        daemon = fed.start()
        with prometheus(installed, tmp_path, [fed.address], hurried_rules(tmp_path)) as url:
            until(lambda: answer(url, "up == 1") == 1, lambda: "the daemon was never scraped")
            wait_until_clear(url, others | {FLOOD, DOWN}, fed.feed)
            fed.flooded = True
            wait_until_fired(url, {FLOOD}, others | {DOWN}, fed.feed)
            assert_told(url, FLOOD, fed.address)
            fed.flooded = False
            wait_until_clear(url, others | {FLOOD, DOWN}, fed.feed)
            daemon.kill()
            wait_until_fired(url, {DOWN}, others | {FLOOD})
            assert_told(url, DOWN, fed.address)
            daemon = fed.start()
            wait_until_clear(url, others | {FLOOD, DOWN}, fed.feed)
        assert daemon.stop() == 0
