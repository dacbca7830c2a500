"""The source over a real broker where offsets hold no message, or one that cannot be read."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable

import pytest

from tests.kafka.broker import Broker
from tests.kafka.cluster import Cluster
from tests.kafka.damage import corrupt_batch
from tests.kafka.producing import open_transaction, produce
from tests.kafka.reading import after, drain, places, rows, source_of, until

Topics = Callable[..., str]


class TestHoles:
    """Offsets at which there is no record."""

    def test_the_marks_of_transactions(self, broker: Cluster, topic: Topics) -> None:
        name = topic()
        for number in range(3):
            produce(broker.bootstrap, name, rows(4, 4 * number), transactional_id=name)
        with source_of(broker.bootstrap, name) as source:
            source.open()
            records = drain(source, 12)
            assert [at for _, at in places(records)] == [0, 1, 2, 3, 5, 6, 7, 8, 10, 11, 12, 13]
            until(lambda: source.lag == {(name, 0): 0})  # also the last mark is no record to come
            source.open(after(records[:4]))
            assert places(drain(source, 8)) == places(records[4:])
            source.open(after(records))
            assert drain(source, 0) == []

    def test_what_was_not_committed_never_comes(self, broker: Cluster, topic: Topics) -> None:
        name = topic()
        produce(broker.bootstrap, name, rows(4), transactional_id=name)
        produce(broker.bootstrap, name, rows(4, 100), transactional_id=name, abort=True)
        produce(broker.bootstrap, name, rows(4, 4), transactional_id=name)
        with source_of(broker.bootstrap, name) as source:
            source.open()
            records = drain(source, 8)
            assert [record.x["n"] for record in records] == list(range(8))
            until(lambda: source.lag == {(name, 0): 0})
            # A group is told so, too: behind the mark of the last transaction.
            assert source.commit(after(records)) == {0: 15}
        with source_of(broker.bootstrap, name, options={"isolation_level": "read_uncommitted"}) as source:
            source.open()
            assert [record.x["n"] for record in drain(source, 12)] == [*range(4), *range(100, 104), *range(4, 8)]

    def test_a_transaction_that_stays_open(
        self,
        broker: Cluster,
        topic: Topics,
        caplog: pytest.LogCaptureFixture,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr("streamkernel.connectors.kafka.reading.open_transactions.TOLD_AFTER_SECONDS", 1.0)
        caplog.set_level(logging.INFO)
        name = topic()
        produce(broker.bootstrap, name, rows(4))
        with open_transaction(broker.bootstrap, name, rows(4, 100)) as end, source_of(broker.bootstrap, name) as source:
            source.open()
            drain(source, 4)
            produce(broker.bootstrap, name, rows(4, 4))
            until(lambda: source.health_problem is not None and source.lag == {(name, 0): 8}, source)
            end()
            assert [record.x["n"] for record in drain(source, 4)] == [4, 5, 6, 7]
            until(lambda: source.health_problem is None and source.lag == {(name, 0): 0})
        # A broker that stands still for a second is told of, too.
        waits, goes_on = (record.message for record in caplog.records if "the transaction" in record.message)
        assert re.search(
            r"partition 0: the transaction that began at offset 4 has been open for more than \d+ s", waits
        )
        assert "partition 0: the transaction at offset 4 has ended, reading continues after " in goes_on

    def test_from_what_is_not_committed_to_what_is(
        self, broker: Cluster, topic: Topics, caplog: pytest.LogCaptureFixture
    ) -> None:
        """The place of the checkpoint is behind the beginning of a transaction that is still open."""
        name = topic()
        produce(broker.bootstrap, name, rows(4))
        with open_transaction(broker.bootstrap, name, rows(4, 100)) as end:
            with source_of(broker.bootstrap, name, options={"isolation_level": "read_uncommitted"}) as source:
                source.open()
                place = after(drain(source, 8))
            with source_of(broker.bootstrap, name) as source:
                source.open(place)
                assert source.poll(10, 0.2) == []
                assert "a transaction that began at offset 4 is still open, and offsets 4 to 7 were read" in caplog.text
                end()
                produce(broker.bootstrap, name, rows(4, 4))
                assert [record.x["n"] for record in drain(source, 4)] == [4, 5, 6, 7]


class TestDamage:
    """A batch that cannot be read costs its own records, and says which."""

    @pytest.mark.parametrize(
        ("codec", "wrong"), [(None, [0]), (None, [57, None]), (None, [0, None, None, 60, 99]), ("gzip", [57])]
    )
    def test_it_is_passed_over(
        self,
        local_broker: Broker,
        topic: Topics,
        caplog: pytest.LogCaptureFixture,
        codec: str | None,
        wrong: list[int | None],
    ) -> None:
        name = topic(partitions=2)
        # Batches of a few records.
        produce(
            local_broker.bootstrap,
            name,
            rows(200),
            partition=lambda number: number // 100,
            batch_size=300,
            compression_type=codec,
        )
        folder = local_broker.log_directory(name, 1)
        lost: list[int] = []
        for offset in wrong:
            # None is the batch behind the last one.
            lost += corrupt_batch(folder, lost[-1] + 1 if offset is None else offset)
        with source_of(local_broker.bootstrap, name) as source:
            source.open()
            records = drain(source, 200)
        assert sorted(places(records)) == [(one, at) for one in range(2) for at in range(100)]
        faults = {record.position[1:3]: record.fault for record in records if record.fault is not None}
        assert sorted(faults) == [(1, offset) for offset in lost]
        assert {fault.reason for fault in faults.values()} == {"corrupt"}
        mine = [at for one, at in places(records) if one == 1]
        assert mine == sorted(mine)
        told = [record for record in caplog.records if "cannot be read and are dead letters" in record.message]
        assert len(told) == len(wrong)

    @pytest.mark.parametrize("codec", [None, "gzip"])
    def test_a_record_that_is_odd_in_itself(self, broker: Cluster, topic: Topics, codec: str | None) -> None:
        """The name of a header that is not UTF-8 costs no record, in whatever batch."""
        name = topic()

        class Bytes(str):
            def encode(self, *_: object) -> bytes:
                return b"\xff"

        produce(
            broker.bootstrap,
            name,
            rows(20),
            headers=lambda number: [(Bytes("\udcff"), b"v")] if number in (5, 13) else [],
            compression_type=codec,
        )
        with source_of(broker.bootstrap, name, include=["headers"]) as source:
            source.open()
            records = drain(source, 20)
        assert [record.x for record in records] == [
            {"n": n, "kafka.header.\\xff": "v"} if n in (5, 13) else {"n": n} for n in range(20)
        ]
