"""The broker of the tests is a real one: it keeps what it was given, dies when it is told to, and knows who is who."""

from __future__ import annotations

import os
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaAdminClient
from kafka.errors import (
    CorruptRecordError,
    KafkaError,
    KafkaTimeoutError,
    SaslAuthenticationFailedError,
    TopicAuthorizationFailedError,
)

from tests.kafka import conftest
from tests.kafka.broker import Broker, BrokerError
from tests.kafka.cluster import Cluster
from tests.kafka.damage import corrupt_batch
from tests.kafka.distribution import Distribution, UnavailableError, distribution
from tests.kafka.listeners import ADMIN, GUEST
from tests.kafka.producing import consume, produce

_ROOT = Path(__file__).parents[2]
_OTHER_AUTHORITY = _ROOT / "tests/daemon/tls/certificate.pem"

ROWS = [{"a": number, "b": f"é{number}"} for number in range(1000)]


def login(user: tuple[str, str], mechanism: str) -> dict[str, Any]:
    return {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": mechanism,
        "sasl_plain_username": user[0],
        "sasl_plain_password": user[1],
    }


class TestData:
    def test_a_thousand_records_with_all_they_carry(self, broker: Cluster, topic: Callable[..., str]) -> None:
        name = topic(partitions=3)
        produce(
            broker.bootstrap,
            name,
            ROWS,
            partition=lambda number: number % 3,
            keys=lambda number: b"%d" % number,
            headers=lambda number: [("n", b"%d" % number), ("n", b"again")],
            timestamps=lambda number: 1_000_000 + number,
        )
        assert broker.end_offsets(name) == {0: 334, 1: 333, 2: 333}
        read = consume(broker.bootstrap, name)
        assert [len(read[partition]) for partition in range(3)] == [334, 333, 333]
        for partition, records in read.items():
            for offset, record in enumerate(records):
                number = 3 * offset + partition
                assert record.offset == offset
                assert record.value == f'{{"a":{number},"b":"é{number}"}}'.encode()
                assert record.key == b"%d" % number
                assert record.headers == [("n", b"%d" % number), ("n", b"again")]
                assert record.timestamp == 1_000_000 + number

    def test_bytes_and_tombstones(self, broker: Cluster, topic: Callable[..., str]) -> None:
        name = topic()
        produce(broker.bootstrap, name, [b"\xff", None], keys=lambda number: b"%d" % number, compression_type="gzip")
        assert [record.value for record in consume(broker.bootstrap, name)[0]] == [b"\xff", None]

    def test_what_the_broker_refuses_raises(self, broker: Cluster, topic: Callable[..., str]) -> None:
        name = topic(max_message_bytes=1000)
        with pytest.raises(KafkaError, match="MessageSizeTooLarge"):
            produce(broker.bootstrap, name, [b"x" * 2000])

    def test_transactions(self, broker: Cluster, topic: Callable[..., str]) -> None:
        name = topic()
        for first, abort in ((0, False), (10, True), (20, False)):
            produce(broker.bootstrap, name, ROWS[first : first + 10], transactional_id=name, abort=abort)
        markers = {10, 21, 32}
        aborted = set(range(11, 21))
        offsets = [record.offset for record in consume(broker.bootstrap, name)[0]]
        assert offsets == sorted(set(range(33)) - markers - aborted)
        everything = consume(broker.bootstrap, name, isolation_level="read_uncommitted")[0]
        assert [record.offset for record in everything] == sorted(set(range(33)) - markers)

    def test_records_deleted_and_topic_made_anew(self, broker: Cluster, topic: Callable[..., str]) -> None:
        name = topic()
        produce(broker.bootstrap, name, ROWS[:10])
        broker.delete_records(name, {0: 4})
        assert broker.first_offsets(name) == {0: 4}
        assert [record.offset for record in consume(broker.bootstrap, name)[0]] == list(range(4, 10))
        broker.delete_topic(name)
        broker.create_topic(name, 2)
        assert broker.end_offsets(name) == {0: 0, 1: 0}

    def test_a_corrupt_batch(self, local_broker: Broker, topic: Callable[..., str]) -> None:
        name = topic()
        for first in (0, 5, 10):
            produce(local_broker.bootstrap, name, ROWS[first : first + 5])
        assert corrupt_batch(local_broker.log_directory(name, 0), 7) == range(5, 10)
        with pytest.raises(CorruptRecordError):
            consume(local_broker.bootstrap, name)
        with pytest.raises(LookupError, match="offset 15"):
            corrupt_batch(local_broker.log_directory(name, 0), 15)


class TestLife:
    def test_killed_and_restarted_it_has_its_data(self, own_broker: Broker, topic: Callable[..., str]) -> None:
        name = topic(on=own_broker)
        produce(own_broker.bootstrap, name, ROWS)
        before = own_broker.pid
        own_broker.kill()
        assert not own_broker.alive
        # The guard tells by a pipe, not by the thread that started it, whether somebody wants the broker.
        thread = threading.Thread(target=own_broker.start)
        thread.start()
        thread.join()
        assert own_broker.alive
        assert own_broker.pid != before
        produce(own_broker.bootstrap, name, ROWS)
        own_broker.restart()
        assert [record.offset for record in consume(own_broker.bootstrap, name)[0]] == list(range(2000))

    def test_paused_it_does_not_answer(self, own_broker: Broker, topic: Callable[..., str]) -> None:
        name = topic(on=own_broker)
        own_broker.pause()
        with pytest.raises(KafkaTimeoutError):
            KafkaAdminClient(bootstrap_servers=own_broker.bootstrap, bootstrap_timeout_ms=500)
        assert own_broker.alive
        own_broker.resume()
        produce(own_broker.bootstrap, name, ROWS[:1])
        own_broker.pause()
        own_broker.stop()
        assert not own_broker.alive

    def test_a_broker_that_does_not_start(self, installed: Distribution, tmp_path: Path) -> None:
        refused = Broker(tmp_path / "broker", installed=installed, node_id=2)
        with pytest.raises(BrokerError, match="ended while it started"):
            refused.start()
        assert "node" in refused.log
        refused.close()
        assert not (tmp_path / "broker").exists()
        nowhere = installed._replace(java=tmp_path / "nowhere")
        with pytest.raises(BrokerError, match=r"could not be started(?s:.*)nowhere"), Broker(installed=nowhere):
            pass

    @pytest.mark.usefixtures("installed")
    def test_it_dies_with_its_owner(self, tmp_path: Path) -> None:
        program = (
            "import pathlib, sys; from tests.kafka.broker import Broker; "
            "broker = Broker(pathlib.Path(sys.argv[1])); broker.start(); print(broker.pid, flush=True); input()"
        )
        owner = subprocess.Popen(
            [sys.executable, "-c", program, tmp_path / "broker"],
            cwd=_ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert owner.stdout is not None
        pid = int(owner.stdout.readline())
        os.kill(pid, 0)
        owner.send_signal(signal.SIGKILL)
        owner.communicate()
        for _ in range(3000):
            try:
                os.kill(pid, 0)
            except ProcessLookupError:
                return
            time.sleep(0.01)
        raise AssertionError("the broker outlives its owner")


class TestDoors:
    @pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
    def test_sasl(self, local_broker: Broker, topic: Callable[..., str], mechanism: str) -> None:
        name = topic()
        produce(local_broker.sasl, name, ROWS[:10], **login(ADMIN, mechanism))
        assert len(consume(local_broker.sasl, name, **login(ADMIN, mechanism))[0]) == 10
        # kafka-python 3.0 mostly takes the broker's refusal for a lost connection, and tries again.
        with pytest.raises((KafkaTimeoutError, SaslAuthenticationFailedError)):
            consume(local_broker.sasl, name, bootstrap_timeout_ms=1000, **login((ADMIN[0], "wrong"), mechanism))

    def test_rights(self, local_broker: Broker, topic: Callable[..., str]) -> None:
        name = topic()
        guest = login(GUEST, "PLAIN")
        with pytest.raises(TopicAuthorizationFailedError):
            produce(local_broker.sasl, name, ROWS[:1], enable_idempotence=False, **guest)
        local_broker.allow(GUEST[0], "read", topic=name)
        assert consume(local_broker.sasl, name, **guest) == {0: []}
        with pytest.raises(TopicAuthorizationFailedError):
            produce(local_broker.sasl, name, ROWS[:1], enable_idempotence=False, **guest)
        local_broker.allow(GUEST[0], topic=name)
        produce(local_broker.sasl, name, ROWS[:1], **guest)
        assert len(consume(local_broker.sasl, name, **guest)[0]) == 1

    def test_tls(self, local_broker: Broker, topic: Callable[..., str]) -> None:
        name = topic()
        right: dict[str, Any] = {"security_protocol": "SSL", "ssl_cafile": str(local_broker.ca)}
        produce(local_broker.tls, name, ROWS[:10], **right)
        assert len(consume(local_broker.tls, name, **right)[0]) == 10
        with pytest.raises(KafkaTimeoutError):
            consume(local_broker.tls, name, bootstrap_timeout_ms=500)

    def test_the_certificate_is_for_one_address_by_one_authority(self, local_broker: Broker) -> None:
        def shake_hands(authority: Path, name: str) -> None:
            context = ssl.create_default_context(cafile=authority)
            context.verify_flags |= ssl.VERIFY_X509_STRICT  # the default from Python 3.13 on
            host, port = local_broker.tls.split(":")
            with socket.create_connection((host, int(port))) as plain:
                context.wrap_socket(plain, server_hostname=name).close()

        shake_hands(local_broker.ca, "127.0.0.1")
        with pytest.raises(ssl.SSLCertVerificationError, match="localhost"):
            shake_hands(local_broker.ca, "localhost")
        with pytest.raises(ssl.SSLCertVerificationError):
            shake_hands(_OTHER_AUTHORITY, "127.0.0.1")


class TestWithout:
    @pytest.mark.usefixtures("processes")
    def test_java(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.delenv("JAVA_HOME", raising=False)
        monkeypatch.setenv("PATH", str(tmp_path))
        with pytest.raises(UnavailableError, match="needs Java 17 or newer, and there is no java"):
            distribution.__wrapped__()
        old = tmp_path / "java"
        old.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\"' >&2\n")
        old.chmod(0o755)
        with pytest.raises(UnavailableError, match=r"needs Java 17 or newer, and .*11\.0\.2"):
            distribution.__wrapped__()

    @pytest.mark.usefixtures("processes")
    def test_maven(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.delenv("JAVA_HOME", raising=False)
        monkeypatch.setenv("PATH", str(tmp_path))
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        for name, does in (("java", "echo 'openjdk version \"21.0.1\"' >&2"), ("mvn", "echo no network; exit 1")):
            with pytest.raises(UnavailableError, match="there is no"):
                distribution.__wrapped__()
            (tmp_path / name).write_text(f"#!/bin/sh\n{does}\n")
            (tmp_path / name).chmod(0o755)
        with pytest.raises(UnavailableError, match="by Maven failed: no network"):
            distribution.__wrapped__()

    @pytest.mark.parametrize(("ci", "outcome"), [("", pytest.skip.Exception), ("true", pytest.fail.Exception)])
    def test_tests_skip_or_fail(self, monkeypatch: pytest.MonkeyPatch, ci: str, outcome: type[BaseException]) -> None:
        def missing() -> Distribution:
            raise UnavailableError("no jars")

        monkeypatch.setattr(conftest, "distribution", missing)
        monkeypatch.setenv("CI", ci)
        with pytest.raises(outcome, match="no jars"):
            conftest.find_installed()
