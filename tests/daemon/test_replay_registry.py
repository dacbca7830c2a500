"""Replays of records that a schema registry has the schema of, as base64 in their letters."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from streamkernel.connectors.kafka.reading.source import KafkaSource
from streamkernel.connectors.ports import Position, Record, SourceError
from streamkernel.connectors.registry import lookup
from streamkernel.connectors.registry.settings import RegistrySettings
from streamkernel.daemon.replay.feed import ReplayedRecord, ReplayFeed
from streamkernel.daemon.replay.letters import read_letters
from streamkernel.daemon.replay.report import ReplayReport
from streamkernel.daemon.replay.sources import ReplaySource
from streamkernel.daemon.stream.lines import dead_letter
from tests.registry.needs import needed
from tests.registry.schemas import avro_value, record
from tests.registry.server import RegistryServer

needed("fastavro")

CLICK = record("Click", n="long", y="string")


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[RegistryServer]:
    monkeypatch.setattr(lookup, "FIRST_PAUSE", 0.01)
    monkeypatch.setattr(lookup, "LONGEST_PAUSE", 0.02)
    monkeypatch.setattr("streamkernel.daemon.replay.feed.WAIT_SECONDS", 0.02)
    with RegistryServer() as server:
        yield server


class Replay:
    """A feed of the letters of a topic with a registry."""

    def __init__(self, folder: Path, registry: RegistryServer, raws: list[bytes], **settings: object) -> None:
        letters = [
            dead_letter(Position("t", 0, place), "schema", "it was not known", one) for place, one in enumerate(raws)
        ]
        self.path = folder / "dead.jsonl"
        self.path.write_text("".join(json.dumps(one) + "\n" for one in letters))
        self.encodings = [one["encoding"] for one in letters]
        self.handed: list[ReplayedRecord] = []
        self.stopped = threading.Event()
        self.report = ReplayReport(self.path)
        self.source = KafkaSource(
            "t",
            "b:1",
            target="y",
            value_format="avro",
            registry=RegistrySettings(registry.url, **settings),  # type: ignore[arg-type]
        )
        state = ReplaySource(self.source, {0: Position("t", 0, 99)}, True)
        letters_read = read_letters(self.path, 2**20)
        self.feed = ReplayFeed(
            letters_read, {"records": state}, self.report, self.handed.append, _kills_none, self.stopped.is_set
        )

    def run(self) -> list[Record]:
        records = []
        while not self.feed.exhausted and not self.stopped.is_set():
            records += self.feed.poll(2, 0.0)
        self.source.close()
        return records


def _kills_none(_: Record) -> bool:
    return False


@pytest.fixture
def replay(tmp_path: Path, registry: RegistryServer) -> Callable[..., Replay]:
    return lambda *raws, **settings: Replay(tmp_path, registry, list(raws), **settings)


def click(number: int, schema: int = 1) -> bytes:
    return avro_value(CLICK, {"n": number, "y": "é"}, schema)


def test_raw_values_are_decoded_by_their_schema(replay: Callable[..., Replay], registry: RegistryServer) -> None:
    registry.add(CLICK)
    made = replay(click(1000), click(2), b"no frame", click(3), on_unknown_schema="dead_letter")
    assert base64.b64decode(json.loads(made.path.read_text().splitlines()[0])["raw"]) == click(1000)
    assert made.encodings[0] == "base64"
    assert [(one.x, one.y) for one in made.run()] == [({"n": n}, "é") for n in (1000, 2, 3)]
    assert dict(made.report.still_dead) == {"schema": 1}
    assert [one.origin.offset for one in made.handed] == [0, 1, 3]


def test_an_outage_is_waited_for(replay: Callable[..., Replay], registry: RegistryServer) -> None:
    registry.add(CLICK)
    registry.answer = 503, b""
    made = replay(click(1), click(2))
    threading.Timer(0.2, lambda: setattr(registry, "answer", None)).start()
    assert len(made.run()) == 2


def test_a_schema_that_is_still_unknown(replay: Callable[..., Replay], registry: RegistryServer) -> None:
    registry.add(CLICK)
    made = replay(click(1), click(2, 9), unknown_seconds=0.05, on_unknown_schema="dead_letter")
    assert len(made.run()) == 1
    assert dict(made.report.still_dead) == {"schema": 1}
    with pytest.raises(SourceError, match="does not know schema id 9"):
        replay(click(2, 9), unknown_seconds=0.05).run()
