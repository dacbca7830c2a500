"""Closes the sockets that kafka-python's clients leave open, as ours do themselves (`client`).

The tests' own producers, consumers and admins live through the outages they are there for. What they would leave to the
garbage collector is none of what is tested, and its warnings would hide those of what is.
"""

from __future__ import annotations

from typing import Any

from kafka.net import compat
from kafka.net.manager import KafkaConnectionManager

from streamkernel.connectors.kafka.base.sockets import ClosingSelector, close_sockets

__all__ = ["tidy"]


def tidy() -> None:
    """Change kafka-python's classes, but not ours."""
    if KafkaConnectionManager._build_transport is not _build_transport:
        KafkaConnectionManager._build_transport = _build_transport
        compat.NetworkSelector = ClosingSelector


_plainly_built = KafkaConnectionManager._build_transport


async def _build_transport(self: Any, node: Any, timeout_at: float | None = None) -> Any:
    try:
        return await _plainly_built(self, node, timeout_at=timeout_at)
    except Exception as error:
        if type(self) is KafkaConnectionManager:
            close_sockets(error)
        raise
