"""Connections to brokers: a client of kafka-python that says why it cannot connect, and when a broker last answered.

kafka-python (3.0) tries again forever, whatever the reason, and keeps the reason to its log. A subclass of its
connection manager notes what becomes of each connection.
"""

from __future__ import annotations

import contextlib
import logging
import re
import socket
import ssl
import struct
import time
import traceback
from collections.abc import Callable, Mapping
from typing import Any

from kafka import errors
from kafka.net.compat import KafkaNetClient
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector

from streamkernel.connectors.kafka.base.options import check_tls
from streamkernel.connectors.ports import ConnectorError

__all__ = ["NetworkClient", "Unreachable", "close_sockets", "connect", "quiet"]

# The first attempts are short, so that an outage is soon reported; a slow network needs longer ones.
FIRST_SECONDS, LAST_SECONDS = 3.0, 12.0
# A broker that stops ends a connection at any moment, but not again and again at the same.
_ENDED_IS_REFUSED = 3
_NUMBER = re.compile(r"\[Errno -?\d+\] ")
_PROBE_SECONDS = 1.0
# ApiVersions, version 0, correlation 0, a client without a name: every broker answers it before any login.
_REQUEST = struct.pack(">ihhih", 10, 18, 0, 0, -1)


class Unreachable(Exception):
    """No broker can be reached, which may pass; the message is a phrase that says why."""


class BrokerConnections(KafkaConnectionManager):  # type: ignore[misc]
    """The connections of one client, with why they failed and when a broker last answered, by the monotonic clock.

    Attributes
    ----------
    refusal
        Why no further attempt to connect would help; None where one may.
    silent_broker
        The number of a broker that ended the connection before it answered anything; None where none did.

    """

    def __init__(self, net: Any, **settings: Any) -> None:
        super().__init__(net, **settings)
        # kafka-python does not pass this option on, and our asking would create a deleted topic again.
        self.cluster.config["allow_auto_create_topics"] = False
        self.heard = time.monotonic()
        self.failure: str | None = None
        self.failed = 0.0
        self.refusal: str | None = None
        self.silent_broker: Any = None
        self._ended = 0

    def get_connection(self, node_id: Any, **keywords: Any) -> Any:
        connection = super().get_connection(node_id, **keywords)
        if connection.initializing:
            if not self.bootstrapped:
                # The versions of an earlier connection say nothing about who answers this one.
                connection.broker_version_data = None
            connection.close_future.add_errback(self._note_failure, connection, node_id)
        return connection

    def send(self, request: Any, node_id: Any = None, request_timeout_ms: float | None = None) -> Any:
        future = super().send(request, node_id=node_id, request_timeout_ms=request_timeout_ms)
        return future.add_callback(self._note_answer)

    async def _build_transport(self, node: Any, timeout_at: float | None = None) -> Any:
        try:
            return await super()._build_transport(node, timeout_at=timeout_at)
        except Exception as error:
            close_sockets(error)
            raise

    def _note_answer(self, _: Any) -> None:
        self.heard = time.monotonic()

    def _note_failure(self, connection: Any, node_id: Any, error: Exception) -> None:
        if self.failure is not None and not self.bootstrapped and isinstance(error, errors.RequestTimedOutError):
            return  # the attempt is over, and why it failed is known
        reason, final = self._reason(error)
        if not self.bootstrapped and _ended(error):
            meaning = self._meaning(connection)
            if connection.broker_version_data is None:
                self.silent_broker = node_id
            elif meaning is not None:
                self._ended += 1
                reason, final = meaning, self._ended >= _ENDED_IS_REFUSED
        self.failure, self.failed = self.place(node_id) + reason, time.monotonic()
        if final and not self.bootstrapped and self.refusal is None:
            self.refusal = self.failure
            self.call_soon(self.close)  # ends the attempt: another connection would fail the same way

    def _meaning(self, connection: Any) -> str | None:
        """Say why a broker ended a connection after it had answered; None where it may only be stopping."""
        if connection.init_future.succeeded():
            return (
                "the broker ends the connection at the first request, probably because it requires a login: check "
                "security_protocol and sasl_mechanism under options"
            )
        if self.config["security_protocol"].startswith("SASL"):
            return _credentials("it closes the connection at login")
        return None

    def place(self, node_id: Any) -> str:
        """Return ``"host:port: "`` for the front of a phrase; nothing for the only broker that the user named."""
        node = self.cluster.broker_metadata(node_id)
        if node is None or (self.cluster.is_bootstrap(node_id) and len(self.cluster.bootstrap_brokers()) == 1):
            return ""
        return f"{node.host}:{node.port}: "

    def _reason(self, error: Exception) -> tuple[str, bool]:
        """Return what an error means, as a phrase, and whether another attempt would end the same way."""
        text = _text(error)
        if isinstance(error, errors.SaslAuthenticationFailedError):
            return _credentials(text), True
        if isinstance(error, errors.UnsupportedSaslMechanismError | errors.IllegalSaslStateError):
            return (
                f"the broker does not accept the SASL mechanism {self.config['sasl_mechanism']} here: check "
                "sasl_mechanism and security_protocol under options"
            ), True
        if text.startswith("Handshake failed"):
            why = text.partition(": ")[2]
            if "CERTIFICATE" in text:
                return (
                    f"the certificate of the broker is not trusted ({why}): check ssl_cafile under options, and the "
                    "name in bootstrap_servers"
                ), True
            return (
                f"the TLS handshake failed ({why}): check security_protocol under options",
                "alert" in text.lower(),
            )
        if "DNS" in text:
            hosts = [node.host for node in self.cluster.bootstrap_brokers()]
            return "the name cannot be resolved: check bootstrap_servers", not any(map(_may_resolve, hosts))
        if "ECONNREFUSED" in text:
            return "connection refused", False
        return ("the connection was ended" if _ended(error) else text), False

    def misunderstanding(self) -> str | None:
        """Say that a broker which never answered speaks TLS where the client does not, or the other way round.

        A stopping broker, or a proxy without one, ends a connection without a word too: so the listener is tried.
        """
        node = None if self.silent_broker is None else self.cluster.broker_metadata(self.silent_broker)
        if node is None or not _speaks(node.host, node.port, tls=not self.ssl_enabled):
            return None
        place = self.place(self.silent_broker)
        if self.ssl_enabled:
            return f"{place}the broker does not speak TLS here: set security_protocol to PLAINTEXT or SASL_PLAINTEXT"
        return f"{place}the broker speaks TLS here: set security_protocol under options to SSL or SASL_SSL"


class NetworkClient(KafkaNetClient):  # type: ignore[misc]
    """The network side of one client of kafka-python, with its `BrokerConnections`."""

    def __init__(self, **settings: Any) -> None:
        net = NetworkSelector(**settings)
        self.connections = BrokerConnections(net, **settings)
        super().__init__(net=net, manager=self.connections, **settings)


def connect(
    make: Callable[..., Any], settings: Mapping[str, Any], attempt: int = 0, kind: type[NetworkClient] = NetworkClient
) -> tuple[Any, NetworkClient]:
    """Return a connected client of kafka-python, and its network side.

    Parameters
    ----------
    make, settings
        `kafka.KafkaConsumer`, or another class of kafka-python that takes the same settings, and these.
    attempt
        How many attempts failed before this one: later ones wait longer.
    kind
        The class of the network side.

    Raises
    ------
    Unreachable
        Where no broker answers: trying again may help.
    ConnectorError
        Where it would not: no server's name can be resolved, the credentials or the TLS settings are wrong.

    """
    quiet()
    check_tls(settings)
    networks: list[NetworkClient] = []

    def make_network(**configs: Any) -> NetworkClient:
        networks.append(kind(**configs))
        return networks[0]

    seconds = min(LAST_SECONDS, FIRST_SECONDS * (1 + attempt))
    try:
        return make(**settings, kafka_client=make_network, bootstrap_timeout_ms=1000 * seconds), networks[0]
    except Exception as error:
        for network in networks:
            # A client that fails to start leaves its thread running.
            with contextlib.suppress(Exception):
                network.close()
        known = networks[0].connections if networks else None
        refusal = None if known is None else known.refusal or known.misunderstanding()
        if refusal is not None:
            raise ConnectorError(refusal) from None
        if isinstance(error, errors.KafkaConfigurationError | ValueError | AssertionError | TypeError):
            raise ConnectorError(f"options: {_text(error)}") from None
        if known is None:
            raise
        raise Unreachable(known.failure or f"no answer within {seconds:.0f} s") from None


def quiet() -> None:
    """Hide kafka-python's own log lines: at level debug they show passwords, and the others repeat our own.

    Where debug lines are asked for, those from level info on are let through.
    """
    debug = logging.getLogger(__name__).isEnabledFor(logging.DEBUG)
    logging.getLogger("kafka").setLevel(logging.INFO if debug else logging.CRITICAL + 1)


def _speaks(host: str, port: int, tls: bool) -> bool:
    """Return whether a listener takes up TLS, with whatever certificate, or answers a request in the clear."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        with socket.create_connection((host, port), _PROBE_SECONDS) as connection:
            if tls:
                context.wrap_socket(connection).close()
                return True
            connection.sendall(_REQUEST)
            return connection.recv(8, socket.MSG_WAITALL)[4:] == b"\0\0\0\0"
    except OSError:
        return False


def close_sockets(error: BaseException) -> None:
    """Close the sockets in the frames of a failed attempt to connect.

    kafka-python leaves them to Python's search for reference cycles, and a process may open few files.
    """
    for frame, _ in traceback.walk_tb(error.__traceback__):
        local = frame.f_locals
        for opened in (local.get("sock"), getattr(local.get("transport"), "_sock", None)):
            if isinstance(opened, socket.socket):
                opened.close()
        # The attempts at the other addresses of a name have errors of their own.
        for other in local.get("exceptions", ()):
            if other is not error and other.__traceback__ is not None:
                close_sockets(other)


def _credentials(text: str) -> str:
    return (
        f"the broker refuses the credentials ({text}): check sasl_plain_username, sasl_plain_password and "
        "sasl_mechanism under options"
    )


def _ended(error: Exception) -> bool:
    text = _text(error)
    return "socket disconnected" in text or "EOF occurred" in text or "Connection reset" in text


def _may_resolve(host: str) -> bool:
    """Return whether a name may exist: False only where the name service says that there is none."""
    try:
        socket.getaddrinfo(host, None)
    except socket.gaierror as error:
        return error.errno not in (socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME))
    return True


def _text(error: BaseException) -> str:
    """Return the words of an error, without the name of its class and the number in front."""
    words = ": ".join(str(part) for part in error.args) or type(error).__name__
    return _NUMBER.sub("", " ".join(words.split()))
