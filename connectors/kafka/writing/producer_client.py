"""The network side of a producer, which works around what kafka-python (3.0) gets wrong about a broker that is away.

A request of a transaction that meets with one is lost, and with it the transaction, which then never ends: where the
client should say that there is no connection it raises, and only some of the errors that pass by themselves are taken
for such. And a producer with lines to send asks for the broker without a pause, at the cost of a processor: it takes
seconds for milliseconds, and wakes itself up each time it asks for a partition's leader.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from kafka import errors
from kafka.future import Future
from kafka.protocol.producer import ProduceRequest

from streamkernel.connectors.kafka.base.client import NetworkClient

__all__ = ["ProducerClient"]

_LEAST_MS = 20.0
"""How long to rest before asking again for a connection, or for the metadata; what comes of them ends the rest."""


class ProducerClient(NetworkClient):
    """A `NetworkClient` whose errors come the way the producer expects them, and which paces its attempts."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.cluster.request_update = _at_intervals(self.cluster)

    def await_ready(self, node_id: Any, timeout_ms: float = 30_000) -> bool:
        """Wait for a connection, and return whether there is one."""
        try:
            return bool(super().await_ready(node_id, timeout_ms))
        except errors.KafkaError:
            return False

    def connection_delay(self, node_id: Any) -> float:
        """Return the milliseconds after which to look again for a connection."""
        return max(_LEAST_MS, 1000.0 * float(super().connection_delay(node_id)))

    def maybe_connect(self, node_id: Any, **keywords: Any) -> None:
        """Begin to connect; a failure is seen later."""
        try:
            super().maybe_connect(node_id, **keywords)
        except errors.KafkaError:
            return

    def send(self, node_id: Any, request: Any, **keywords: Any) -> Any:
        """Send a request, and return the future of its response."""
        try:
            sent = super().send(node_id, request, **keywords)
        except errors.KafkaError as error:
            sent = Future().failure(error)
        if isinstance(request, ProduceRequest):
            return sent
        future = Future()
        sent.add_callback(future.success)
        sent.add_errback(lambda error: future.failure(_as_connection(error)))
        return future


def _at_intervals(cluster: Any) -> Callable[[], Any]:
    """Return the method that asks for the cluster's metadata, without asking again at once while there is no answer."""
    ask = cluster.request_update
    last: Any = None
    again = 0.0

    def request_update() -> Any:
        nonlocal last, again
        now = time.monotonic()
        if last is None or last.is_done or not cluster.need_update or now >= again:
            last, again = ask(), now + _LEAST_MS / 1000
        return last

    return request_update


def _as_connection(error: Exception) -> Any:
    """Return, for an error that may pass, the one after which a request of a transaction is sent again."""
    if isinstance(error, errors.RetriableError) and not isinstance(error, errors.KafkaConnectionError):
        return errors.KafkaConnectionError(str(error))
    return error
