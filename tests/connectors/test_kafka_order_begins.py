"""The order of a topic that had one partition and has two: a kill at any moment, and the same order again."""

from __future__ import annotations

import contextlib
import os
import threading
from pathlib import Path
from typing import Any

import pytest
from fake_kafka import STREAM, FakeCluster, FakeTopic, Make, drain, places, values

from streamkernel.connectors import Position, Record
from streamkernel.connectors.kafka.reading import order_log
from streamkernel.connectors.kafka.reading.source import KafkaSource


class Killed(BaseException):
    """Nobody handles it, as nobody handles SIGKILL."""


def at(records: list[Record]) -> list[Position]:
    return [record.position for record in records]


@pytest.fixture
def killed(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Kill at the nth thing that is done to the disk from now on, before it is done; 0: never."""

    left = 0

    def dying(call: Any) -> Any:
        def one(*arguments: Any) -> Any:
            nonlocal left
            left -= 1
            if left == 0:
                raise Killed
            return call(*arguments)

        return one

    for name in ("fsync", "pwrite"):
        monkeypatch.setattr(order_log.os, name, dying(getattr(os, name)))
    monkeypatch.setattr(Path, "rename", dying(Path.rename))

    def arm(number: int) -> None:
        nonlocal left
        left = number

    return arm


@pytest.fixture
def drained(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Read a topic on whose partition 1 answers first: partition 0 has nothing to hand out at the first poll."""
    find = FakeTopic.find
    released = threading.Event()

    def found(topic: FakeTopic) -> dict[int, list[Any]]:
        if released.is_set() or 1 not in topic.places:
            return find(topic)
        places = topic.places
        topic.places = {1: places[1]}
        some = find(topic)
        topic.places = places | topic.places
        return some

    monkeypatch.setattr(FakeTopic, "find", found)

    def drain_on(source: KafkaSource, offset: int, count: int, most: int = 50) -> list[Record]:
        released.clear()
        source.open({0: Position(STREAM, 0, offset)})
        try:
            first = source.poll(most, 0.1)
            released.set()
            return first + drain(source, count - len(first), most=most)
        finally:
            released.set()
            source.close()

    return drain_on


def test_one_that_is_added_while_it_is_down(cluster: FakeCluster, make: Make, tmp_path: Path, drained: Any) -> None:
    """What was learned of the first one alone, since the checkpoint, comes first."""
    cluster.produce(values(600))
    source = make(order_log=tmp_path / "order.log")
    source.open(places(0))
    before = drain(source, 600, most=29)
    source.close()
    cluster.add(1)
    cluster.produce(values(300), 1)
    after = drained(source, 100, 800)
    assert at(after[:500]) == at(before[100:])
    assert at(drained(source, 40, 860)) == at(before[40:100]) + at(after)
    assert at(drained(source, 170, 730, most=7)) == at(after[70:])


@pytest.mark.parametrize("number", range(1, 8))
def test_a_kill_while_the_log_is_begun(
    cluster: FakeCluster, make: Make, tmp_path: Path, killed: Any, drained: Any, number: int
) -> None:
    cluster.produce(values(200))
    source = make(order_log=tmp_path / "order.log")
    source.open(places(0))
    before = drain(source, 150, most=50)
    killed(number)
    with cluster.changed:
        cluster.add(1)
        cluster.produce(values(300), 1)
    with contextlib.suppress(Killed):
        before += drain(source, 350, most=50)
    killed(0)
    source.close()
    for done in (100, 0):
        after = drained(source, done, 500 - done)
        assert at(after[: len(before) - done]) == at(before[done:])
        assert sorted(at(after)) == sorted(
            [Position(STREAM, 0, offset) for offset in range(done, 200)]
            + [Position(STREAM, 1, offset) for offset in range(300)]
        )
