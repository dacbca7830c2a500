"""A producer rests while no broker is there: what it is told, so that it does."""

from __future__ import annotations

import gc
import socket
import time
from collections.abc import Iterator

import pytest
from kafka import KafkaConsumer

from connectors.kafka.base.client import NetworkClient, Unreachable, connect
from connectors.kafka.writing.producer_client import ProducerClient


@pytest.fixture
def link() -> Iterator[ProducerClient]:
    made = ProducerClient(bootstrap_servers="127.0.0.1:1", reconnect_backoff_ms=60_000, reconnect_backoff_max_ms=60_000)
    yield made
    made.close()


def test_how_long_to_wait_for_a_connection_is_told_in_milliseconds(link: ProducerClient) -> None:
    link.connections.update_backoff(7)
    assert 1 < link.connections.connection_delay(7) < 100
    assert link.connection_delay(7) > 1000


def test_a_connection_that_is_being_made_is_not_asked_for_without_a_pause(link: ProducerClient) -> None:
    assert link.connections.connection_delay(7) == 0
    assert link.connection_delay(7) > 0


def test_who_leads_is_not_asked_again_at_once_without_an_answer(
    link: ProducerClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    woken: list[None] = []
    monkeypatch.setattr(link.cluster._wakeup, "notify", lambda: woken.append(None))
    first = link.cluster.request_update()
    assert link.cluster.request_update() is first
    assert len(woken) == 1
    first.failure(ConnectionError())
    second = link.cluster.request_update()
    assert second is not first
    assert len(woken) == 2
    # Being told may be missed.
    time.sleep(0.05)
    assert link.cluster.request_update() is second
    assert len(woken) == 3


def test_a_client_that_is_closed_while_it_connects_leaves_no_socket_behind() -> None:
    """What is left to the collector is a warning, and with that an error here."""
    begun: list[NetworkClient] = []

    class Noted(NetworkClient):
        def __init__(self, **settings: object) -> None:
            super().__init__(**settings)
            begun.append(self)

    def connecting() -> bool:
        return bool(begun and begun[0].connections._conns)

    # Whoever waits to be accepted fills the queue; who comes then gets no answer.
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full:
        place = full.getsockname()
        with socket.create_connection(place), pytest.raises(Unreachable):
            connect(KafkaConsumer, {"bootstrap_servers": f"127.0.0.1:{place[1]}"}, kind=Noted, cancelled=connecting)
    gc.collect()
