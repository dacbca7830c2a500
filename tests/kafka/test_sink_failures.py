"""The sink where brokers fail or refuse: what waits, what is said, and that no line is lost or doubled."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from kafka.errors import TransactionalIdNotFoundError
from kafka.protocol.producer import EndTxnRequest

from connectors import SinkError
from connectors.kafka.writing import delivery
from connectors.kafka.writing import sink as module
from connectors.kafka.writing.sink import KafkaSink
from connectors.ports import OutageError
from streamkernel.daemon.stream.lines import dead_letter, shortened
from tests.chaos.proxy import Proxy
from tests.daemon.conftest import Home, Launcher
from tests.kafka.broker import Broker
from tests.kafka.cluster import Cluster
from tests.kafka.distribution import Distribution
from tests.kafka.listeners import GUEST, address, free_listeners
from tests.kafka.producing import consume, produce
from tests.kafka.sinking import at, opened, put, standing

MakeTopic = Callable[..., str]
BOTH = pytest.mark.parametrize("transactional_id", [None, "me"], ids=["at once", "transactions"])


class Writing:
    """A thread that writes lines and flushes now and then, as a daemon does, until it is told to end."""

    def __init__(self, sink: KafkaSink) -> None:
        self._sink = sink
        self._ending = threading.Event()
        self.written = 0
        self.outages = 0
        self.failure: Exception | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            while not self._ending.is_set():
                put(self._sink, (at(offset) for offset in range(self.written, self.written + 20)))
                self.written += 20
                if self.written % 200 == 0:
                    try:
                        self._sink.flush()
                    except OutageError:
                        self.outages += 1
                time.sleep(0.01)
        except Exception as error:
            self.failure = error

    def end(self) -> None:
        """Stop, and wait until every line is there."""
        self._ending.set()
        self._thread.join()
        assert self.failure is None, self.failure
        finish(self._sink)


def finish(sink: KafkaSink) -> None:
    """Flush, for as long as it takes."""
    deadline = time.monotonic() + 60
    while True:
        try:
            sink.flush()
        except OutageError:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        else:
            return


@pytest.fixture
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery, "_SILENT_SECONDS", 1.0)
    monkeypatch.setattr(module, "_PATIENCE_SECONDS", 0.5)
    monkeypatch.setattr(module, "_OPEN_SECONDS", 1.0)


@BOTH
@pytest.mark.usefixtures("_impatient")
class TestOutages:
    def test_a_broker_that_is_killed_and_comes_again(
        self,
        own_broker: Broker,
        topic: MakeTopic,
        transactional_id: str | None,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        caplog.set_level(logging.INFO, "connectors")
        name = topic(2, on=own_broker)
        with opened(own_broker, name, transactional_id=transactional_id) as sink:
            writing = Writing(sink)
            time.sleep(0.5)
            own_broker.kill()
            time.sleep(1.5)
            assert sink.waiting > 200
            own_broker.start()
            time.sleep(1)
            own_broker.kill()  # and once more, with no time to notice
            own_broker.start()
            time.sleep(1)
            writing.end()
        assert writing.outages >= 1
        assert standing(own_broker, name) == {0: [*range(writing.written)]}
        ours = [record for record in caplog.records if record.name.startswith("connectors")]
        told = [record.levelname for record in ours]
        assert told in (["WARNING", "INFO"], 2 * ["WARNING", "INFO"]), caplog.messages  # the second may be too short
        assert "connection refused): lines wait in memory until it is" in ours[0].getMessage()

    @pytest.mark.parametrize("seconds", [1.5, pytest.param(33, marks=pytest.mark.long)])
    def test_a_broker_that_stands_still(
        self, own_broker: Broker, topic: MakeTopic, transactional_id: str | None, seconds: float
    ) -> None:
        name = topic(2, on=own_broker)
        with opened(own_broker, name, transactional_id=transactional_id) as sink:
            writing = Writing(sink)
            time.sleep(0.5)
            own_broker.pause()
            time.sleep(seconds)
            assert sink.waiting > 20
            own_broker.resume()
            time.sleep(1)
            writing.end()
        assert writing.outages >= 1
        assert standing(own_broker, name) == {0: [*range(writing.written)]}

    def test_a_broker_that_is_not_there_at_the_start(
        self, own_broker: Broker, topic: MakeTopic, transactional_id: str | None
    ) -> None:
        name = topic(on=own_broker)
        own_broker.stop()
        with opened(own_broker, name, transactional_id=transactional_id) as sink:
            put(sink, map(at, range(30)))
            with pytest.raises(OutageError, match="30 lines wait"):
                sink.flush()
            own_broker.start()
            finish(sink)
        assert standing(own_broker, name) == {0: [*range(30)]}

    def test_a_broker_that_is_away_when_it_is_closed(
        self, own_broker: Broker, topic: MakeTopic, transactional_id: str | None
    ) -> None:
        name = topic(on=own_broker)
        sink = opened(own_broker, name, transactional_id=transactional_id)
        put(sink, [at(0)])
        mark = sink.flush()
        own_broker.pause()
        put(sink, map(at, range(1, 10)))
        begin = time.monotonic()
        with pytest.raises(OutageError):
            sink.flush()
        with pytest.raises(OutageError):
            sink.close()
        assert time.monotonic() - begin < 10
        own_broker.resume()
        with opened(own_broker, name, mark, transactional_id=transactional_id) as again:
            put(again, map(at, range(1, 15)))
            finish(again)
        assert standing(own_broker, name) == {0: [*range(15)]}


@pytest.mark.usefixtures("_impatient")
class TestTransactionsInOutages:
    """Whatever step of a transaction meets with a broker that is away, it is taken when the broker is there again."""

    @pytest.fixture
    def network(self) -> Iterator[Proxy]:
        with Proxy() as proxy:
            yield proxy

    @pytest.fixture
    def sink(self, network: Proxy, tmp_path: Path, installed: Distribution) -> Iterator[tuple[KafkaSink, Broker]]:
        with Broker(tmp_path / "broker", installed=installed, detour=network.port) as broker:
            network.target = broker.behind
            broker.create_topic("out", 2)
            sink = KafkaSink("out", address(network.port), transactional_id="me")
            sink.open()
            put(sink, map(at, range(5)))
            while sink.waiting:
                sink.write((), ())
                time.sleep(0.01)
            yield sink, broker

    @pytest.mark.parametrize("step", ["a partition joins", "the end"])
    def test_connections_are_refused(self, sink: tuple[KafkaSink, Broker], network: Proxy, step: str) -> None:
        writing, broker = sink
        network.refuse()
        if step == "a partition joins":
            put(writing, [at(0, 1)])
        for _ in range(3):
            with pytest.raises(OutageError, match="connection refused"):
                writing.flush()
        network.flow()
        finish(writing)
        writing.close()
        assert standing(broker, "out") == {0: [*range(5)], **({1: [0]} if step == "a partition joins" else {})}


@BOTH
class TestTopics:
    def test_one_that_is_not_there(self, broker: Cluster, transactional_id: str | None) -> None:
        with pytest.raises(SinkError, match=r"^kafka topic nowhere at .*: the cluster has no such topic: look at"):
            opened(broker, "nowhere", transactional_id=transactional_id)

    def test_one_that_is_deleted(self, broker: Cluster, topic: MakeTopic, transactional_id: str | None) -> None:
        name = topic()
        more = {"transactional_id": transactional_id and name, "options": {"metadata_max_age_ms": 200}}
        sink = opened(broker, name, **more)
        put(sink, [at(0)])
        sink.flush()
        broker.delete_topic(name)
        with pytest.raises(SinkError, match=f"kafka topic {name} at .*: the topic was deleted while it was written"):
            write_on(sink)
        sink.close()

    def test_one_that_is_made_anew(
        self,
        broker: Cluster,
        topic: MakeTopic,
        transactional_id: str | None,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        name = topic()
        more = {"transactional_id": transactional_id and name, "options": {"metadata_max_age_ms": 200}}
        sink = opened(broker, name, **more)
        put(sink, map(at, range(5)))
        sink.flush()
        broker.delete_topic(name)
        broker.create_topic(name)
        if transactional_id is None:
            deadline = time.monotonic() + 30
            while "was deleted and made anew" not in caplog.text:
                assert time.monotonic() < deadline
                sink.write((), ())
                time.sleep(0.05)
            put(sink, map(at, range(5, 9)))
            finish(sink)
            assert standing(broker, name) == {0: [5, 6, 7, 8]}
        else:
            with pytest.raises(SinkError, match="was deleted and made anew while it was written; start again"):
                write_on(sink)
        sink.close()


def write_on(sink: KafkaSink) -> None:
    deadline = time.monotonic() + 30
    offset = 100
    while time.monotonic() < deadline:
        put(sink, [at(offset)])
        offset += 1
        time.sleep(0.05)


class TestTooLarge:
    @BOTH
    def test_the_record_and_the_limit_are_told(
        self, broker: Cluster, topic: MakeTopic, transactional_id: str | None
    ) -> None:
        name = topic(max_message_bytes=2000)
        sink = opened(broker, name, transactional_id=transactional_id and name)
        put(sink, map(at, range(5)))
        mark = sink.flush()
        sink.write([{"text": "a"}, {"text": 5000 * "x"}, {"text": "b"}], [at(5), at(6), at(7)])
        with pytest.raises(SinkError) as caught:
            sink.flush()
        assert str(caught.value) == (
            f"kafka topic {name} at {broker.bootstrap}: the line of the record at partition 0, offset 6 takes 5,011 "
            "bytes, more than the 2,000 of its max.message.bytes (or max_request_size under options): raise that, "
            "or lower limits.max_record_bytes"
        )
        sink.close()
        with broker.admin() as admin:
            from kafka.admin import ConfigResource, ConfigResourceType

            admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, name, {"max.message.bytes": "20000"})])
        with opened(broker, name, mark, transactional_id=transactional_id and name) as again:
            again.write([{"text": "a"}, {"text": 5000 * "x"}, {"text": "b"}], [at(5), at(6), at(7)])
        assert standing(broker, name) == {0: [*range(8)]}

    def test_a_limit_of_the_clients_own(self, broker: Cluster, topic: MakeTopic) -> None:
        name = topic()
        sink = opened(broker, name, options={"max_request_size": 3000})
        with pytest.raises(
            SinkError, match=r"at partition 4, offset 6 takes 5,011 bytes, .*max_request_size under opt"
        ):
            sink.write([{"text": 5000 * "x"}], [at(6, 4)])
        sink.close()

    def test_a_dead_letter_is_shortened(self, broker: Cluster, topic: MakeTopic) -> None:
        name = topic(max_message_bytes=9000)
        with opened(broker, name, shorten=shortened) as sink:
            raws = [b"short", 20_000 * b"\xff", 20_000 * b"\n"]
            sink.write([dead_letter(at(n), "not_json", "why", raw) for n, raw in enumerate(raws)], map_at(range(3)))
        values = [record.value for record in consume(broker.bootstrap, name)[0]]
        assert [b"raw holds its first" in value for value in values] == [False, True, True]
        assert all(len(value) < 9000 for value in values)


def map_at(offsets: range) -> list[Any]:
    return [at(offset) for offset in offsets]


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
        sink._delivery.settle(10.0)
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
        sink._delivery.settle(10.0)
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

    def test_a_transaction_the_broker_has_ended(self, tmp_path: Path) -> None:
        interval = {"transaction_abort_timed_out_transaction_cleanup_interval_ms": 200}
        with Broker(tmp_path / "broker", **interval) as own:
            own.create_topic("out")
            sink = opened(own, "out", transactional_id="me", options={"transaction_timeout_ms": 1000})
            mark = sink.flush()
            put(sink, [at(0)])
            time.sleep(2)
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


class TestRights:
    LOGIN = {  # noqa: RUF012
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "PLAIN",
        "sasl_plain_username": GUEST[0],
        "sasl_plain_password": GUEST[1],
    }

    def sink(self, broker: Broker, name: str, **more: Any) -> KafkaSink:
        return KafkaSink(name, broker.sasl, options=self.LOGIN, **more)

    def test_none_at_all(self, local_broker: Broker, topic: MakeTopic) -> None:
        name = topic()
        with pytest.raises(SinkError, match="the user guest is not authorised to read the topic"):
            self.sink(local_broker, name).open()

    def test_only_to_read(self, local_broker: Broker, topic: MakeTopic) -> None:
        name = topic()
        local_broker.allow(GUEST[0], "read", "describe", topic=name)
        with pytest.raises(SinkError, match="not authorised to write to the topic: grant Write on it"):
            self.sink(local_broker, name).open()
        with pytest.raises(SinkError, match="not authorised to write to the topic: grant Write on it"):
            self.sink(local_broker, name).probe()

    def test_not_to_the_transactional_id(self, local_broker: Broker, topic: MakeTopic) -> None:
        name = topic()
        local_broker.allow(GUEST[0], topic=name)
        with pytest.raises(
            SinkError, match=f"not authorised to use the transactional_id {name}: grant Write and Describe"
        ):
            self.sink(local_broker, name, transactional_id=name).open()

    @pytest.mark.parametrize("transactional", [False, True])
    def test_what_is_needed_is_enough(self, local_broker: Broker, topic: MakeTopic, transactional: bool) -> None:
        name = topic()
        local_broker.allow(GUEST[0], "read", "write", "describe", topic=name)
        more = {"transactional_id": name} if transactional else {}
        if transactional:
            local_broker.allow(GUEST[0], "write", "describe", transactional_id=name)
        sink = self.sink(local_broker, name, **more)
        sink.open()
        put(sink, map(at, range(3)))
        mark = sink.flush()
        put(sink, map(at, range(3, 6)))
        sink.close()
        sink = self.sink(local_broker, name, **more)
        sink.open(mark)
        put(sink, map(at, range(3, 9)))
        sink.close()
        assert standing(local_broker, name) == {0: [*range(9)]}

    def test_wrong_credentials(self, local_broker: Broker, topic: MakeTopic) -> None:
        options = {**self.LOGIN, "sasl_plain_password": "a secret"}
        sink = KafkaSink(topic(), local_broker.sasl, options=options)
        with pytest.raises(SinkError, match="credentials") as caught:
            sink.open()
        assert "a secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("state", "transactional_id"),
    [
        ("dead", None),
        pytest.param("stopped", "me", marks=pytest.mark.long),
        pytest.param("dead", "me", marks=pytest.mark.long),
        pytest.param("stopped", None, marks=pytest.mark.long),
    ],
)
def test_sigterm_ends_a_daemon_whose_broker_is_away(
    own_broker: Broker,
    topic: MakeTopic,
    home: Home,
    launcher: Launcher,
    transactional_id: str | None,
    state: str,
) -> None:
    source, name = topic(on=own_broker), topic(on=own_broker)
    produce(own_broker.bootstrap, source, [{"a": number % 7, "y": number % 2 == 0} for number in range(20_000)])
    servers = {"bootstrap_servers": own_broker.bootstrap}
    home.configure(
        source={"kind": "kafka", "topic": source, "target": "y", "target_type": "bool", **servers},
        model=["river.linear_model.LogisticRegression"],
        predictions={"kind": "kafka", "topic": name, "transactional_id": transactional_id, **servers},
        dead_letters=None,
    )
    running = launcher.start(home, "run", "config.yaml")
    running.wait_for("records: progressive loss")
    (own_broker.kill if state == "dead" else own_broker.pause)()
    time.sleep(1)
    begin = time.monotonic()
    os.kill(running.pid, signal.SIGTERM)
    ended = running.wait()
    assert time.monotonic() - begin < 10
    assert ended.returncode in (0, 1)
    assert "is saved: a restart goes on from there" in ended.stderr
    if state == "dead":
        own_broker.start()
    own_broker.resume()
    consumed = home.header()["account"]["consumed"]
    ended = launcher.call(home, "run", "config.yaml", "--max-records", str(20_000 - consumed))
    assert ended.returncode == 0, ended.stderr
    assert standing(own_broker, name) == {0: [*range(20_000)]}


def test_sigterm_ends_a_daemon_that_has_found_no_broker_yet(home: Home, launcher: Launcher) -> None:
    servers = {"bootstrap_servers": address(free_listeners().plaintext)}
    home.configure(
        source={"kind": "kafka", "topic": "clicks", "target": "y", **servers},
        model=["river.linear_model.LogisticRegression"],
        predictions={"kind": "kafka", "topic": "predictions", **servers},
        dead_letters={"kind": "kafka", "topic": "dead", **servers},
    )
    running = launcher.start(home, "run", "config.yaml")
    running.wait_for("clicks at .*: no broker answers")
    running.signal(signal.SIGTERM)
    kill = threading.Timer(10, running.signal, [signal.SIGKILL])
    kill.start()
    ended = running.wait()
    kill.cancel()
    assert ended.returncode == 0, f"it had to be killed:\n{ended.stderr}"
    assert ended.stderr.count("SIGTERM came before anything was begun") == 1
    assert "Traceback" not in ended.stderr
    assert not [*(home.folder / "out/state").glob("checkpoint-*")]
