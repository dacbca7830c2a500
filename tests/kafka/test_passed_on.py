"""Messages that pass on what the messages of the source have, each once through kills, also into a compacted topic."""

from __future__ import annotations

import signal
from collections.abc import Callable

import pytest

from tests.daemon.conftest import Home, Launcher
from tests.daemon.outputs import RIVER
from tests.kafka.cluster import Cluster
from tests.kafka.learning import section
from tests.kafka.producing import consume, produce
from tests.kafka.sinking import place_of

RECORDS = 400
BEGAN = 1_763_802_000_000


def key(number: int) -> bytes:
    return b"customer %d" % (number % 7)


def headers(number: int) -> list[tuple[str, bytes]]:
    # As if another streamkernel had written it: its headers are not those of our line.
    return [("trace", b"t%d" % number), ("source.offset", b"5"), ("writer", b"somebody")]


@pytest.mark.parametrize(("policy", "transactional"), [("delete", False), ("compact", True)])
def test_each_message_has_key_headers_and_time_of_its_record_once(
    broker: Cluster, topic: Callable[..., str], home: Home, launcher: Launcher, policy: str, transactional: bool
) -> None:
    source, target = topic(), topic(**{"cleanup.policy": policy})
    produce(
        broker.bootstrap,
        source,
        [{"a": number % 5, "y": number % 2 == 0, "id": number} for number in range(RECORDS)],
        keys=key,
        headers=headers,
        timestamps=lambda number: BEGAN + number,
    )
    output = section(
        broker.bootstrap,
        target,
        pass_through=["headers", "timestamp"],
        include=["id", "kafka.key", "kafka.timestamp", "kafka.header.trace"],
    )
    home.configure(
        source=section(broker.bootstrap, source, target="y", target_type="bool"),
        model=[{"river.compose.Discard": {"args": ["id"]}}, *RIVER],
        predictions={**output, **({"transactional_id": target} if transactional else {})},
        checkpoint={"directory": "out/state", "every_records": 100},
    )
    for point in ("flushed:2", "consumed:130"):
        ended = launcher.call(home, "run", "config.yaml", STREAMKERNEL_CRASH=point)
        assert ended.returncode == -signal.SIGKILL, ended.stderr
    left = RECORDS - home.header()["source"]["account"]["consumed"]
    ended = launcher.call(home, "run", "config.yaml", "--max-records", str(left))
    assert ended.returncode == 0, ended.stderr
    (records,) = consume(broker.bootstrap, target, isolation_level="read_committed").values()
    numbers = [place_of(record)[1] for record in records]
    # The last ones of their keys stay, and no line of an earlier record is written behind one of a later record.
    assert numbers == (list(range(RECORDS)) if policy == "delete" else sorted(set(numbers)))
    assert numbers[-7:] == list(range(RECORDS))[-7:]
    for number, record in zip(numbers, records, strict=True):
        assert (record.key, record.timestamp) == (key(number), BEGAN + number)
        assert [name for name, _ in record.headers].count("writer") == 1
        assert dict(record.headers)["trace"] == b"t%d" % number
    passed = (
        b'"id":399,"kafka.key":"customer 0","kafka.timestamp":"2025-11-22T09:00:00.399000Z","kafka.header.trace":"t399"'
    )
    assert passed in records[-1].value
