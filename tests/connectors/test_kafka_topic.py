"""A log that was cut back, told from a topic that was created again: the cluster's word may come late."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from types import SimpleNamespace
from typing import ClassVar

import pytest
from kafka import TopicPartition, errors
from kafka.future import Future

from streamkernel.connectors import SourceError
from streamkernel.connectors.kafka.base import topic
from streamkernel.connectors.kafka.base.topic import KafkaTopic

OLD, NEW = uuid.UUID(int=1), uuid.UUID(int=2)


class Metadata:
    """What a cluster says of its topic, one word an answer; the last one stays."""

    cluster_id = "cluster"
    unauthorized_topics: frozenset[str] = frozenset()

    def __init__(self, *numbers: uuid.UUID | None) -> None:
        self._numbers = [OLD, *numbers]

    def set_topics(self, _: list[str]) -> None: ...

    def request_update(self) -> Future:
        if len(self._numbers) > 1:
            del self._numbers[0]
        return Future().success(self)

    def partitions_for_topic(self, _: str) -> set[int] | None:
        return {0} if self._numbers[0] else None

    def available_partitions_for_topic(self, topic: str) -> set[int] | None:
        return self.partitions_for_topic(topic)

    def topic_id(self, _: str) -> uuid.UUID | None:
        return self._numbers[0]


class Consumer:
    config: ClassVar = {"fetch_max_wait_ms": 500, "sasl_plain_username": None}
    _fetcher = SimpleNamespace()

    def poll(self, timeout_ms: int) -> None:  # noqa: ARG002
        raise errors.LogTruncationError({TopicPartition("t", 0): None})


@pytest.fixture
def cut(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Polls a topic whose log seems to be cut back, with what the cluster says of it from then on."""
    now = [0.0]
    clock = SimpleNamespace(monotonic=lambda: now[0], sleep=lambda seconds: now.__setitem__(0, now[0] + seconds))
    monkeypatch.setattr(topic, "time", clock)

    def poll(*numbers: uuid.UUID | None) -> None:
        cluster = Metadata(OLD, *numbers)
        network = SimpleNamespace(
            cluster=cluster, connections=SimpleNamespace(run=lambda wait, *rest: wait(*rest), wait_for=lambda *_: None)
        )
        monkeypatch.setattr(topic, "connect", lambda *_, **__: (Consumer(), network))
        KafkaTopic("t", {}).poll(0.1)

    return poll


@pytest.mark.parametrize(
    "said",
    [[NEW], [OLD, NEW], [None, NEW], [None, None, OLD, None, NEW], [OLD] * 5 + [NEW]],
    ids=["at once", "after an answer that was on its way", "after it was away", "in confusion", "late"],
)
def test_a_topic_that_was_made_anew(cut: Callable[..., None], said: list[uuid.UUID | None]) -> None:
    with pytest.raises(SourceError, match="deleted and created again"):
        cut(*said)


def test_a_topic_that_is_gone(cut: Callable[..., None]) -> None:
    with pytest.raises(SourceError, match="the topic was deleted while it was read"):
        cut(OLD, None)


@pytest.mark.parametrize("said", [[OLD], [None, OLD]])
def test_the_same_topic_cut_back(cut: Callable[..., None], said: list[uuid.UUID | None]) -> None:
    with pytest.raises(SourceError, match=r"truncated .*\(partition 0\)"):
        cut(*said)
