"""The source over a real broker: whatever a topic may hold comes once, in order and at its place."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable

import pytest
from kafka.record import default_records

from streamkernel.connectors import KafkaSource, Record, SourceError
from streamkernel.connectors.kafka.reading.reader import TopicReader
from tests.kafka.broker import Broker
from tests.kafka.cluster import Cluster
from tests.kafka.listeners import login
from tests.kafka.producing import produce
from tests.kafka.reading import after, drain, places, rows, source_of, until

Topics = Callable[..., str]


class TestReading:
    def test_every_record_comes_once_at_its_place(self, broker: Cluster, topic: Topics) -> None:
        name = topic(partitions=3)
        produce(broker.bootstrap, name, rows(5000), partition=lambda number: number % 3)
        with source_of(broker.bootstrap, name, target_type="int") as source:
            source.open()
            assert sum(source.lag.values()) == 5000
            records = drain(source, 5000, most=300)
            until(lambda: source.lag == {(name, 0): 0, (name, 1): 0, (name, 2): 0})
        assert sorted(places(records)) == [(one, at) for one in range(3) for at in range([1667, 1667, 1666][one])]
        for partition in range(3):
            mine = [record for record in records if record.position.partition == partition]
            assert [record.x["n"] for record in mine] == list(range(partition, 5000, 3))
            assert all(record.next.offset == record.position.offset + 1 for record in mine)
        assert all(record.y == record.x["n"] % 2 for record in records)
        cluster, topic_name, number = records[0].position.stream.split("/")
        assert topic_name == name
        assert len(cluster) == 22
        assert str(uuid.UUID(number)) == number

    @pytest.mark.parametrize("late", [False, True], ids=["as it comes", "met before open returns"])
    def test_a_codec_whose_library_is_missing(
        self, broker: Cluster, topic: Topics, monkeypatch: pytest.MonkeyPatch, late: bool
    ) -> None:
        name = topic()
        if late:
            start = TopicReader.start

            def start_and_wait(reader: TopicReader, seconds: float) -> None:
                start(reader, seconds)
                reader._thread.join(30)
                assert reader.failure is not None

            monkeypatch.setattr(TopicReader, "start", start_and_wait)
        produce(broker.bootstrap, name, rows(10))
        produce(broker.bootstrap, name, rows(10), compression_type="gzip")
        monkeypatch.setattr(default_records.codecs, "has_gzip", lambda: False)
        with source_of(broker.bootstrap, name) as source:
            source.open()
            drain_until_it_fails(
                source,
                10,
                "partition 0, offset 10: the compression of the messages is not installed here (Libraries for "
                "gzip compression codec not found): pip install 'streamkernel[kafka-codecs]'",
            )

    def test_large_messages(self, broker: Cluster, topic: Topics) -> None:
        """Larger than what is fetched of a partition at once."""
        name = topic(max_message_bytes=5_000_000)
        produce(
            broker.bootstrap,
            name,
            [{"n": number, "long": "x" * 3_000_000} for number in range(3)],
            max_request_size=5_000_000,
        )
        with source_of(broker.bootstrap, name, max_record_bytes=4_000_000, max_string=4_000_000) as source:
            source.open()
            assert [record.x["n"] for record in drain(source, 3)] == [0, 1, 2]

    @pytest.mark.parametrize("start", ["earliest", "latest"])
    def test_partitions_that_are_added_are_read_at_once(
        self, broker: Cluster, topic: Topics, caplog: pytest.LogCaptureFixture, start: str
    ) -> None:
        caplog.set_level(logging.INFO)
        name = topic()
        produce(broker.bootstrap, name, rows(5))
        with source_of(broker.bootstrap, name, start=start, options={"metadata_max_age_ms": 200}) as source:
            source.open()
            drain(source, 5 if start == "earliest" else 0)
            with broker.admin() as admin:
                admin.create_partitions({name: 3})
            produce(broker.bootstrap, name, rows(5), partition=2)
            produce(broker.bootstrap, name, rows(5, 5), partition=0)
            assert sorted(places(drain(source, 10))) == [(0, at) for at in range(5, 10)] + [(2, at) for at in range(5)]
            assert {one: place.offset for one, place in source.starting_offsets.items()} == {
                0: 0 if start == "earliest" else 5,
                1: 0,
                2: 0,
            }
            until(lambda: source.lag == {(name, 0): 0, (name, 1): 0, (name, 2): 0})
            produce(broker.bootstrap, name, rows(5), partition=1)
            assert places(drain(source, 5)) == [(1, at) for at in range(5)]
        assert "has new partitions, which are read from their first record on: 1, 2" in caplog.text


class TestGoingOn:
    def test_retention_passed_the_place(self, broker: Cluster, topic: Topics, caplog: pytest.LogCaptureFixture) -> None:
        name = topic()
        produce(broker.bootstrap, name, rows(1000))
        with source_of(broker.bootstrap, name) as source:
            source.open()
            place = after(source.poll(10, 5.0))
        broker.delete_records(name, {0: 600})
        with (
            source_of(broker.bootstrap, name) as source,
            pytest.raises(
                SourceError,
                match=r"partition 0: offsets 10 to 599 \(590 of them\) were removed by retention before they were",
            ),
        ):
            source.open(place)
        with source_of(broker.bootstrap, name, on_gap="skip") as source:
            source.open(place)
            assert drain(source, 400)[0].position.offset == 600
        assert (
            "offsets 10 to 599 (590 of them) were removed by retention before they were read: they are" in caplog.text
        )

    @pytest.mark.parametrize("on_gap", ["stop", "skip"])
    def test_retention_passes_the_place_while_it_is_read(
        self, broker: Cluster, topic: Topics, caplog: pytest.LogCaptureFixture, on_gap: str
    ) -> None:
        name = topic()
        produce(broker.bootstrap, name, rows(12_000))
        # What is read ahead is far less than what is there.
        with source_of(broker.bootstrap, name, on_gap=on_gap, options={"max_partition_fetch_bytes": 1000}) as source:
            source.open()
            source.poll(1, 5.0)
            broker.delete_records(name, {0: 11_000})
            if on_gap == "stop":
                came = drain_until_it_fails(source, 0, "were removed by retention before they were read")
                assert came[-1].position.offset < 11_000
            else:
                records = []
                while not records or records[-1].position.offset < 11_999:
                    records += source.poll(1000, 1.0)
                offsets = [record.position.offset for record in records]
                (at,) = [index for index in range(1, len(offsets)) if offsets[index] != offsets[index - 1] + 1]
                assert offsets[at] == 11_000
                gap = f"offsets {offsets[at - 1] + 1} to 10999 ({10_999 - offsets[at - 1]:,} of them) were removed"
                assert gap in caplog.text

    def test_the_offsets_of_a_checkpoint_are_committed_for_the_tools(self, broker: Cluster, topic: Topics) -> None:
        name = topic(partitions=2)
        produce(broker.bootstrap, name, rows(50), partition=lambda number: number % 2)
        with source_of(broker.bootstrap, name, options={"group_id": name}) as source:
            source.open()
            records = drain(source, 50, most=10)
            source.commit(after(records[:30]))
        assert broker.committed(name) == {one: place.offset for one, place in after(records[:30]).items()}

    def test_a_group_that_fails_holds_nothing_up(
        self, local_broker: Broker, topic: Topics, caplog: pytest.LogCaptureFixture
    ) -> None:
        name = topic()
        produce(local_broker.bootstrap, name, rows(50))
        local_broker.allow("guest", topic=name)
        with source_of(local_broker.sasl, name, options={**login(), "group_id": "forbidden"}) as source:
            source.open()
            records = drain(source, 50)
            source.commit(after(records))
            until(lambda: "the offsets cannot be committed to the group forbidden" in caplog.text, source)
            produce(local_broker.bootstrap, name, rows(5))
            drain(source, 5)
        # Of ours: the client warns of its own slowness, as on a machine with other work.
        ours = [record for record in caplog.records if record.name.startswith("streamkernel.connectors.")]
        assert len([record for record in ours if record.levelno >= logging.WARNING]) == 1


def drain_until_it_fails(source: KafkaSource, count: int, message: str) -> list[Record]:
    """Poll until the source fails, after so many records at least."""
    records: list[Record] = []
    with pytest.raises(SourceError) as caught:  # noqa: PT012 - how long it takes is not said
        for _ in range(600):
            records += source.poll(1000, 0.1)
    assert message in str(caught.value)
    assert len(records) >= count
    return records
