"""The transactions of the sink: those that end by themselves, and those of two sinks with one id."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from unittest.mock import Mock

import pytest
from kafka import KafkaProducer
from kafka.errors import TransactionalIdNotFoundError, UnknownError

from streamkernel.connectors import SinkError
from tests.kafka.broker import Broker
from tests.kafka.cluster import Cluster
from tests.kafka.sinking import at, finish, opened, put, settle, standing, write_on
from tests.processes import wait_until

MakeTopic = Callable[..., str]


class TestTransactionsThatEndByThemselves:
    @pytest.mark.long
    @pytest.mark.parametrize("taken", [False, True])
    def test_a_producer_the_broker_has_forgotten(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture, taken: bool
    ) -> None:
        intervals = {
            "transactional_id_expiration_ms": 1000,
            "transaction_remove_expired_transaction_cleanup_interval_ms": 200,
            "producer_id_expiration_ms": 1000,
            "producer_id_expiration_check_interval_ms": 200,
        }
        with Broker(tmp_path / "broker", **intervals) as own:
            own.create_topic("out", 2)
            sink = opened(own, "out", transactional_id="me")
            put(sink, map(at, range(3)))
            mark = sink.flush()
            until_forgotten(own, "me")
            if taken:
                with opened(own, "out", mark, transactional_id="me"):
                    put(sink, [at(3)])
                    with pytest.raises(SinkError, match="another process writes with the transactional_id me and has"):
                        finish(sink)
                sink.close()
                return
            put(sink, [*map(at, range(3, 6)), at(0, 1)])
            finish(sink)
            assert standing(own, "out") == {0: [*range(6)], 1: [0]}
            # On a slow machine it is forgotten again before the next line.
            assert caplog.messages
            assert all("connecting again: InvalidProducerIdMappingError" in told for told in caplog.messages)
            sink.close()


def until_forgotten(cluster: Cluster, transactional_id: str) -> None:
    deadline = time.monotonic() + 60
    with cluster.admin() as admin:
        while time.monotonic() < deadline:
            try:
                admin.describe_transactions([transactional_id])
            except TransactionalIdNotFoundError:
                return
            time.sleep(0.1)
    raise AssertionError("the broker never forgets")


class TestTransactionalIds:
    def test_the_second_shuts_the_first_out(self, broker: Cluster, topic: MakeTopic) -> None:
        name = topic()
        first = opened(broker, name, transactional_id=name)
        put(first, map(at, range(3)))
        first.flush()
        put(first, [at(3)])
        second = opened(broker, name, transactional_id=name, existing="append")
        sentence = (
            f"another process writes with the transactional_id {name} and has fenced this one off: give each daemon "
            "its own"
        )
        with pytest.raises(SinkError, match=sentence):
            write_on(first)
        first.close()
        put(second, [at(0)])
        second.close()
        assert standing(broker, name) == {0: [0, 1, 2, 0]}

    def test_the_first_does_not_come_back_after_an_error_of_the_broker(
        self, broker: Cluster, topic: MakeTopic, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        name = topic()
        first = opened(broker, name, transactional_id=name)
        put(first, [at(0)])
        mark = first.flush()
        put(first, [at(1)])
        settle(first)
        with opened(broker, name, mark, transactional_id=name) as second:
            with monkeypatch.context() as patch:
                # What a broker answers that is just about to fence this one.
                patch.setattr(KafkaProducer, "commit_transaction", Mock(side_effect=UnknownError("unknown")))
                with pytest.raises(SinkError, match="has fenced this one off"):
                    first.flush()
            first.close()
            put(second, map(at, range(1, 3)))
        assert standing(broker, name) == {0: [0, 1, 2]}

    @pytest.mark.usefixtures("processes")
    def test_a_transaction_the_broker_has_ended(self, tmp_path: Path) -> None:
        interval = {"transaction_abort_timed_out_transaction_cleanup_interval_ms": 200}
        with Broker(tmp_path / "broker", **interval) as own:
            own.create_topic("out")
            sink = opened(own, "out", transactional_id="me", options={"transaction_timeout_ms": 1000})
            mark = sink.flush()
            put(sink, [at(0)])
            wait_until(lambda: own.end_offsets("out") == {0: 2}, "the line and the marker of the abort")
            with pytest.raises(
                SinkError, match=r"a transaction that was open for more than 1 s .*start again, nothing is"
            ):
                sink.flush()
            sink.close()
            with opened(own, "out", mark, transactional_id="me") as again:
                put(again, [at(0)])
            assert standing(own, "out") == {0: [0]}

    def test_a_broker_that_allows_no_such_transaction(self, broker: Cluster, topic: MakeTopic) -> None:
        options = {"transaction_timeout_ms": 3_600_000}
        with pytest.raises(
            SinkError, match=r"allows no transactions of 3600 s: set transaction_timeout_ms under options"
        ):
            opened(broker, topic(), transactional_id="too long", options=options)
