"""Fixtures of the connectors' tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fake_kafka import FakeCluster, Make
from rotating import Log

from streamkernel.connectors import KafkaSource
from streamkernel.connectors.files import follow
from streamkernel.connectors.files.listing import FileList
from streamkernel.connectors.kafka.reading import reader
from streamkernel.connectors.kafka.writing import delivery
from streamkernel.connectors.registry import lookup
from tests.registry.server import RegistryServer


@pytest.fixture
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look at a followed file, and at its parts, all the time."""
    monkeypatch.setattr(follow, "PARTS_SECONDS", 0.0)
    monkeypatch.setattr(FileList, "pause", 0.001)


@pytest.fixture
def short_naps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a sink of Kafka look often for what became of its lines."""
    monkeypatch.setattr(delivery, "_NAP_SECONDS", 0.001)


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    log = Log(tmp_path / "log.jsonl")
    log.write(3)
    log.open()
    yield log
    log.source.close()


@pytest.fixture
def cluster() -> FakeCluster:
    return FakeCluster()


@pytest.fixture
def make(cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    """Sources of that cluster, which look round often."""
    monkeypatch.setattr(reader, "LOOK_SECONDS", 0.02)
    monkeypatch.setattr(reader, "POLL_SECONDS", 0.02)
    made: list[KafkaSource] = []

    def make(**settings: Any) -> KafkaSource:
        made.append(KafkaSource("t", "broker:9092", connect=cluster.connect, **settings))
        return made[-1]

    yield make
    for source in made:
        source.close()


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[RegistryServer]:
    """A schema registry that is asked again at once."""
    monkeypatch.setattr(lookup, "FIRST_PAUSE", 0.01)
    monkeypatch.setattr(lookup, "LONGEST_PAUSE", 0.02)
    with RegistryServer() as server:
        yield server


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a sink of Kafka wait hardly at all."""
    for name in ("OPEN_SECONDS", "PATIENCE_SECONDS", "_CLOSE_SECONDS"):
        monkeypatch.setattr(f"streamkernel.connectors.kafka.writing.sink.{name}", 0.1)
