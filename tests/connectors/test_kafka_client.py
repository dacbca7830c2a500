"""The network side of a client: what it leaves behind, and how a producer rests while no broker is there."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from streamkernel.connectors.kafka.writing.producer_client import ProducerClient
from tests.processes import wait_until


@pytest.fixture
def network() -> Iterator[ProducerClient]:
    made = ProducerClient(bootstrap_servers="127.0.0.1:1", reconnect_backoff_ms=60_000, reconnect_backoff_max_ms=60_000)
    yield made
    made.close()


def test_how_long_to_wait_for_a_connection_is_told_in_milliseconds(network: ProducerClient) -> None:
    network.connections.update_backoff(7)
    assert 1 < network.connections.connection_delay(7) < 100
    assert network.connection_delay(7) > 1000


def test_a_connection_that_is_being_made_is_not_asked_for_without_a_pause(network: ProducerClient) -> None:
    assert network.connections.connection_delay(7) == 0
    assert network.connection_delay(7) > 0


def test_who_leads_is_not_asked_again_at_once_without_an_answer(
    network: ProducerClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    woken: list[None] = []
    monkeypatch.setattr(network.cluster._wakeup, "notify", lambda: woken.append(None))
    first = network.cluster.request_update()
    assert network.cluster.request_update() is first
    assert len(woken) == 1
    first.failure(ConnectionError())
    second = network.cluster.request_update()
    assert second is not first
    assert len(woken) == 2
    # Being told may be missed: some time later it is told again.
    wait_until(lambda: network.cluster.request_update() is second and len(woken) == 3)
