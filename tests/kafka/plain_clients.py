"""Closes the sockets that kafka-python's clients leave to the garbage collector.

The tests' clients live through outages, and warnings about these sockets would hide others. Our own clients close the
sockets of a failed attempt; one that is closed while it connects leaves one socket.
"""

from __future__ import annotations

from typing import Any

from kafka.net import compat
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector

from streamkernel.connectors.kafka.base import client

__all__ = ["tidy"]


def tidy() -> None:
    """Change kafka-python's classes."""
    if KafkaConnectionManager._build_transport is not _build_transport:
        KafkaConnectionManager._build_transport = _build_transport
        for module in (compat, client):
            vars(module)["NetworkSelector"] = ClosingSelector


_plainly_built = KafkaConnectionManager._build_transport


async def _build_transport(self: Any, node: Any, timeout_at: float | None = None) -> Any:
    try:
        return await _plainly_built(self, node, timeout_at=timeout_at)
    except Exception as error:
        client.close_sockets(error)
        raise


class ClosingSelector(NetworkSelector):  # type: ignore[misc]
    """An event loop that closes the sockets which are still waited for when it is closed."""

    async def wait_read(self, fileobj: Any, timeout_at: float | None = None) -> None:
        await self._wait(super().wait_read(fileobj, timeout_at), fileobj)

    async def wait_write(self, fileobj: Any, timeout_at: float | None = None) -> None:
        await self._wait(super().wait_write(fileobj, timeout_at), fileobj)

    async def _wait(self, event: Any, fileobj: Any) -> None:
        try:
            await event
        except GeneratorExit:
            if self._closed:
                fileobj.close()
            raise
