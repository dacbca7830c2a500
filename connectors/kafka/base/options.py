"""Options of kafka-python's clients: those that are reserved, their defaults here, and the checks of them."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from streamkernel.connectors.os_reason import os_reason
from streamkernel.connectors.ports import ConnectorError

__all__ = ["OUTPUT_RESERVED", "RESERVED", "check", "check_tls", "client_settings"]

RESERVED: Mapping[str, str] = {
    "bootstrap_servers": "set bootstrap_servers outside options",
    "auto_offset_reset": "write start: earliest or latest, and on_gap: stop or skip",
    "enable_auto_commit": "the checkpoint stores where to continue",
    "auto_commit_interval_ms": "the checkpoint stores where to continue",
    "default_offset_commit_callback": "the checkpoint stores where to continue",
    "key_deserializer": "the daemon decodes records and handles bad ones",
    "value_deserializer": "the daemon decodes records and handles bad ones",
    "key_serializer": "lines are written as JSON",
    "value_serializer": "lines are written as JSON",
    "max_poll_records": "the daemon chooses the chunk size itself",
    "consumer_timeout_ms": "a topic has no end",
    "allow_auto_create_topics": "a topic with a mistyped name must not be created",
    "exclude_internal_topics": "source.topic names the one topic",
    "partition_assignment_strategy": "write partitions",
    "kafka_client": "it is the daemon's own",
    "selector": "it is the daemon's own",
    "bootstrap_timeout_ms": "the daemon retries until the broker answers",
    "metric_reporters": "the daemon exports its own metrics",
    "metrics_enabled": "the daemon exports its own metrics",
    "ssl_context": "write ssl_cafile, ssl_certfile and ssl_keyfile",
    "socks5_proxy": "write proxy_url",
}
"""Options of kafka-python that may not be set, with what to do instead."""

OUTPUT_RESERVED: Mapping[str, str] = {
    "acks": "every line is acknowledged by all replicas that are in sync",
    "enable_idempotence": "each line must be written once",
    "retries": "a line is sent until it is acknowledged",
    "delivery_timeout_ms": "a line is sent until it is acknowledged",
    "max_in_flight_requests_per_connection": "the lines of a partition stay in order",
    "max_block_ms": "the daemon waits itself",
    "partitioner": "the lines of a partition of the source go to one partition, in order",
    "transactional_id": "set transactional_id outside options",
    "compression_type": "set compression outside options",
}
"""Those that may not be set where lines are written, in addition to the others."""

_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_WITH_PASSWORD = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_DEFAULTS: Mapping[str, Any] = {
    "client_id": "streamkernel",
    # A broker that is back must not wait half a minute to be noticed.
    "reconnect_backoff_max_ms": 2000,
    # How soon a topic that was deleted, created again or given more partitions is noticed.
    "metadata_max_age_ms": 10_000,
    # Without one, OpenSSL would ask for the passphrase of an encrypted key at the terminal.
    "ssl_password": "",
    "metrics_enabled": False,
}


def client_settings(
    bootstrap_servers: str | list[str], options: Mapping[str, Any], reserved: Mapping[str, str] = {}
) -> dict[str, Any]:
    """Return what a client of kafka-python is made with: its defaults here, and the user's options.

    Raises `ValueError` for an option that is in `RESERVED`, or among the client's own `reserved` ones.

    Examples
    --------
    >>> client_settings("broker:9092", {"client_id": "mine"})["client_id"]
    'mine'
    >>> client_settings("broker:9092", {"enable_auto_commit": True})
    Traceback (most recent call last):
        ...
    ValueError: options: enable_auto_commit cannot be set: the checkpoint stores where to continue

    """
    try:
        for name in options:
            if name in reserved:
                raise ValueError(f"{name} cannot be set: {reserved[name]}")
        check(options)
    except ValueError as error:
        raise ValueError(f"options: {error}") from None
    return {**_DEFAULTS, **options, "bootstrap_servers": bootstrap_servers}


def check(options: Mapping[str, Any]) -> None:
    """Raise `ValueError`, naming the option, for what cannot be set, or not together."""
    for name in options:
        if name in RESERVED:
            raise ValueError(f"{name} cannot be set: {RESERVED[name]}")
    protocol = options.get("security_protocol", "PLAINTEXT")
    if protocol not in _PROTOCOLS:
        raise ValueError(f"security_protocol must be one of {', '.join(_PROTOCOLS)}, got {protocol!r}")
    mechanism = options.get("sasl_mechanism")
    if protocol.startswith("SASL") and mechanism is None:
        raise ValueError(f"sasl_mechanism is required with the security_protocol {protocol}")
    if mechanism is not None and not protocol.startswith("SASL"):
        raise ValueError("sasl_mechanism needs a security_protocol of SASL_PLAINTEXT or SASL_SSL")
    for name in ("sasl_plain_username", "sasl_plain_password"):
        if mechanism in _WITH_PASSWORD and not options.get(name):
            raise ValueError(f"{name} is required with the sasl_mechanism {mechanism}")
    if options.get("ssl_cafile") and not protocol.endswith("SSL"):
        raise ValueError("ssl_cafile needs a security_protocol of SSL or SASL_SSL")


def check_tls(settings: Mapping[str, Any]) -> None:
    """Raise `ConnectorError`, naming option and file, for a TLS file that the client could not use.

    The client itself would try it again and again.
    """
    if settings.get("security_protocol") not in ("SSL", "SASL_SSL"):
        return
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    for name in filter(settings.get, ("ssl_cafile", "ssl_keyfile", "ssl_certfile", "ssl_crlfile")):
        try:
            if name == "ssl_keyfile":
                Path(settings[name]).read_bytes()
            elif name == "ssl_certfile":
                context.load_cert_chain(settings[name], settings.get("ssl_keyfile"), settings["ssl_password"])
            else:
                context.load_verify_locations(settings[name])
        except ssl.SSLError as error:
            raise ConnectorError(
                f"options.{name}: {settings[name]}: is not a usable PEM file ({error.reason or os_reason(error)}): "
                "check the file, and ssl_keyfile and ssl_password for a certificate with a key"
            ) from None
        except OSError as error:
            raise ConnectorError(f"options.{name}: {settings[name]}: cannot be read: {os_reason(error)}") from None
