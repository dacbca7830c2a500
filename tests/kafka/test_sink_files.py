"""Lines of files in a topic: daemons that share one, that are killed, and that lost their checkpoints."""

from __future__ import annotations

import json
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

from tests.daemon.conftest import Home, Launcher
from tests.kafka.cluster import Cluster
from tests.kafka.producing import consume

MakeTopic = Callable[..., str]


def configure(folder: Path, broker: Cluster, topic: str) -> Home:
    """Make a daemon that writes what it predicts of a file to a topic, a checkpoint every 20 records."""
    folder.mkdir(exist_ok=True)
    home = Home(folder)
    home.configure(
        source={"kind": "jsonl", "path": "stream.jsonl", "target": "y", "target_type": "bool"},
        model=["river.linear_model.LogisticRegression"],
        predictions={"kind": "kafka", "topic": topic, "bootstrap_servers": broker.bootstrap},
        dead_letters=None,
        checkpoint={"directory": "out/state", "every_records": 20},
    )
    return home


def append(home: Home, rows: range, rate: float) -> None:
    """Put records into the file that a daemon reads; the first one is the same in all files."""
    with (home.folder / "stream.jsonl").open("a") as stream:
        stream.writelines(json.dumps({"a": row * rate, "y": row % 2 == 0}) + "\n" for row in rows)


def test_each_line_stands_there_once(broker: Cluster, topic: MakeTopic, launcher: Launcher, tmp_path: Path) -> None:
    name = topic()
    one, other = (configure(tmp_path / name_, broker, name) for name_ in ("one", "other"))

    def lines() -> int:
        return len(consume(broker.bootstrap, name).get(0, []))

    # A file that is shorter than what it is known by, and grows while the daemon is down; it is killed on the way.
    append(one, range(50), 1.5)
    done = launcher.call(one, "run", "config.yaml", STREAMKERNEL_CRASH="consumed:30")
    assert done.returncode == -signal.SIGKILL, done.stderr
    append(one, range(50, 70), 1.5)
    done = launcher.call(one, "run", "config.yaml")
    assert done.returncode == 0, done.stderr
    assert lines() == 70

    # Another file, which begins like the first one.
    append(other, range(300), 2.5)
    done = launcher.call(other, "run", "config.yaml")
    assert done.returncode == 0, done.stderr
    assert lines() == 370

    # Its checkpoints are lost, and more lines stand there than the beginning of it has.
    shutil.rmtree(other.folder / "out/state")
    done = launcher.call(other, "run", "config.yaml")
    assert done.returncode == 1
    assert "of the last lines there are for records of the same source, partition 0" in done.stderr
    assert lines() == 370
