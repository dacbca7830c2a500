"""What a member of a group is told, and what it tells."""

from __future__ import annotations

import gc
import logging
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from kafka import KafkaConsumer

from streamkernel.connectors.kafka.group import membership as module
from streamkernel.connectors.kafka.group.assignment import HeldPartitions
from streamkernel.connectors.kafka.group.membership import Membership
from streamkernel.connectors.ports import SourceError
from tests.kafka.broker import Broker
from tests.kafka.cluster import Cluster
from tests.kafka.listeners import GUEST, login

_SECONDS = 60
Join = Callable[..., Membership]


@pytest.fixture
def join() -> Iterator[Join]:
    """Join groups, and leave them at the end."""
    joined: list[Membership] = []

    def make(servers: str, topic: str, group: str = "", **options: Any) -> Membership:
        quick = {"session_timeout_ms": 1000, "heartbeat_interval_ms": 200, "reconnect_backoff_max_ms": 200}
        joined.append(Membership(topic, servers, group or f"group-of-{topic}", {**quick, **options}))
        joined[-1].open()
        return joined[-1]

    yield make
    for membership in joined:
        membership.close(5.0)


def turn_until(membership: Membership, holds: Callable[[HeldPartitions], bool]) -> list[HeldPartitions]:
    """Take turns until one is as it should be, and give all of them."""
    turns = []
    deadline = time.monotonic() + _SECONDS
    while not turns or not holds(turns[-1]):
        turns.append(membership.turn(0.2))
        assert time.monotonic() < deadline, turns
    return turns


def lost(turns: list[HeldPartitions]) -> set[int]:
    return set().union(*(turn.lost for turn in turns))


def test_members_share_and_whoever_leaves_is_replaced_at_once(
    broker: Cluster, topic: Callable[..., str], join: Join
) -> None:
    name = topic(partitions=5)
    first = join(broker.bootstrap, name)
    assert not first.turn(0.0).joined
    assert turn_until(first, lambda turn: turn.held == {0, 1, 2, 3, 4})[-1].joined
    second = join(broker.bootstrap, name)
    kept = turn_until(first, lambda turn: len(turn.held) == 3)
    given = turn_until(second, lambda turn: len(turn.held) == 2)
    # One after the other, and not all taken away first: what stays is never out of hand.
    assert {len(turn.held) for turn in kept} <= {5, 3}
    assert kept[-1].held.isdisjoint(given[-1].held)
    first.leave()
    assert lost(kept) == lost(given) == lost(turn_until(second, lambda turn: len(turn.held) == 5)) == set()


def test_few_partitions_move(broker: Cluster, topic: Callable[..., str], join: Join) -> None:
    name = topic(partitions=6)
    members = [join(broker.bootstrap, name)]
    before: dict[Membership, frozenset[int]] = {}
    for count in (2, 3):
        members.append(join(broker.bootstrap, name))
        for member in members:
            turns = turn_until(member, lambda turn, share=6 // count: len(turn.held) == share)
            assert not before.get(member) or turns[-1].held < before[member]
            before[member] = turns[-1].held
    members[0].leave()
    for member in members[1:]:
        assert turn_until(member, lambda turn: len(turn.held) == 3)[-1].held > before[member]


def test_offsets_are_committed_by_the_member(broker: Cluster, topic: Callable[..., str], join: Join) -> None:
    name = topic(partitions=2)
    committed = partial(broker.committed, f"group-of-{name}")
    first = join(broker.bootstrap, name)
    turn_until(first, lambda turn: turn.held == {0, 1})
    first.commit({0: 17, 1: 4})
    turn_until(first, lambda _: committed() == {0: 17, 1: 4})
    # What comes when it has left is committed where nobody else is there to do it.
    first.leave()
    first.commit({0: 18})
    first.close(10.0)
    assert committed() == {0: 18, 1: 4}

    second = join(broker.bootstrap, name)
    turn_until(second, lambda turn: turn.held == {0, 1})
    third = join(broker.bootstrap, name)
    (mine,) = turn_until(third, lambda turn: len(turn.held) == 1)[-1].held
    turn_until(second, lambda turn: len(turn.held) == 1)
    # Of others' partitions it commits nothing.
    third.commit({mine: 30, 1 - mine: 31})
    turn_until(third, lambda _: committed()[mine] == 30)
    third.leave()
    turn_until(second, lambda turn: len(turn.held) == 2)
    third.close(10.0)
    assert committed()[1 - mine] == {0: 18, 1: 4}[1 - mine]


def test_an_answer_that_comes_after_a_poll_is_taken_up(
    broker: Cluster, topic: Callable[..., str], join: Join, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of partitions that are added to the topic."""
    monkeypatch.setattr(module, "POLL_SECONDS", 0.001)
    name = topic(partitions=1)
    member = join(broker.bootstrap, name)
    turn_until(member, lambda turn: turn.held == {0})
    for count in (2, 3, 4):
        with broker.admin() as admin:
            admin.create_partitions({name: count})
        assert lost(turn_until(member, lambda turn, count=count: len(turn.held) == count)) == set()


def test_what_cannot_be_is_said_in_one_sentence(local_broker: Broker, topic: Callable[..., str], join: Join) -> None:
    name = topic()

    def why(servers: str, of: str, group: str = "", **options: Any) -> str:
        membership = join(servers, of, group, **options)
        with pytest.raises(SourceError) as error:
            turn_until(membership, lambda _: False)
        assert "\n" not in str(error.value)
        return str(error.value)

    plain, secured = local_broker.bootstrap, local_broker.sasl
    assert why(plain, "missing", "g").startswith(f"group g on kafka topic missing at {plain}: the cluster has no such")
    assert "session_timeout_ms of 100: choose one between" in why(
        plain, name, session_timeout_ms=100, heartbeat_interval_ms=30
    )
    assert "the broker refuses the credentials (" in why(secured, name, **login((GUEST[0], "wrong")))
    local_broker.allow(GUEST[0], "read", "describe", topic=name)
    assert "the user guest is not authorized to use the group: grant it Read on the group" in why(
        secured, name, **login()
    )

    other = KafkaConsumer(bootstrap_servers=plain, group_id=f"group-of-{name}", auto_offset_reset="earliest")
    try:
        assert other.partitions_for_topic(name)  # who leads a group before it knows the topic assigns none of it
        other.subscribe([name])
        while not other.assignment():
            other.poll(timeout_ms=200)
        assert "the group has members of another kind" in why(plain, name)
    finally:
        other.close()


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")  # kafka-python's, of connections refused
def test_a_member_that_is_not_heard_has_lost_its_partitions(
    own_broker: Broker, topic: Callable[..., str], join: Join, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "streamkernel.connectors")
    name = topic(partitions=2, on=own_broker)
    own_broker.stop()
    member = join(own_broker.bootstrap, name)
    turn_until(member, lambda _: member.health_problem is not None)
    own_broker.start()
    turn_until(member, lambda turn: turn.held == {0, 1} and member.health_problem is None)

    for end, begin in ((own_broker.pause, own_broker.resume), (own_broker.kill, own_broker.start)):
        end()
        turns = turn_until(member, lambda turn: not turn.held)
        assert lost(turns) == {0, 1}
        assert not turns[-1].joined
        begin()
        turns = turn_until(member, lambda turn: turn.held == {0, 1} and member.health_problem is None)
        assert turns[-1].joined
    member.close(5.0)
    gc.collect()
    said = [record.getMessage() for record in caplog.records]
    assert [("no broker answers" in line, "a broker answers again" in line) for line in said] == [
        (True, False),
        (False, True),
    ] * 3
