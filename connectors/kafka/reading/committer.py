"""Commits offsets to a consumer group, for the tools that watch groups; they are never read from there."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from typing import Any

from kafka import KafkaConsumer, OffsetAndMetadata, TopicPartition, errors

from streamkernel.connectors.kafka.base.client import Unreachable, connect
from streamkernel.connectors.ports import ConnectorError

__all__ = ["OffsetCommitter"]

_log = logging.getLogger(__name__)

_SECONDS = 5.0
PAUSE = 5.0


class OffsetCommitter:
    """Commits offsets on a thread and a connection of its own: a group that fails must not hold up the records.

    The settings are those of `kafka.KafkaConsumer`, with the ``group_id``; `place` names the topic in a log line.
    """

    def __init__(self, place: str, topic: str, settings: Mapping[str, Any]) -> None:
        self._place = place
        self._topic = topic
        self._settings = settings
        self._offsets: dict[int, int] = {}
        self._committed: dict[int, int] = {}
        self._changed = threading.Condition()
        self._ending = self._failed = False
        self._thread = threading.Thread(target=self._run, name="kafka-commits", daemon=True)
        self._thread.start()

    def put(self, offsets: Mapping[int, int]) -> None:
        """Commit these offsets, by partition, as soon as the group takes them."""
        with self._changed:
            self._offsets |= offsets
            self._changed.notify_all()

    def close(self, seconds: float) -> None:
        """Commit what waits, and end, within some seconds."""
        with self._changed:
            self._ending = True
            self._changed.notify_all()
        self._thread.join(seconds)

    def _run(self) -> None:
        consumer = None
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._ending or self._offsets != self._committed)
                offsets, ending = dict(self._offsets), self._ending
            if offsets != self._committed:
                try:
                    if consumer is None:
                        consumer, _ = connect(KafkaConsumer, self._settings)
                    places = {
                        TopicPartition(self._topic, one): OffsetAndMetadata(offset)
                        for one, offset in offsets.items()
                        if self._committed.get(one) != offset
                    }
                    consumer.commit(places, timeout_ms=1000 * _SECONDS)
                    self._committed, self._failed = offsets, False
                except (Unreachable, ConnectorError, errors.KafkaError, RuntimeError) as error:
                    self._note(error)
                    with self._changed:
                        self._changed.wait_for(lambda: self._ending, PAUSE)
            if ending:
                break
        if consumer is not None:
            consumer.close(autocommit=False, timeout_ms=1000)

    def _note(self, error: Exception) -> None:
        if not self._failed:
            _log.warning(
                "%s: the offsets cannot be committed to the group %s: %s; the checkpoint has them, nothing is lost",
                *(self._place, self._settings["group_id"], error),
            )
        self._failed = True
