"""Exactly once by transactions: whatever the broker knows at a restart, each line stands in the topic once."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from kafka.errors import UnknownError

from streamkernel.connectors import SinkError
from streamkernel.connectors.kafka.writing.mark import Marker, OutputMark
from streamkernel.connectors.kafka.writing.producer import Broken, TopicProducer, connect_producer, producer_settings
from tests.kafka.broker import Broker
from tests.kafka.cluster import Cluster
from tests.kafka.sinking import at, finish, flushed, opened, put, standing, write_on
from tests.processes import wait_until

MakeTopic = Callable[..., str]


class TestRestarts:
    """A process ends at each step of a checkpoint; the next one starts from the mark that is durable then."""

    @pytest.mark.parametrize("flushed", [True, False], ids=["before the checkpoint is durable", "after the commit"])
    def test_with_lines_in_an_open_transaction(self, broker: Cluster, topic: MakeTopic, flushed: bool) -> None:
        name = topic()
        first = opened(broker, name)
        put(first, [at(0), at(1)])
        durable = finish(first)
        assert OutputMark.from_json(durable).lines  # whether they are there, only the broker knows
        put(first, [at(2)])
        if flushed:
            first.flush()  # its mark is lost
        for offset in (2, 3):
            with opened(broker, name, durable) as second:
                assert standing(broker, name) == {0: [*range(offset)]}
                put(second, [at(offset)])
                durable = finish(second)
        first.close()
        assert standing(broker, name) == {0: [0, 1, 2, 3]}

    def test_between_the_checkpoint_and_the_commit(self, broker: Cluster, topic: MakeTopic) -> None:
        name = topic(2)
        first = opened(broker, name)
        put(first, [at(0), at(1, 1)])
        durable = first.flush()
        assert standing(broker, name) == {}
        with opened(broker, name, durable) as second:
            flushed(second)
            assert standing(broker, name) == {0: [0], 1: [1]}
            put(second, [at(2)])
            finish(second)
        first.close()
        assert standing(broker, name) == {0: [0, 2], 1: [1]}

    @pytest.mark.parametrize("told", [False, True])
    def test_a_commit_of_which_nobody_knows(self, broker: Cluster, topic: MakeTopic, told: bool) -> None:
        name = topic()
        commit, failed = TopicProducer.commit, []

        def doubtful(self: TopicProducer, *how: Any) -> None:
            if how[0].number and not failed:
                failed.append(how)
                if told:
                    commit(self, *how)
                raise Broken(str(UnknownError("unknown")))
            commit(self, *how)

        with patch.object(TopicProducer, "commit", doubtful), opened(broker, name) as sink:
            put(sink, map(at, range(3)))
            sink.flush()
            sink.commit()
            put(sink, [at(3)])
            finish(sink)
        assert standing(broker, name) == {0: [0, 1, 2, 3]}

    @pytest.mark.parametrize("names", [("one", "two"), ("one", None), (None, "one")])
    def test_another_transactional_id(self, broker: Cluster, topic: MakeTopic, names: tuple[Any, Any]) -> None:
        name = topic()
        before, after = (one and f"{name}-{one}" for one in names)
        first = opened(broker, name, transactional_id=before)
        put(first, [at(0)])
        durable = first.flush()
        with opened(broker, name, durable, transactional_id=after) as second:
            put(second, [at(1)])
            finish(second)
        first.close()
        assert standing(broker, name) == {0: [0, 1]}


class TestDisagreement:
    """The broker and the checkpoint do not agree on the lines in the topic."""

    def test_no_checkpoint(self, broker: Cluster, topic: MakeTopic, caplog: pytest.LogCaptureFixture) -> None:
        name = topic()
        with opened(broker, name) as sink:
            put(sink, [at(0)])
            finish(sink)
        with pytest.raises(SinkError, match=r"and no checkpoint says which: restore their .*existing: append"):
            opened(broker, name)
        with opened(broker, name, existing="append") as sink:
            put(sink, [at(0)])
            durable = finish(sink)
        assert "the topic may have lines twice from now on" in caplog.text
        opened(broker, name, durable).close()
        assert standing(broker, name) == {0: [0, 0]}

    def test_an_older_checkpoint(self, broker: Cluster, topic: MakeTopic) -> None:
        name = topic()
        with opened(broker, name) as sink:
            put(sink, [at(0)])
            older = finish(sink)
            for offset in (1, 2):
                put(sink, [at(offset)])
                finish(sink)
        with opened(broker, name, older) as sink:  # the records after it are learned again
            put(sink, [at(1), at(2), at(3)])
            finish(sink)
        assert standing(broker, name) == {0: [0, 1, 2, 3]}

    def test_a_marker_the_broker_has_forgotten(self, broker: Cluster, topic: MakeTopic) -> None:
        name = topic()
        with opened(broker, name) as sink:
            put(sink, [at(0)])
            durable = finish(sink)
            settled = sink.flush()
        with broker.admin() as admin:
            admin.delete_groups([name])
        with pytest.raises(SinkError, match="has forgotten whether the last 1 lines of the checkpoint were committed"):
            opened(broker, name, durable)
        with opened(broker, name, settled) as sink:  # all is known to be there
            put(sink, [at(1)])
            finish(sink)
        assert standing(broker, name) == {0: [0, 1]}

    def test_a_topic_that_was_made_again(self, broker: Cluster, topic: MakeTopic) -> None:
        name = topic()
        with opened(broker, name) as sink:
            put(sink, [at(0)])
            durable = finish(sink)
        broker.delete_topic(name)
        broker.create_topic(name)
        with opened(broker, name, durable) as sink:
            finish(sink)
        assert standing(broker, name) == {0: [0]}


class TestTransactionalIds:
    def test_the_second_fences_the_first(self, broker: Cluster, topic: MakeTopic) -> None:
        name = topic()
        first = opened(broker, name)
        put(first, map(at, range(3)))
        durable = finish(first)
        put(first, [at(3)])
        second = opened(broker, name, durable)
        with pytest.raises(SinkError, match=rf"transactional_id {name} and has fenced this one off: give each daemon"):
            write_on(first)
        first.close()
        put(second, [at(3)])
        finish(second)
        second.close()
        assert standing(broker, name) == {0: [0, 1, 2, 3]}

    @pytest.mark.parametrize(("attempt", "error"), [(0, SinkError), (1, Broken)])
    def test_a_late_request_of_an_earlier_connection(
        self, broker: Cluster, topic: MakeTopic, attempt: int, error: type[Exception]
    ) -> None:
        """After an attempt without an answer, its request may be the one that fences the next connection."""
        name = topic()
        settings = producer_settings([broker.bootstrap], None, {})
        first = connect_producer(name, settings, name, attempt)
        connect_producer(name, settings, name, 0).close()
        with pytest.raises(error, match=r"has fenced this one off|Fenced|Epoch"):
            first.commit(Marker(1, "me", ""), lambda: True)
        first.close()

    @pytest.mark.usefixtures("processes")
    def test_a_transaction_the_broker_has_ended(self, tmp_path: Path) -> None:
        interval = {"transaction_abort_timed_out_transaction_cleanup_interval_ms": 200}
        with Broker(tmp_path / "broker", **interval) as own:
            own.create_topic("out")
            with opened(own, "out", options={"transaction_timeout_ms": 1000}) as sink:
                put(sink, [at(0)])
                wait_until(lambda: own.end_offsets("out") == {0: 2}, "the line and the marker of the abort")
                finish(sink)
            assert standing(own, "out") == {0: [0]}

    @pytest.mark.long
    def test_a_producer_the_broker_has_forgotten(self, tmp_path: Path) -> None:
        intervals = {
            "transactional_id_expiration_ms": 1000,
            "transaction_remove_expired_transaction_cleanup_interval_ms": 200,
            "producer_id_expiration_ms": 1000,
            "producer_id_expiration_check_interval_ms": 200,
        }
        with Broker(tmp_path / "broker", **intervals) as own:
            own.create_topic("out", 2)
            with opened(own, "out") as sink:
                put(sink, map(at, range(3)))
                finish(sink)
                time.sleep(4)
                put(sink, [*map(at, range(3, 6)), at(0, 1)])
                finish(sink)
            assert standing(own, "out") == {0: [*range(6)], 1: [0]}

    def test_a_broker_that_allows_no_such_transaction(self, broker: Cluster, topic: MakeTopic) -> None:
        options = {"transaction_timeout_ms": 3_600_000}
        with pytest.raises(SinkError, match=r"allows no transactions of 3600 s: set transaction_timeout_ms under"):
            opened(broker, topic(), options=options)
