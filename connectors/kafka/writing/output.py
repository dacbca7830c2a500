"""From the mark of a checkpoint to a session that goes on from it."""

from __future__ import annotations

import contextlib
import logging
import math
import secrets
from collections.abc import Callable, Mapping
from typing import Any

from kafka import KafkaProducer, codec

from connectors.kafka.base.client import connect
from connectors.kafka.base.options import OUTPUT_RESERVED, TRANSACTION_TIMEOUT_MS, client_settings
from connectors.kafka.writing.mark import OutputMark, Producer
from connectors.kafka.writing.producer import ProducerSession, shut_out
from connectors.kafka.writing.producer_client import ProducerClient
from connectors.kafka.writing.session import Session
from connectors.kafka.writing.standing import standing
from connectors.kafka.writing.survey import Survey, fitting
from connectors.ports import ConnectorError, Mark

__all__ = ["Output"]

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


class Output:
    """Makes the sessions that write to a topic.

    Parameters
    ----------
    topic
        Its name.
    servers
        The addresses of brokers.
    transactional_id
        What the broker knows the writer by; None: each line counts at once.
    compression
        ``"gzip"``, ``"snappy"``, ``"lz4"``, ``"zstd"`` or None.
    options
        Settings of kafka-python.

    Raises
    ------
    ValueError
        For an option that is not the user's to set, and for a compression that is not installed.

    """

    def __init__(
        self,
        topic: str,
        servers: list[str],
        transactional_id: str | None,
        compression: str | None,
        options: Mapping[str, Any],
    ) -> None:
        for name in options:
            if name in OUTPUT_RESERVED:
                raise ValueError(f"options: {name} cannot be set: {OUTPUT_RESERVED[name]}")
        if compression in ("lz4", "snappy") and not getattr(codec, f"has_{compression}")():
            raise ValueError(f"compression {compression} is not installed: pip install 'streamkernel[kafka-codecs]'")
        self.topic = topic
        self._settings = client_settings(servers, {**_DEFAULTS, **options})
        self._transactional_id = transactional_id
        self._compression = compression

    def survey(self, attempt: int = 0) -> Survey:
        """Look at the topic, without writing to it or shutting anybody out."""
        return Survey(self.topic, self._settings, attempt)

    def connect(
        self, given: Mark | None, attempt: int, cancelled: Callable[[], bool], before: Producer | None = None
    ) -> Session:
        """Make a session; see `connectors.kafka.writing.session.Connect`."""
        mark = None if given is None else OutputMark.from_json(given)
        with contextlib.ExitStack() as undo:
            if mark is not None and mark.transactional_id not in (None, self._transactional_id):
                # What it did not commit must neither count one day nor be taken for written.
                self._shut_out(mark.transactional_id, attempt)
            survey = self.survey(attempt)
            undo.callback(survey.close)
            if before is not None and self._transactional_id is not None:
                self._check_holder(survey, before)
            if mark is not None and mark.stream.partition("/")[0] != survey.stream.partition("/")[0]:
                _log.warning(
                    "kafka topic %s is on another cluster than at the checkpoint: lines are appended", self.topic
                )
                mark = None
            # Before the topic is read: what comes in between is not overlooked, but refused.
            sequences = None if mark is None or mark.producer is None else survey.sequences(mark.producer)
            writer = secrets.token_hex(4) if mark is None else mark.writer
            session = ProducerSession(self.topic, *self._producer(survey, attempt), survey, writer)
            undo.callback(session.abandon)
            # First of all: from here on nobody else can commit under this name.
            session.introduce()
            if mark is not None and mark.producer is not None and mark.transactional_id is None:
                self._succeed(session, mark.producer, sequences)
            bounds = survey.bounds()
            session.ends = {partition: there.end for partition, there in bounds.items()}
            if mark is not None:
                session.emitted = standing(survey, mark, bounds, sequences or {}, cancelled)
                session.earlier = dict(mark.earlier)
            elif any(there.end > there.first for there in bounds.values()):
                session.earlier = dict(survey.earlier(bounds))
                _log.info("kafka topic %s holds lines already: new ones are appended to them", self.topic)
            if not session.unproven:
                survey.close()
            undo.pop_all()
            return session

    def _check_holder(self, survey: Survey, before: Producer) -> None:
        """Refuse to shut out another process that took our place: it would do the same, and so for ever."""
        assert self._transactional_id is not None
        holder = survey.holder(self._transactional_id)
        if holder not in (None, before.number):
            raise ConnectorError(shut_out(self._transactional_id))

    def _succeed(self, session: ProducerSession, producer: Producer, sequences: Mapping[int, int] | None) -> None:
        if session.transactional:
            return
        if sequences is None:
            _log.warning(
                "kafka topic %s: the broker does not tell its producers (that needs Kafka 2.8 and Read on the "
                "topic): lines a killed process sent last may come late, and twice",
                self.topic,
            )
        else:
            session.succeed(producer, sequences)

    def _producer(self, survey: Survey | None, attempt: int, **more: Any) -> tuple[Any, Any]:
        settings = {"batch_size": _BATCH_BYTES, **self._settings, **_ALWAYS, "compression_type": self._compression}
        if self._transactional_id is not None:
            settings["transactional_id"] = self._transactional_id
        if survey is not None and survey.largest is not None:
            # A larger batch would be refused, and sent again in halves.
            settings["batch_size"] = min(settings["batch_size"], survey.largest)
        return connect(KafkaProducer, fitting(KafkaProducer, {**settings, **more}), attempt, ProducerClient)

    def _shut_out(self, transactional_id: str, attempt: int) -> None:
        with contextlib.ExitStack() as stack:
            survey = self.survey(attempt)
            stack.callback(survey.close)
            producer, link = self._producer(None, attempt, transactional_id=transactional_id)
            session = ProducerSession(self.topic, producer, link, survey, "")
            stack.callback(session.abandon)
            session.introduce()
