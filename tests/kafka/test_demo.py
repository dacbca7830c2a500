"""`make kafka-demo`: a broker, a stream and the daemon, and the account at the end; the stream also by itself."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import orjson
import pytest

from examples.kafka_demo import stream
from tests.kafka.broker import Broker
from tests.kafka.cluster import Cluster
from tests.kafka.producing import consume
from tests.ports import reserved_port

ROOT = Path(__file__).parents[2]


def ended(*command: object) -> subprocess.CompletedProcess[str]:
    """Run a module of the examples to its end, which shows no traceback."""
    line = [sys.executable, "-m", *map(str, command)]
    done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert "Traceback" not in done.stderr
    return done


def replay(command: list[str]) -> subprocess.Popen[str]:
    """Begin to replay slowly, without end."""
    line = [sys.executable, "-m", *command, "--rate", "100"]
    return subprocess.Popen(line, cwd=ROOT, stdout=subprocess.PIPE, text=True)


@pytest.mark.usefixtures("installed")
def test_it_ends_cleanly_with_every_record_predicted() -> None:
    done = ended("examples.kafka_demo", "--rate", 400, "--seconds", 4, "--port", reserved_port())
    assert done.returncode == 0, done.stdout + done.stderr
    said = re.search(r"^([\d,]+) records sent, ([\d,]+) predictions in demo-predictions$", done.stdout, re.MULTILINE)
    assert said is not None, done.stdout
    assert said[1] == said[2] != "0"
    assert re.findall(r"^(\d/5) ", done.stdout, re.MULTILINE) == ["1/5", "2/5", "3/5", "4/5", "5/5"]


def test_the_stream_is_the_same_each_time_and_no_record_repeats() -> None:
    records = list(islice(stream(), 20_000))
    assert records == list(islice(stream(), 20_000))
    assert len({(record["x"], record["y"]) for record in records}) == len(records)


def test_a_file_is_replayed_into_a_topic(broker: Cluster, topic: Callable[..., str], tmp_path: Path) -> None:
    file, name = tmp_path / "stream.csv", topic()
    file.write_text("a,color,label\n1,red,-1\n2.5,,1\n")
    command = ["examples.replay", str(file), name, "--servers", broker.bootstrap]
    done = ended(*command, "--text", "label", "--rate", 2000, "--records", 5)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{name}: 5 records\n"
    rows = [{"a": 1.0, "color": "red", "label": "-1"}, {"a": 2.5, "color": "", "label": "1"}]
    assert [orjson.loads(record.value) for record in consume(broker.bootstrap, name)[0]] == [*rows, *rows, rows[0]]
    replaying = replay(command)
    while len(consume(broker.bootstrap, name)[0]) <= 5:  # without end, until it is told
        assert replaying.poll() is None
    replaying.send_signal(signal.SIGTERM)
    told, _ = replaying.communicate(timeout=120)
    assert replaying.returncode == 0
    assert told == f"{name}: {len(consume(broker.bootstrap, name)[0]) - 5} records\n"


def test_a_replay_that_is_told_to_end_waits_for_the_broker(
    own_broker: Broker, topic: Callable[..., str], tmp_path: Path
) -> None:
    file, name = tmp_path / "stream.csv", topic(on=own_broker)
    file.write_text("a\n1\n")
    replaying = replay(["examples.replay", str(file), name, "--servers", own_broker.bootstrap])
    while not consume(own_broker.bootstrap, name)[0]:
        assert replaying.poll() is None
    own_broker.pause()
    time.sleep(0.1)  # records that no broker has
    replaying.send_signal(signal.SIGTERM)
    time.sleep(1)
    own_broker.resume()
    told, _ = replaying.communicate(timeout=120)
    assert replaying.returncode == 0
    assert told == f"{name}: {len(consume(own_broker.bootstrap, name)[0])} records\n"


@pytest.mark.usefixtures("processes")
@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        (None, [], "cannot be read"),
        ("", [], "no rows below its header"),
        ("a\n", [], "no rows below its header"),
        ("a\n1\n", ["--rate", "0"], "--rate must be above 0"),
        ("a\n1\n", ["--records", "-1"], "--records must not be below 0"),
    ],
)
def test_what_cannot_be_replayed_is_said_before_the_broker_is_asked(
    tmp_path: Path, text: str | None, options: list[str], said: str
) -> None:
    file = tmp_path / "stream.csv"
    if text is not None:
        file.write_text(text)
    done = ended("examples.replay", file, "topic", "--servers", "127.0.0.1:9", *options)
    assert done.returncode == 2
    assert said in done.stderr


def test_a_replay_that_fails_says_why(broker: Cluster, tmp_path: Path) -> None:
    (tmp_path / "stream.csv").write_text(f"a\n{'x' * 100_000}\n")
    done = ended("examples.replay", tmp_path / "stream.csv", "no/topic", "--servers", broker.bootstrap)
    assert done.returncode == 1
    assert "no/topic" in done.stderr
