"""Makes the sessions of a sink, each of which goes on from the mark of a checkpoint."""

from __future__ import annotations

import contextlib
import logging
import math
import secrets
from collections.abc import Callable, Mapping
from typing import Any

from kafka import KafkaProducer, codec

from streamkernel.connectors.kafka.base.client import connect
from streamkernel.connectors.kafka.base.options import OUTPUT_RESERVED, TRANSACTION_TIMEOUT_MS, client_settings
from streamkernel.connectors.kafka.writing.mark import OutputMark, Producer
from streamkernel.connectors.kafka.writing.producer_client import ProducerClient
from streamkernel.connectors.kafka.writing.session import ProducerSession, fenced
from streamkernel.connectors.kafka.writing.topic_scan import TopicScan, fitting
from streamkernel.connectors.kafka.writing.written_since import written_since
from streamkernel.connectors.ports import ConnectorError, Mark

__all__ = ["SessionFactory"]

_log = logging.getLogger(__name__)

_BATCH_BYTES = 2**19
_DEFAULTS: Mapping[str, Any] = {
    # Large batches cost half as much a line as small ones.
    "linger_ms": 50,
    # The broker has the last word on how long a line may be.
    "max_request_size": 2**24,
    "transaction_timeout_ms": TRANSACTION_TIMEOUT_MS,
    # What kafka-python also waits between the steps of a transaction.
    "retry_backoff_ms": 50,
}
_ALWAYS: Mapping[str, Any] = {
    "acks": "all",
    "enable_idempotence": True,
    "delivery_timeout_ms": math.inf,
    "max_block_ms": 1000,
}


class SessionFactory:
    """Makes the sessions that write to a topic; its parameters are those of `KafkaSink` and of `written_since`."""

    def __init__(
        self,
        topic: str,
        servers: list[str],
        transactional_id: str | None,
        compression: str | None,
        options: Mapping[str, Any],
        *,
        keys_repeat: bool = False,
        in_order: bool = True,
    ) -> None:
        if compression in ("lz4", "snappy") and not getattr(codec, f"has_{compression}")():
            raise ValueError(f"compression {compression} is not installed: pip install 'streamkernel[kafka-codecs]'")
        self.topic = topic
        self._settings = client_settings(servers, {**_DEFAULTS, **options}, OUTPUT_RESERVED)
        self._transactional_id = transactional_id
        self._compression = compression
        self._scan_settings = {"keys_repeat": keys_repeat, "in_order": in_order}

    def scan(self, attempt: int = 0) -> TopicScan:
        """Connect to the topic, without writing to it or fencing another producer."""
        return TopicScan(self.topic, self._settings, attempt)

    def connect(
        self, given: Mark | None, attempt: int, cancelled: Callable[[], bool], before: Producer | None = None
    ) -> ProducerSession:
        """Return a session; see `streamkernel.connectors.kafka.writing.session.ConnectSession`."""
        mark = None if given is None else OutputMark.from_json(given)
        with contextlib.ExitStack() as undo:
            if mark is not None and mark.transactional_id not in (None, self._transactional_id):
                # What it did not commit must neither count one day nor be taken for written.
                self._fence(mark.transactional_id, attempt)
            scan = self.scan(attempt)
            undo.callback(scan.close)
            if before is not None and self._transactional_id is not None:
                self._check_holder(scan, before, attempt)
            if mark is not None and mark.stream.partition("/")[0] != scan.stream.partition("/")[0]:
                _log.warning(
                    "kafka topic %s is on another cluster than at the checkpoint: lines are appended", self.topic
                )
                mark = None
            # Before the topic is read: what comes in between is not overlooked, but refused.
            sequences = None if mark is None else scan.sequences(mark.producer)
            writer = secrets.token_hex(4) if mark is None else mark.writer
            session = ProducerSession(self.topic, *self._producer(scan, attempt, self._transactional_id), scan, writer)
            undo.callback(session.abandon)
            # First of all: from here on nobody else can commit under this name.
            session.initialize()
            if not session.transactional and mark is not None and mark.transactional_id is None:
                self._resume(session, mark.producer, sequences)
            bounds = scan.bounds()
            session.ends = {partition: there.end for partition, there in bounds.items()}
            if mark is not None:
                session.written = written_since(scan, mark, bounds, sequences or {}, cancelled, **self._scan_settings)
                session.existing = dict(mark.existing)
            elif any(there.end > there.first for there in bounds.values()):
                session.existing = dict(scan.existing(bounds))
                _log.info("kafka topic %s holds lines already: new ones are appended to them", self.topic)
            if not session.unverified:
                scan.close()
            undo.pop_all()
            return session

    def _check_holder(self, scan: TopicScan, before: Producer, attempt: int) -> None:
        """Refuse to fence another process that took our place: it would do the same, and so for ever."""
        assert self._transactional_id is not None
        holder = scan.holder(self._transactional_id)
        # After a failed attempt a new epoch may be our own: its answer was lost.
        if holder not in (None, before) and (attempt == 0 or holder.number != before.number):
            raise ConnectorError(fenced(self._transactional_id))

    def _resume(self, session: ProducerSession, producer: Producer, sequences: Mapping[int, int] | None) -> None:
        if sequences is None:
            _log.warning(
                "kafka topic %s: the broker does not list its producers (that needs Kafka 2.8 and Read on the "
                "topic): the last lines of a killed process may come late, and twice",
                self.topic,
            )
        else:
            session.resume(producer, sequences)

    def _producer(self, scan: TopicScan, attempt: int, transactional_id: str | None) -> tuple[Any, Any]:
        settings = {"batch_size": _BATCH_BYTES, **self._settings, **_ALWAYS, "compression_type": self._compression}
        if transactional_id is not None:
            settings["transactional_id"] = transactional_id
        if scan.largest is not None:
            # A larger batch would be refused, and sent again in halves.
            settings["batch_size"] = min(settings["batch_size"], scan.largest)
        return connect(KafkaProducer, fitting(KafkaProducer, settings), attempt, ProducerClient)

    def _fence(self, transactional_id: str, attempt: int) -> None:
        with contextlib.ExitStack() as stack:
            scan = self.scan(attempt)
            stack.callback(scan.close)
            session = ProducerSession(self.topic, *self._producer(scan, attempt, transactional_id), scan, "")
            stack.callback(session.abandon)
            session.initialize()
