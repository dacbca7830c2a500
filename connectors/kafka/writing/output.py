"""From the mark of a checkpoint to a session that goes on from it."""

from __future__ import annotations

import contextlib
import logging
import math
import secrets
import warnings
from collections.abc import Callable, Mapping
from typing import Any

from connectors.kafka.client import connect
from connectors.kafka.options import OUTPUT_RESERVED, TRANSACTION_TIMEOUT_MS, client_settings
from connectors.kafka.reading.topic import Bounds
from connectors.kafka.writing.emitted import Emitted
from connectors.kafka.writing.link import WritingLink
from connectors.kafka.writing.mark import OutputMark
from connectors.kafka.writing.producer import ProducerSession
from connectors.kafka.writing.session import Session
from connectors.kafka.writing.survey import Survey, fitting
from connectors.ports import ConnectorError, Mark

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka import KafkaProducer, codec

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

    def survey(self, attempt: int = 0, committed: bool = False) -> Survey:
        """Look at the topic, without writing to it or shutting anybody out."""
        return Survey(self.topic, self._settings, committed, attempt)

    def connect(self, given: Mark | None, attempt: int, cancelled: Callable[[], bool]) -> Session:
        """Make a session; see `connectors.kafka.writing.session.Connect`."""
        mark = None if given is None else OutputMark.from_json(given)
        with contextlib.ExitStack() as undo:
            committed = self._transactional_id is not None
            if mark is not None and mark.transactional_id not in (None, self._transactional_id):
                # What it did not commit must neither count one day nor be taken for written.
                self._shut_out(mark.transactional_id, attempt)
                committed = True
            survey = self.survey(attempt, committed)
            undo.callback(survey.close)
            if mark is not None and mark.stream.partition("/")[0] != survey.stream.partition("/")[0]:
                _log.warning(
                    "kafka topic %s is on another cluster than at the checkpoint: lines are appended", self.topic
                )
                mark = None
            writer = secrets.token_hex(4) if mark is None else mark.writer
            session = ProducerSession(self.topic, *self._producer(survey, attempt), survey, writer)
            undo.callback(session.abandon)
            # First of all: from here on nobody else can commit under this name.
            session.introduce()
            if mark is not None and mark.producer is not None and not session.transactional:
                # Before the topic is read: what comes in between is not overlooked, but refused.
                sequences = survey.sequences(mark.producer.number)
                if sequences is None:
                    _log.warning(
                        "kafka topic %s: the broker does not tell its producers (that needs Kafka 2.8 and Read on the "
                        "topic): lines a killed process sent last may come late, and twice",
                        self.topic,
                    )
                else:
                    session.succeed(mark.producer, sequences)
            bounds = survey.bounds()
            session.ends = {partition: there.end for partition, there in bounds.items()}
            if mark is not None:
                starts = self._starts(mark, survey.stream, bounds)
                found = survey.origins(starts, session.ends, writer, cancelled)
                session.emitted = Emitted([*Emitted.positions(mark.emitted), *found])
            elif any(there.end > there.first for there in bounds.values()):
                _log.info("kafka topic %s holds lines already: new ones are appended to them", self.topic)
            if not session.unproven:
                survey.close()
            undo.pop_all()
            return session

    def _producer(self, survey: Survey | None, attempt: int, **more: Any) -> tuple[Any, Any]:
        settings = {"batch_size": _BATCH_BYTES, **self._settings, **_ALWAYS, "compression_type": self._compression}
        if self._transactional_id is not None:
            settings["transactional_id"] = self._transactional_id
        if survey is not None and survey.largest is not None:
            # A larger batch would be refused, and sent again in halves.
            settings["batch_size"] = min(settings["batch_size"], survey.largest)
        return connect(KafkaProducer, fitting(KafkaProducer, {**settings, **more}), attempt, WritingLink)

    def _shut_out(self, transactional_id: str, attempt: int) -> None:
        with contextlib.ExitStack() as stack:
            survey = self.survey(attempt)
            stack.callback(survey.close)
            producer, link = self._producer(None, attempt, transactional_id=transactional_id)
            session = ProducerSession(self.topic, producer, link, survey, "")
            stack.callback(session.abandon)
            session.introduce()

    def _starts(self, mark: OutputMark, stream: str, bounds: Mapping[int, Bounds]) -> dict[int, int]:
        """Give where lines may stand that were written after the mark."""
        if mark.stream != stream:
            _log.warning("kafka topic %s was deleted and made anew: its earlier lines are gone", self.topic)
            return {partition: there.first for partition, there in bounds.items()}
        starts = {}
        for partition, there in bounds.items():
            start = mark.ends.get(partition, there.first)
            if start > there.end:
                raise ConnectorError(
                    f"partition {partition} ends at offset {there.end:,}, before offset {start:,} of the checkpoint: "
                    "the brokers lost lines; name another topic to go on, or start anew with --fresh"
                )
            if start < there.first:
                _log.warning(
                    "kafka topic %s, partition %d: offsets %d to %d were removed since the checkpoint: "
                    "lines that stood there may be written again",
                    *(self.topic, partition, start, there.first - 1),
                )
            starts[partition] = max(start, there.first)
        return starts
