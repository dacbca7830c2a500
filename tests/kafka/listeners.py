"""The broker's doors: where it listens, who may come in, and the rest of its configuration."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from tests.ports import reserved_port

ADMIN = ("admin", "admin-secret")
"""User and password of one who may do everything."""

GUEST = ("guest", "guest-secret")
"""User and password of one who may do nothing until `Cluster.allow` says so."""

STORE_PASSWORD = "changeit"


def login(user: tuple[str, str] = GUEST, mechanism: str = "PLAIN") -> dict[str, str]:
    """Return the options of a client that logs in."""
    return {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": mechanism,
        "sasl_plain_username": user[0],
        "sasl_plain_password": user[1],
    }


class Listeners(NamedTuple):
    """The ports of one broker, all on the loopback interface."""

    plaintext: int
    sasl: int
    tls: int
    controller: int
    detour: int


def free_listeners() -> Listeners:
    """Reserve the ports of a broker."""
    return Listeners(*(reserved_port() for _ in Listeners._fields))


def address(port: int) -> str:
    """What a client calls a port of the broker."""
    return f"127.0.0.1:{port}"


def server_properties(at: Listeners, data: Path, keystore: Path, detour: int | None = None) -> dict[str, str]:
    """Configure one node that is broker and controller.

    Parameters
    ----------
    at
        The ports.
    data
        The folder of the log.
    keystore
        The PKCS 12 file with the certificate of the TLS listener.
    detour
        The port of somebody who passes connections on to one more listener, which sends its clients there.

    """
    users = " ".join(f'user_{name}="{password}"' for name, password in (ADMIN, GUEST))
    login = "org.apache.kafka.common.security"
    doors = [f"PLAINTEXT://{address(at.plaintext)}", f"SASL://{address(at.sasl)}", f"TLS://{address(at.tls)}"]
    own, told = ([], []) if detour is None else ([f"DETOUR://{address(at.detour)}"], [f"DETOUR://{address(detour)}"])
    return {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@{address(at.controller)}",
        "listeners": ",".join([*doors, *own, f"CONTROLLER://{address(at.controller)}"]),
        "advertised.listeners": ",".join([*doors, *told]),
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SASL:SASL_PLAINTEXT,TLS:SSL,DETOUR:PLAINTEXT,"
        "CONTROLLER:PLAINTEXT",
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "PLAINTEXT",
        "log.dirs": str(data),
        # Who comes without a name may do everything, so only the tests of authorization need to think of it.
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": f"User:ANONYMOUS;User:{ADMIN[0]}",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
        "listener.name.sasl.plain.sasl.jaas.config": f"{login}.plain.PlainLoginModule required {users};",
        "listener.name.sasl.scram-sha-256.sasl.jaas.config": f"{login}.scram.ScramLoginModule required;",
        "listener.name.tls.ssl.keystore.location": str(keystore),
        "listener.name.tls.ssl.keystore.type": "PKCS12",
        "listener.name.tls.ssl.keystore.password": STORE_PASSWORD,
        # With one node, anything replicated three times would wait for ever.
        **dict.fromkeys(
            (
                "offsets.topic.replication.factor",
                "transaction.state.log.replication.factor",
                "transaction.state.log.min.isr",
                "share.coordinator.state.topic.replication.factor",
                "share.coordinator.state.topic.min.isr",
                # Fifty partitions each by default, all made when the first group or transaction comes.
                "offsets.topic.num.partitions",
                "transaction.state.log.num.partitions",
                "share.coordinator.state.topic.num.partitions",
            ),
            "1",
        ),
        "auto.create.topics.enable": "false",
        "group.initial.rebalance.delay.ms": "0",
        "group.min.session.timeout.ms": "500",
        # After SIGKILL the old session must expire before the node may register again.
        "broker.session.timeout.ms": "2000",
        "broker.heartbeat.interval.ms": "500",
        # Records with old time stamps must not vanish in the middle of a test; retention is up to the topic.
        "log.retention.ms": "-1",
        "log.retention.check.interval.ms": "500",
        "log.initial.task.delay.ms": "500",
        "log.cleaner.backoff.ms": "500",
        "log.cleaner.dedupe.buffer.size": str(2 << 20),
        "log.segment.delete.delay.ms": "1000",
    }
