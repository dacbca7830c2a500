"""Commits a member's offsets to its group, for the tools that watch groups; they are never read from there."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Collection, Mapping
from typing import Any

from kafka import OffsetAndMetadata, TopicPartition, errors

__all__ = ["PendingOffsets"]

_log = logging.getLogger(__name__)

_SECONDS = 2.0
_PAUSE = 1.0


class PendingOffsets:
    """Offsets to be committed: a group takes them only of its members, and not while it is rebalancing."""

    def __init__(self, topic: str) -> None:
        self._topic = topic
        self._changed = threading.Lock()
        self._pending: dict[int, int] = {}
        self._committing = False
        self._after = 0.0

    def put(self, offsets: Mapping[int, int]) -> None:
        """Add offsets by partition; they replace what waits of these partitions."""
        with self._changed:
            self._pending.update(offsets)

    def reconnect(self) -> None:
        """Note another client: what the one before had begun to commit may never be answered."""
        self._committing = False

    def commit(self, consumer: Any, mine: Collection[int]) -> None:
        """Begin to commit what waits of the member's partitions; the rest is for their new members."""
        if self._committing or time.monotonic() < self._after:
            return
        places = self._places(mine)
        if places:
            self._committing = True
            consumer.commit_async(places, callback=self._committed)

    def commit_the_last(self, consumer: Any) -> None:
        """Commit what came since the member left: the group takes it if it has no members now, who would do it."""
        places = self._places(None)
        if not places:
            return
        try:
            consumer.assign(list(places))
            consumer.commit(places, timeout_ms=1000 * _SECONDS)
        except (errors.KafkaError, RuntimeError) as error:
            _log.debug("the last offsets could not be committed: %s", error)

    def _committed(self, places: Mapping[Any, Any], result: object) -> None:
        self._committing = False
        if isinstance(result, Exception):
            _log.debug("offsets could not be committed: %s", result)
            self._after = time.monotonic() + _PAUSE
            return
        with self._changed:
            for place, there in places.items():
                if self._pending.get(place.partition) == there.offset:
                    del self._pending[place.partition]

    def _places(self, partitions: Collection[int] | None) -> dict[Any, Any]:
        with self._changed:
            return {
                TopicPartition(self._topic, one): OffsetAndMetadata(offset)
                for one, offset in self._pending.items()
                if partitions is None or one in partitions
            }
