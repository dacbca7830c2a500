"""Offsets for the tools that watch groups, told when they can be; and a member of a group that waits for brokers."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import pytest
from fake_kafka import FakeCluster, Make, buffers_of, drain, until, values
from kafka import errors

from streamkernel.connectors.kafka.base.client import Unreachable
from streamkernel.connectors.kafka.group import membership
from streamkernel.connectors.kafka.group.membership import Membership
from streamkernel.connectors.kafka.reading import committer as module
from streamkernel.connectors.kafka.reading.committer import OffsetCommitter
from streamkernel.connectors.ports import ConnectorError, SourceError


class Consumer:
    """OffsetCommitter, and fails as often as it is told to before that."""

    def __init__(self, failures: int) -> None:
        self.failures = failures
        self.tries = 0
        self.held: dict[int, int] = {}
        self.gate = threading.Event()
        self.gate.set()

    def commit(self, places: Mapping[Any, Any], timeout_ms: float) -> None:  # noqa: ARG002
        self.tries += 1
        self.gate.wait(20)
        if self.tries <= self.failures:
            raise errors.CoordinatorNotAvailableError
        self.held |= {place.partition: there.offset for place, there in places.items()}

    def close(self, **_: object) -> None: ...


def committing(monkeypatch: pytest.MonkeyPatch, consumer: Consumer) -> OffsetCommitter:
    monkeypatch.setattr(module, "connect", lambda *_: (consumer, None))
    return OffsetCommitter("kafka topic t", "t", {"group_id": "g"})


def test_what_failed_is_tried_again_though_nothing_comes_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PAUSE", 0.01)
    consumer = Consumer(failures=3)
    committer = committing(monkeypatch, consumer)
    committer.put({0: 10, 1: 5})
    until(lambda: consumer.held == {0: 10, 1: 5})
    committer.close(5.0)


def test_what_failed_is_tried_again_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PAUSE", 60.0)
    consumer = Consumer(failures=1)
    committer = committing(monkeypatch, consumer)
    committer.put({0: 10})
    until(lambda: consumer.tries == 1)
    committer.close(5.0)
    assert consumer.held == {0: 10}


def test_what_came_meanwhile_is_newer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PAUSE", 0.01)
    consumer = Consumer(failures=1)
    consumer.gate.clear()
    committer = committing(monkeypatch, consumer)
    committer.put({0: 10, 1: 5})
    until(lambda: consumer.tries == 1)
    committer.put({0: 20})
    consumer.gate.set()
    until(lambda: consumer.held == {0: 20, 1: 5})
    committer.close(5.0)


def test_what_was_told_before_is_not_told_again(monkeypatch: pytest.MonkeyPatch) -> None:
    consumer = Consumer(failures=0)
    committer = committing(monkeypatch, consumer)
    for _ in range(3):
        committer.put({0: 10})
        until(lambda: consumer.held == {0: 10})
    committer.close(5.0)
    assert consumer.tries == 1


def test_an_offset_is_behind_the_marks_of_transactions_once_all_before_is_saved(
    cluster: FakeCluster, make: Make
) -> None:
    """Else the tools that watch the group tell of a lag for ever."""
    cluster.produce(values(8))
    cluster.skip(0, [5, 7])
    source = make()
    source.open()
    first = drain(source, 4, most=4)
    assert source.commit({0: first[-1].next}) == {0: 4}  # more was handed out, or waits
    records = drain(source, 2)
    assert source.commit({0: first[-1].next}) == {0: 4}
    assert source.commit({0: records[0].next}) == {0: 5}
    until(lambda: source.commit({0: records[-1].next}) == {0: 8})
    cluster.produce(values(1))
    drain(source, 1)
    assert source.commit({0: records[-1].next}) == {0: 7}
    source.close()
    source.open({0: records[-1].next})
    until(lambda: buffers_of(source).waiting(0) is not None)
    assert source.commit({0: records[-1].next}) == {0: 7}


def test_very_many_attempts_do_not_end_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A member of a group goes on where brokers are away for hours."""
    attempts = []

    def connect(_: str, __: object, attempt: int) -> None:
        attempts.append(attempt)
        raise Unreachable("it is down") if attempt < 1100 else ConnectorError("the credentials are wrong")

    monkeypatch.setattr(membership, "KafkaTopic", connect)
    monkeypatch.setattr(membership, "LONGEST_PAUSE", 0.0)
    member = Membership("clicks", "broker:9092", "mine")
    member.open()
    with pytest.raises(SourceError, match="the credentials are wrong"):
        member.turn(30.0)
    member.close(1.0)
    assert attempts == [*range(1101)]
