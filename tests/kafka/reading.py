"""Reads a topic by the source under test."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from streamkernel.connectors import KafkaSource, Position, Record

_SECONDS = 60
"""How long reading may take: only what hangs gets there."""


def rows(count: int, start: int = 0) -> list[dict[str, int]]:
    """Records that are numbered."""
    return [{"n": number, "y": number % 2} for number in range(start, start + count)]


def source_of(bootstrap: str, topic: str, **settings: Any) -> KafkaSource:
    """Make a source whose records have their target in ``y``."""
    return KafkaSource(topic, bootstrap, **{"target": "y", **settings})


def drain(source: KafkaSource, count: int, most: int = 1000) -> list[Record]:
    """Poll until so many records came, and a moment longer; each poll must be of one partition."""
    records: list[Record] = []
    deadline = time.monotonic() + _SECONDS
    while len(records) < count:
        assert time.monotonic() < deadline, f"only {len(records)} of {count} records came: {source.health_problem}"
        polled = source.poll(most, 0.2)
        assert len(polled) <= most
        assert len({record.position[:2] for record in polled}) <= 1
        records += polled
    assert source.poll(most, 0.02) == []
    assert len(records) == count
    return records


def until(condition: Callable[[], bool], source: KafkaSource | None = None) -> None:
    """Wait for something, while a source, if there is one, is polled and hands out nothing."""
    deadline = time.monotonic() + _SECONDS
    while not condition():
        assert time.monotonic() < deadline
        if source is None:
            time.sleep(0.02)
        else:
            assert source.poll(10, 0.05) == []


def places(records: list[Record]) -> list[tuple[int, int]]:
    """Give partition and offset of each record."""
    return [(record.position.partition, record.position.offset) for record in records]


def after(records: list[Record]) -> dict[int, Position]:
    """Give the positions a checkpoint holds once these records are learned."""
    return {record.next.partition: record.next for record in records}
