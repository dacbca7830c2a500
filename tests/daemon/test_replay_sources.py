"""Replays of late labels, of records that kill, and of values that a schema registry has the schema of."""

from __future__ import annotations

import base64
import gzip
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamkernel.connectors.kafka.reading.source import KafkaSource
from streamkernel.connectors.ports import Position, Record, SourceError
from streamkernel.connectors.registry import lookup
from streamkernel.connectors.registry.settings import RegistrySettings
from streamkernel.daemon import cli
from streamkernel.daemon.replay.feed import ReplayedRecord, ReplayFeed
from streamkernel.daemon.replay.letters import read_letters
from streamkernel.daemon.replay.report import ReplayReport
from streamkernel.daemon.replay.sources import ReplaySource
from streamkernel.daemon.stream.lines import dead_letter
from tests.daemon.conftest import Home
from tests.daemon.outputs import RIVER, configured, predictions
from tests.registry.needs import needed
from tests.registry.schemas import avro_value, record
from tests.registry.server import RegistryServer

DEAD = predictions("out/dead.jsonl")


def mend(home: Home, raws: dict[str, str]) -> None:
    """Write the letters with other records, by what they hold."""
    letters = home.lines("out/dead.jsonl")
    lines = [json.dumps(letter | {"raw": raws.get(letter["raw"], letter["raw"])}) + "\n" for letter in letters]
    (home.folder / "mended.jsonl").write_text("".join(lines))


class TestLateLabels:
    ROWS = "id,a\n1,0.1\n2,0.2\n3\n4,0.4\n5,0.5\n6,0.6\n"
    LABELS = "id,y\n1,yes\n2,maybe\n3,no\n4,no\n5,yes\n6,no\n"

    def started(self, home: Home, rows: str = ROWS, labels: str = LABELS) -> None:
        (home.folder / "stream.csv").write_text(rows)
        (home.folder / "labels.csv").write_text(labels)
        target = {"target": "y", "target_type": "bool"}
        configured(
            home,
            source={"kind": "csv", "path": "stream.csv"},
            labels={"source": {"kind": "csv", "path": "labels.csv", **target}, "key": "id"},
            dead_letters=DEAD,
        )
        assert cli.main(["run", "config.yaml"]) == 0

    def test_both_sides_are_learned(self, home: Home) -> None:
        self.started(home)
        before = home.header()
        assert (before["source"]["account"]["dead"], before["labels"]["account"]["dead"]) == (1, 1)
        mend(home, {"3": "3,0.3", "2,maybe": "2,yes"})
        assert cli.main(["replay", "mended.jsonl", "config.yaml"]) == 0
        header = home.header()
        assert header["source"]["account"] == before["source"]["account"] | {"predicted": 6, "learned": 6, "dead": 0}
        labels = header["labels"]
        assert (labels["pending"], labels["waiting"]) == (0, 0)
        assert (labels["account"]["matched"], labels["account"]["dead"], labels["account"]["taken"]) == (6, 0, 6)
        assert [labels[key] for key in ("positions", "label_next", "recent_dead")] == [
            before["labels"][key] for key in ("positions", "label_next", "recent_dead")
        ]
        assert sorted(group[0] for group in header["replayed"]) == ["labels", "records"]
        assert cli.main(["replay", "mended.jsonl", "config.yaml"]) == 0
        assert home.header()["source"]["account"] == header["source"]["account"]
        assert cli.main(["run", "config.yaml"]) == 0


def test_a_record_that_kills_is_tried_in_a_process_of_its_own(
    home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (home.folder / "stream.jsonl").write_text('{"a": 1, "y": true}\nbad\nbad\n{"a": 1, "y": true}\n')
    source = {"kind": "jsonl", "path": "stream.jsonl", "target": "y", "target_type": "bool"}
    configured(home, source=source, model=RIVER, dead_letters=DEAD)
    assert cli.main(["run", "config.yaml"]) == 0
    mend(home, {"bad": '{"a": 7, "y": true}'})
    mended = home.folder / "mended.jsonl"
    mended.write_text(mended.read_text().replace("not_json", "kills_process", 1))
    tried: list[Any] = []

    def kills(_: Any, rows: Any, stopped: Any) -> bool:  # noqa: ARG001
        tried.append(rows)
        return True

    monkeypatch.setattr("streamkernel.daemon.stream.isolation.kills", kills)
    assert cli.main(["replay", "mended.jsonl", "config.yaml"]) == 1
    assert tried == [[({"a": 7}, True)]]
    assert "1 replayed; 1 still dead (1 kills_process)" in capsys.readouterr().out


def test_too_many_are_refused(home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    (home.folder / "stream.jsonl").write_text('{"a": 1, "y": true}\n' * 3 + "bad\n" * 3)
    source = {"kind": "jsonl", "path": "stream.jsonl", "target": "y", "target_type": "bool"}
    configured(home, source=source, model=RIVER, dead_letters=DEAD)
    assert cli.main(["run", "config.yaml"]) == 0
    monkeypatch.setattr("streamkernel.daemon.replay.selection.MOST_REPLAYED", 2)
    assert cli.main(["replay", "out/dead.jsonl", "config.yaml"]) == 1
    assert "a checkpoint stores at most 2 replayed letters, and 0 are there" in capsys.readouterr().err


@given(
    st.lists(st.tuples(st.binary(max_size=30), st.integers(0, 2**40), st.text('abc, "\n\r{', max_size=10)), max_size=5)
)
def test_a_letter_is_read_as_it_was_written(
    tmp_path_factory: pytest.TempPathFactory, some: list[tuple[bytes, int, str]]
) -> None:
    from streamkernel.connectors.encode import to_json_lines
    from streamkernel.connectors.files.sinks import CsvSink

    folder = tmp_path_factory.mktemp("letters")
    letters = [dead_letter(Position("s", 1, offset), "target", detail, raw) for raw, offset, detail in some]
    (folder / "dead.jsonl").write_bytes(to_json_lines(letters))
    sink = CsvSink(folder / "dead.csv")
    sink.open()
    sink.write(letters)
    sink.close()
    (folder / "dead.csv.gz").write_bytes(gzip.compress((folder / "dead.csv").read_bytes()))
    for name in ("dead.jsonl", "dead.csv", "dead.csv.gz"):
        read = list(read_letters(folder / name, 100))
        assert [(one.raw, one.place.offset) for one in read] == [(raw, offset) for raw, offset, _ in some]


CLICK = record("Click", n="long", y="string")


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[RegistryServer]:
    needed("fastavro")
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
