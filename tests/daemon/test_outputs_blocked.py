"""An output that cannot be written holds up reading, and loses no line."""

from __future__ import annotations

import json
import os
import signal
from typing import Any

import pytest

from streamkernel.daemon.assembly.plan import prepare
from streamkernel.daemon.runtime import run
from tests.daemon.conftest import Home, Launcher
from tests.daemon.outputs import configured, predictions, with_short_stream


@pytest.fixture
def home(home: Home) -> Home:
    return with_short_stream(home)


class TestABlockedOutput:
    """What waits for an output is bounded by bytes, nothing of it is lost, and a stop is obeyed."""

    @pytest.mark.parametrize(
        ("key", "path", "records", "length"),
        [
            ("predictions", "/dev/full", 14_000, 1),
            ("dead_letters", "/dev/full", 100, 100_000),
            ("dead_letters", "pipe", 100, 100_000),
        ],
    )
    def test_the_daemon_stops_reading(
        self, home: Home, launcher: Launcher, key: str, path: str, records: int, length: int
    ) -> None:
        os.mkfifo(home.folder / "pipe")
        idle = os.open(home.folder / "pipe", os.O_RDONLY | os.O_NONBLOCK)
        bad = [] if key == "dead_letters" else 0
        with (home.folder / "stream.jsonl").open("w") as file:
            for number in range(records):
                file.write(json.dumps({"a": bad, "b": length * "x", "y": str(number % 2)}) + "\n")

        def writing_to(path: str) -> dict[str, Any]:
            more = {"max_rate": 1} if key == "dead_letters" else {}
            return {
                "source": {"kind": "jsonl", "path": "stream.jsonl", "target": "y"},
                "model": [{"river.dummy.PriorClassifier": {}}],
                "limits": {"max_waiting_bytes": 2**20},
                "checkpoint": {"directory": "out/state"},
                key: predictions(path, **more),
            }

        configured(home, **writing_to(path))
        running = launcher.start(home, "run", "config.yaml")
        waiting = running.wait_for(r"([\d,]+) bytes of lines wait for an output: the daemon pauses reading")
        assert 2**20 <= int(waiting[1].replace(",", "")) < 2**24  # a chunk more at the most
        running.signal(signal.SIGTERM)
        assert running.wait().returncode == 1
        os.close(idle)
        assert running.log.count("the daemon pauses reading") == 1
        assert "the last checkpoint could not be written" in running.log
        assert home.header()["source"]["account"]["consumed"] == 0
        configured(home, **writing_to("out/lines.jsonl"))
        run(prepare(home.config))
        assert len(home.lines("out/lines.jsonl")) == records
