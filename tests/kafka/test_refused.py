"""A broker that refuses connections for hours must not use up the files the process may have open."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest

from streamkernel.connectors.kafka.base import client
from streamkernel.connectors.kafka.reading import source as sources
from streamkernel.connectors.kafka.reading.source import KafkaSource
from streamkernel.connectors.kafka.writing import sink as sinks
from streamkernel.connectors.kafka.writing.sink import KafkaSink
from streamkernel.connectors.ports import OutageError
from tests.chaos.proxy import Proxy
from tests.kafka.broker import Broker
from tests.kafka.distribution import Distribution
from tests.kafka.listeners import address
from tests.kafka.sinking import at, put
from tests.ports import reserved_port

OFTEN = {"reconnect_backoff_max_ms": 50}
# Those that are being made just now.
SOME = 8


@pytest.fixture(autouse=True)
def _no_collection() -> Iterator[None]:
    """The daemon makes the collector of garbage rare; here it never comes."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """Tell how many connections failed."""
    failed = []
    close = client.close_sockets

    def note(error: BaseException) -> None:
        close(error)
        failed.append(error)

    monkeypatch.setattr(client, "close_sockets", note)
    return lambda: len(failed)


def files() -> int:
    return len(os.listdir("/dev/fd"))


def bear(source: KafkaSource, sink: KafkaSink, refused: Callable[[], int]) -> None:
    """Go on until very many connections were refused, as a daemon does."""
    deadline = time.monotonic() + 60
    end = refused() + 5 * SOME
    while refused() < end:
        assert time.monotonic() < deadline
        assert source.poll(100, 0.05) == []
        sink.write((), ())


@pytest.mark.integration  # it waits for attempts to connect
def test_one_that_was_never_there(refused: Callable[[], int], monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (sources, sinks):
        monkeypatch.setattr(module, "OPEN_SECONDS", 0.1)
    monkeypatch.setattr(sinks, "_CLOSE_SECONDS", 0.1)
    nobody = address(reserved_port())
    source = KafkaSource("clicks", nobody, options=OFTEN)
    sink = KafkaSink("out", nobody, options=OFTEN)
    before = files()
    source.open()
    sink.open()
    bear(source, sink, refused)
    assert files() <= before + SOME
    sink.close()
    source.close()


@pytest.mark.parametrize("transactional_id", ["me", pytest.param(None, marks=pytest.mark.long)])
def test_one_that_goes_away(
    tmp_path: Path, installed: Distribution, refused: Callable[[], int], transactional_id: str | None
) -> None:
    with Proxy() as network, Broker(tmp_path / "broker", installed=installed, detour=network.port) as broker:
        network.target = broker.behind
        broker.create_topic("clicks")
        broker.create_topic("out")
        source = KafkaSource("clicks", address(network.port), options=OFTEN)
        sink = KafkaSink("out", address(network.port), transactional_id, options=OFTEN)
        source.open()
        sink.open()
        sink.flush()
        before = files()
        network.refuse()
        put(sink, map(at, range(5)))
        bear(source, sink, refused)
        assert files() <= before + SOME
        # A checkpoint has the lines of a transaction, or a restart writes them again.
        with nullcontext() if transactional_id else pytest.raises(OutageError):
            sink.close()
        source.close()
