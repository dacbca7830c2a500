"""Closes the sockets that kafka-python's clients leave open, as ours do themselves (`connectors.kafka.base.client`).

The tests' own producers, consumers and admins live through the outages they are there for. What they would leave to the
garbage collector is none of what is tested, and its warnings would hide those of what is.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from kafka.net.compat import KafkaNetClient
from kafka.net.manager import KafkaConnectionManager

from connectors.kafka.base.sockets import close_awaited, close_sockets

__all__ = ["tidy"]

_attempts: dict[int, set[Coroutine[Any, Any, Any]]] = {}


def tidy() -> None:
    """Change kafka-python's classes, but not ours."""
    if KafkaConnectionManager._build_transport is not _build_transport:
        KafkaConnectionManager._build_transport = _build_transport
        KafkaNetClient.close = _close


_plainly_built = KafkaConnectionManager._build_transport
_plainly_closed = KafkaNetClient.close


async def _build_transport(self: Any, node: Any, timeout_at: float | None = None) -> Any:
    attempt = _plainly_built(self, node, timeout_at=timeout_at)
    if type(self) is not KafkaConnectionManager:
        return await attempt
    own = _attempts.setdefault(id(self), set())
    own.add(attempt)
    try:
        return await attempt
    except Exception as error:
        close_sockets(error)
        raise
    finally:
        own.discard(attempt)


def _close(self: Any, node_id: Any = None) -> None:
    if type(self) is KafkaNetClient and node_id is None:
        for attempt in list(_attempts.pop(id(self._manager), ())):
            close_awaited(attempt)
    _plainly_closed(self, node_id)
