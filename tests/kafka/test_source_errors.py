"""What is wrong is said in one sentence, with what to do, and ends the daemon with status 1."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaConsumer

from streamkernel.connectors.kafka.base.client import Unreachable, connect
from streamkernel.connectors.kafka.base.options import client_settings
from tests.daemon.conftest import Home, Launcher
from tests.kafka.broker import Broker
from tests.kafka.learning import section
from tests.kafka.listeners import ADMIN, login
from tests.kafka.producing import produce

Topics = Callable[..., str]
OTHER_AUTHORITY = str(Path(__file__).parents[1] / "daemon" / "tls" / "certificate.pem")


def source(servers: str, topic: str, **settings: Any) -> dict[str, Any]:
    return section(servers, topic, target="y", **settings)


@pytest.fixture
def filled(local_broker: Broker, topic: Topics) -> str:
    name = topic()
    produce(local_broker.bootstrap, name, [{"n": 1, "y": "a"}] * 10)
    return name


WRONG: dict[str, tuple[Callable[[Broker, str], dict[str, Any]], str]] = {
    "unknown topic": (
        lambda broker, _: source(broker.bootstrap, "nowhere"),
        "the cluster has no such topic: check the name, or create it first",
    ),
    "unknown partition": (
        lambda broker, topic: source(broker.bootstrap, topic, partitions=[1]),
        "the topic has no partition 1, only 0 to 0: check partitions",
    ),
    "name that cannot be resolved": (
        lambda _, topic: source("no-such-broker.invalid:9092", topic),
        "the name cannot be resolved: check bootstrap_servers",
    ),
    "wrong password": (
        lambda broker, topic: source(broker.sasl, topic, options=login(("admin", "wrong-secret"))),
        "the broker refuses the credentials (",
    ),
    "wrong password, scrambled": (
        lambda broker, topic: source(broker.sasl, topic, options=login(("admin", "wrong-secret"), "SCRAM-SHA-256")),
        "check sasl_plain_username, sasl_plain_password and sasl_mechanism under options",
    ),
    "mechanism the broker has not": (
        lambda broker, topic: source(broker.sasl, topic, options=login(ADMIN, "SCRAM-SHA-512")),
        "sasl_mechanism",
    ),
    "not authorized": (
        lambda broker, topic: source(broker.sasl, topic, options=login()),
        "the user guest is not authorized to read the topic: grant it Read and Describe, or check sasl_plain_username",
    ),
    "no credentials": (
        lambda broker, topic: source(broker.sasl, topic),
        "the broker ends the connection at the first request, probably because it requires a login: check "
        "security_protocol and sasl_mechanism under options",
    ),
    "credentials nobody asked for": (
        lambda broker, topic: source(broker.bootstrap, topic, options=login(ADMIN)),
        "the broker does not accept the SASL mechanism PLAIN here: check sasl_mechanism and security_protocol",
    ),
    "no TLS": (
        lambda broker, topic: source(broker.tls, topic),
        "the broker speaks TLS here: set security_protocol under options to SSL or SASL_SSL",
    ),
    "TLS nobody speaks": (
        lambda broker, topic: source(broker.bootstrap, topic, options={"security_protocol": "SSL"}),
        "the broker does not speak TLS here: set security_protocol to PLAINTEXT or SASL_PLAINTEXT",
    ),
    "certificate of somebody else": (
        lambda broker, topic: source(
            broker.tls, topic, options={"security_protocol": "SSL", "ssl_cafile": OTHER_AUTHORITY}
        ),
        "the certificate of the broker is not trusted (",
    ),
    "certificate of another name": (
        lambda broker, topic: source(
            broker.tls.replace("127.0.0.1", "localhost"),
            topic,
            options={"security_protocol": "SSL", "ssl_cafile": str(broker.ca)},
        ),
        "check ssl_cafile under options, and the name in bootstrap_servers",
    ),
    "authority that is not there": (
        lambda broker, topic: source(
            broker.tls, topic, options={"security_protocol": "SSL", "ssl_cafile": "/nowhere.pem"}
        ),
        "options.ssl_cafile: /nowhere.pem: cannot be read: No such file or directory",
    ),
    "options that do not fit together": (
        lambda broker, topic: source(
            broker.bootstrap, topic, options={"fetch_max_wait_ms": 5000, "request_timeout_ms": 4000}
        ),
        "options: connections_max_idle_ms (540000) must be larger than request_timeout_ms (4000) which must be larger",
    ),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_cannot_be_ends_at_once_and_says_why(
    local_broker: Broker, filled: str, home: Home, launcher: Launcher, wrong: str
) -> None:
    make, message = WRONG[wrong]
    settings = make(local_broker, filled)
    home.configure(source=settings, log={"level": "error"})
    place = f"kafka topic {settings['topic']} at {settings['bootstrap_servers']}: "
    ended = launcher.call(home, "run", "config.yaml")
    assert ended.returncode == 1
    (line,) = ended.stderr.splitlines()
    assert place in line
    assert message in line
    checked = launcher.call(home, "check", "config.yaml")
    assert checked.returncode == 1
    (line,) = checked.stderr.splitlines()
    assert line.startswith(f"error: {place}")
    assert message in line
    for text in (ended.stderr, checked.stderr, checked.stdout):
        assert "secret" not in text


@pytest.mark.parametrize("way", ["plain", "scrambled", "tls"])
def test_check_finds_nothing_wrong_with_what_is_right(
    local_broker: Broker, filled: str, home: Home, launcher: Launcher, way: str
) -> None:
    servers, options = {
        "plain": (local_broker.sasl, login(ADMIN)),
        "scrambled": (local_broker.sasl, login(ADMIN, "SCRAM-SHA-256")),
        "tls": (local_broker.tls, {"security_protocol": "SSL", "ssl_cafile": str(local_broker.ca)}),
    }[way]
    home.configure(source=source(servers, filled, options=options))
    checked = launcher.call(home, "check", "config.yaml")
    assert (checked.returncode, checked.stderr) == (0, "")
    assert f"source: kafka topic {filled} at {servers}\n" in checked.stdout


def test_check_leaves_the_log_of_the_order_alone(
    local_broker: Broker, topic: Topics, home: Home, launcher: Launcher
) -> None:
    name = topic(partitions=2)
    produce(local_broker.bootstrap, name, [{"n": 1, "y": "a"}] * 10)
    log = home.folder / "out/state/order.log"
    log.parent.mkdir(parents=True)
    log.write_text("somebody's")
    home.configure(source=source(local_broker.bootstrap, name, order="logged"))
    assert launcher.call(home, "check", "config.yaml").returncode == 0
    assert log.read_text() == "somebody's"


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
@pytest.mark.parametrize("password", [ADMIN[1], "wrong-secret"], ids=["right", "wrong"])
def test_no_line_shows_a_password(
    local_broker: Broker, filled: str, home: Home, launcher: Launcher, mechanism: str, password: str
) -> None:
    """Neither at level debug, where the client prints its requests, nor in a checkpoint."""
    options = login(("admin", "${PASSWORD}"), mechanism)
    home.configure(source=source(local_broker.sasl, filled, options=options), log={"level": "debug"})
    ended = launcher.call(home, "run", "config.yaml", "--max-records", "10", PASSWORD=password)
    assert ended.returncode == (0 if password == ADMIN[1] else 1)
    assert "Attempting bootstrap" in ended.stderr  # the client's own lines are there
    written = [path.read_bytes() for path in home.folder.rglob("*") if path.is_file()]
    for text in (ended.stdout.encode(), ended.stderr.encode(), *written):
        assert password.encode() not in text


@pytest.fixture
def mute() -> Iterator[str]:
    """An address at which connections are taken up and nobody ever says a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


def test_somebody_who_says_nothing_is_waited_for(mute: str, home: Home, launcher: Launcher) -> None:
    home.configure(source=source(mute, "t"))
    checked = launcher.call(home, "check", "config.yaml")
    assert checked.returncode == 1
    assert f"source: kafka topic t at {mute}: no broker answers (" in checked.stderr


@pytest.fixture
def stopping() -> Iterator[Callable[[str], str]]:
    """Make an address before one of the broker's: one connection is answered once, then all are ended at once.

    So does a device in front of a broker that is stopping.
    """
    with contextlib.ExitStack() as stack:

        def serve(server: socket.socket, behind: str) -> None:
            host, _, port = behind.partition(":")
            with contextlib.suppress(OSError):
                client, _ = server.accept()
                with client, socket.create_connection((host, int(port))) as broker:
                    broker.sendall(client.recv(2**16))
                    client.sendall(broker.recv(2**16))
                while True:
                    client, _ = server.accept()
                    with client:
                        client.recv(2**16)

        def make(behind: str) -> str:
            server = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
            thread = threading.Thread(target=serve, args=(server, behind))
            stack.callback(thread.join)
            stack.callback(server.shutdown, socket.SHUT_RDWR)
            thread.start()
            return f"127.0.0.1:{server.getsockname()[1]}"

        yield make


@pytest.mark.parametrize("secure", [False, True])
def test_a_broker_that_is_stopping_is_waited_for(
    local_broker: Broker, stopping: Callable[[str], str], secure: bool
) -> None:
    """Its ending of connections is not taken for a word on credentials."""
    options = login(ADMIN) if secure else {}
    address = stopping(local_broker.sasl if secure else local_broker.bootstrap)
    with pytest.raises(Unreachable):
        connect(KafkaConsumer, {**client_settings(address, options), "enable_auto_commit": False})
