"""An output that cannot be written holds up reading, and loses no line."""

from __future__ import annotations

import errno
import json
import os
import signal
from typing import Any

import pytest

from connectors.memory import MemorySink
from connectors.ports import SinkError
from streamkernel.daemon.runtime import run
from streamkernel.daemon.stream.sinks import Sinks
from streamkernel.daemon.wiring.plan import prepare
from tests.daemon.conftest import Home, Launcher
from tests.daemon.outputs import configured, predictions


@pytest.fixture
def home(home: Home) -> Home:
    """A home with a short stream and a model that starts at once, in the working directory."""
    text = "".join(f"{number % 7},{number % 3},{'yes' if number % 2 else 'no'}\n" for number in range(600))
    (home.folder / "stream.csv").write_text("a,b,y\n" + text)
    configured(home)
    return home


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
        waiting = running.wait_for(r"([\d,]+) bytes of lines wait for an output: no more records are read")
        assert 2**20 <= int(waiting[1].replace(",", "")) < 2**24  # a chunk more at the most
        running.signal(signal.SIGTERM)
        assert running.wait().returncode == 1
        os.close(idle)
        assert running.log.count("no more records are read") == 1
        assert "the last checkpoint could not be written" in running.log
        assert home.header()["account"]["consumed"] == 0
        configured(home, **writing_to("out/lines.jsonl"))
        run(prepare(home.config))
        assert len(home.lines("out/lines.jsonl")) == records

    def test_lines_that_waited_are_written_in_order(self) -> None:
        class Full(MemorySink):
            full = True

            def write(self, lines: Any, positions: Any = ()) -> None:
                super().write(lines, positions)
                if self.full:
                    raise SinkError("no room") from OSError(errno.ENOSPC, "no room")

            def flush(self) -> int:
                if self.full:
                    raise SinkError("no room") from OSError(errno.ENOSPC, "no room")
                return super().flush()

            @property
            def waiting_bytes(self) -> int:
                return 100 * len(self.pending)

        now = 0.0
        letters, others = Full(), MemorySink()
        box = Sinks({"dead_letters": letters, "predictions": others}, lambda: now, max_waiting_bytes=250)
        for number in range(3):
            box.write({"dead_letters": [{"n": number}]})
        assert box.full
        box.write({"predictions": [{"n": 9}]})  # what another output takes is no sign that this one does
        letters.full = False
        now = 100.0
        box.retry()
        assert not box.full
        assert letters.lines == [{"n": 0}, {"n": 1}, {"n": 2}]
        assert others.pending  # only a checkpoint makes the others durable
