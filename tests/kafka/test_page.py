"""The page that leads from nothing to a topic of predictions: its scripts and commands do what it shows."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.daemon.conftest import Launcher
from tests.journeys.conftest import Person
from tests.journeys.pages import command, sections
from tests.kafka.cluster import Cluster
from tests.kafka.producing import consume

PAGE = "how-to/kafka.md"
TEXT = (Path(__file__).parents[2] / "docs" / PAGE).read_text()
FILES = ("produce.py", "shop.yaml", "read.py")


class Reader:
    """Somebody who follows the page, with topics and a port of this test alone."""

    def __init__(self, person: Person, names: dict[str, str]) -> None:
        self.person = person
        self._names = names

    def mine(self, text: str) -> str:
        for shown, own in self._names.items():
            text = text.replace(shown, own)
        return text

    def types(self, line: str) -> str:
        """Run a line of the page that is not ours in a shell, and return what it prints."""
        assert f"\n{line}\n" in TEXT, line
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        shell = ["bash", "-euo", "pipefail", "-c", self.mine(line)]
        environment = {**os.environ, "PATH": path}
        done = subprocess.run(
            shell, cwd=self.person.folder, env=environment, capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture
def reader(broker: Cluster, topic: Callable[..., str], launcher: Launcher, tmp_path: Path) -> Reader:
    """A reader who has made the topics, as the page makes them, and saved its files."""
    (made,) = re.findall(r"for topic in (.+); do\n.* --partitions (\d+) --topic \$topic\ndone", TEXT)
    names = {one: topic(int(made[1])) for one in made[0].split()}
    one = Reader(Person(launcher, tmp_path), {**names, "127.0.0.1:9092": broker.bootstrap, "port: 9108": "port: 0"})
    for file in FILES:
        one.person.writes(file, one.mine(sections(PAGE, file)))
    return one


def shown(beginning: str) -> str:
    """Return the block of the page that begins so."""
    blocks = re.findall(r"^```([^\n]*)\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    (body,) = [body for kind, body in blocks if not kind and beginning in body]
    return str(body)


def test_from_nothing_to_a_topic_of_predictions(reader: Reader, broker: Cluster) -> None:
    person = reader.person
    reader.types("python produce.py")
    checked = person.types(command(PAGE, "check"))
    assert (checked.returncode, checked.stderr) == (0, "")
    for line in shown("columns of source").splitlines():
        assert line.removesuffix(" ...") in checked.stdout

    ran = person.types([*command(PAGE, "run"), "--max-records", "3000"])
    assert ran.returncode == 0, ran.stderr
    for line in shown("serving metrics").splitlines():
        said = re.escape(reader.mine(line)).replace(":9108/", r":\d+/")
        assert re.search(said, ran.stderr), line

    printed = reader.types("python read.py shop-predictions | tail -n 2")
    assert [read(line) for line in printed.splitlines()] == [read(line) for line in shown("probabilities").splitlines()]

    reader.types("python read.py shop-dead-letters | cut -f 2 > letters.jsonl")
    reader.types(next(line for line in TEXT.splitlines() if line.startswith("sed ")))
    for said in (shown("1 replayed"), "letters.jsonl: 0 replayed; 1 replayed before\n"):
        replayed = person.types(command(PAGE, "replay"))
        assert (replayed.returncode, replayed.stdout) == (0, said), replayed.stderr
    (messages,) = consume(broker.bootstrap, reader.mine("shop-predictions")).values()
    lines = [json.loads(message.value) for message in messages]
    assert sorted(line["id"] for line in lines) == [*range(3000)]
    assert lines[-1]["id"] == 1234
    assert [len(message.key.split(b":")) for message in messages[-2:]] == [1, 4]
    assert sum(line["prediction"] == line["target"] for line in lines) > 0.97 * len(lines)


def read(line: str) -> tuple[str, dict[str, Any], dict[str, float]]:
    """Take a line of read.py apart; probabilities differ a little from processor to processor."""
    key, text = line.split("\t")
    value = json.loads(text)
    return key, value, {label: round(share, 1) for label, share in value.pop("probabilities").items()}
