"""The transactions of the sink: those that end by themselves, and those of two sinks with one id."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kafka.errors import TransactionalIdNotFoundError
from kafka.protocol.producer import EndTxnRequest

from connectors import SinkError
from connectors.kafka.writing.sink import KafkaSink
from tests.kafka.broker import Broker
from tests.kafka.cluster import Cluster
from tests.kafka.sinking import at, finish, opened, put, settle, standing, write_on
from tests.processes import wait_until

MakeTopic = Callable[..., str]


class TestTransactionsThatEndByThemselves:
    def test_the_end_of_the_one_before_comes_once_more(
        self, broker: Cluster, topic: MakeTopic, caplog: pytest.LogCaptureFixture
    ) -> None:
        # A copy of the request that was held up on the way: the broker takes it for the end of the one that is open.
        name = topic(partitions=2)
        sink = opened(broker, name, transactional_id=name)
        put(sink, map(at, range(3)))
        mark = sink.flush()
        put(sink, map(at, range(3, 6)))
        settle(sink)
        end_transaction(broker, sink)
        put(sink, [*map(at, range(6, 9)), at(0, 1)])
        finish(sink)
        assert standing(broker, name) == {0: [*range(9)], 1: [0]}
        [told] = caplog.messages
        assert "connecting anew: InvalidTxnStateError" in told
        with opened(broker, name, mark, transactional_id=name) as again:
            put(again, map(at, range(3, 12)))
        assert standing(broker, name) == {0: [*range(12)], 1: [0]}
        sink.close()

    def test_what_was_acknowledged_and_aborted_is_written_by_a_restart(self, broker: Cluster, topic: MakeTopic) -> None:
        name = topic()
        sink = opened(broker, name, transactional_id=name)
        put(sink, map(at, range(3)))
        mark = sink.flush()
        put(sink, map(at, range(3, 6)))
        settle(sink)
        end_transaction(broker, sink, committed=False)
        put(sink, map(at, range(6, 9)))
        with pytest.raises(SinkError, match=r"3 lines that were acknowledged are not there any more.*start again"):
            finish(sink)
        sink.close()
        with opened(broker, name, mark, transactional_id=name) as again:
            put(again, map(at, range(3, 9)))
        assert standing(broker, name) == {0: [*range(9)]}

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
            assert all("connecting anew: InvalidProducerIdMappingError" in told for told in caplog.messages)
            sink.close()


def end_transaction(cluster: Cluster, sink: KafkaSink, committed: bool = True) -> None:
    """Tell the broker that a sink's transaction is over, without telling the sink."""
    name = sink.transactional_id
    assert name is not None
    with cluster.admin() as admin:
        about = admin.describe_transactions([name])[name]
        request = EndTxnRequest(
            transactional_id=name,
            producer_id=about.producer_id,
            producer_epoch=about.producer_epoch,
            committed=committed,
            max_version=3,
        )

        async def end(connections: Any) -> int:
            return int((await connections.send(request, node_id=about.coordinator_id)).error_code)

        assert admin._manager.run(end, admin._manager) == 0
        # What comes before it is over everywhere may still be taken for a part of it.
        deadline = time.monotonic() + 30
        while admin.describe_transactions([name])[name].state.name.startswith("PREPARE"):
            assert time.monotonic() < deadline
            time.sleep(0.01)


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
            f"another process writes with the transactional_id {name} and has shut this one out: "
            "give each daemon one of its own"
        )
        with pytest.raises(SinkError, match=sentence):
            write_on(first)
        first.close()
        put(second, [at(0)])
        second.close()
        assert standing(broker, name) == {0: [0, 1, 2, 0]}

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
