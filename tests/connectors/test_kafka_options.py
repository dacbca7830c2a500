"""What may be said to the client, and the files of TLS."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaConsumer, KafkaProducer

from streamkernel.connectors import ConnectorError
from streamkernel.connectors.kafka.base import client
from streamkernel.connectors.kafka.base.options import RESERVED, check_tls, client_settings
from streamkernel.connectors.kafka.reading.source import KafkaSource

TLS = Path(__file__).parents[1] / "daemon" / "tls"
SASL = {"security_protocol": "SASL_SSL", "sasl_mechanism": "PLAIN"}


def test_what_is_said_wins_over_what_is_usual() -> None:
    settings = client_settings("a:1", {"reconnect_backoff_max_ms": 7})
    assert settings["bootstrap_servers"] == "a:1"
    assert settings["reconnect_backoff_max_ms"] == 7
    assert settings["metadata_max_age_ms"] == 10_000


def test_some_options_are_not_the_users(subtests: pytest.Subtests) -> None:
    for name in sorted(RESERVED):
        with subtests.test(name=name), pytest.raises(ValueError, match=f"options: {name} cannot be set: "):
            client_settings("a:1", {name: None})


def test_all_of_them_are_options_of_the_client() -> None:
    assert set(RESERVED) <= {*KafkaConsumer.DEFAULT_CONFIG, *KafkaProducer.DEFAULT_CONFIG}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"security_protocol": "TLS"},
            "security_protocol must be one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL, got",
        ),
        ({"security_protocol": "SASL_SSL"}, "sasl_mechanism is required with the security_protocol SASL_SSL"),
        ({"sasl_mechanism": "PLAIN"}, "sasl_mechanism needs a security_protocol of SASL_PLAINTEXT or SASL_SSL"),
        ({**SASL}, "sasl_plain_username is required with the sasl_mechanism PLAIN"),
        ({**SASL, "sasl_plain_username": "me"}, "sasl_plain_password is required with the sasl_mechanism PLAIN"),
        ({"ssl_cafile": "ca.pem"}, "ssl_cafile needs a security_protocol of SSL or SASL_SSL"),
    ],
)
def test_what_cannot_go_together_is_said_at_once(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"options: {message}"):
        KafkaSource("t", "a:1", options=options)


class TestTls:
    def settings(self, **files: object) -> dict[str, Any]:
        return client_settings("a:1", {"security_protocol": "SSL", **{name: str(path) for name, path in files.items()}})

    def test_good_files_are_good(self) -> None:
        certificate, key = TLS / "certificate.pem", TLS / "key.pem"
        check_tls(self.settings(ssl_cafile=certificate, ssl_certfile=certificate, ssl_keyfile=key))
        check_tls(self.settings())

    def test_without_tls_no_file_is_read(self) -> None:
        check_tls(client_settings("a:1", {"ssl_certfile": "/nowhere"}))

    @pytest.mark.parametrize("name", ["ssl_cafile", "ssl_certfile", "ssl_keyfile", "ssl_crlfile"])
    def test_a_file_that_is_not_there(self, name: str) -> None:
        with pytest.raises(ConnectorError, match=f"options.{name}: /nowhere.pem: .*No such file"):
            check_tls(self.settings(**{name: "/nowhere.pem"}))

    @pytest.mark.parametrize("name", ["ssl_cafile", "ssl_certfile", "ssl_crlfile"])
    def test_a_file_that_is_none(self, name: str, tmp_path: Path) -> None:
        (tmp_path / "text.pem").write_text("no certificate")
        with pytest.raises(ConnectorError, match=rf"options.{name}: .*text\.pem: .* PEM file .*\(.+\)"):
            check_tls(self.settings(**{name: tmp_path / "text.pem"}))

    def test_a_certificate_without_its_key(self) -> None:
        with pytest.raises(ConnectorError, match=r"options\.ssl_certfile: .* PEM file"):
            check_tls(self.settings(ssl_certfile=TLS / "certificate.pem"))


@pytest.mark.parametrize(("level", "expected"), [(logging.DEBUG, logging.INFO), (logging.INFO, logging.CRITICAL + 1)])
def test_the_clients_own_lines_stay_away(level: int, expected: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """At level debug it prints the request that holds the password."""
    own = logging.getLogger("kafka")
    monkeypatch.setattr(own, "level", own.level)
    monkeypatch.setattr(logging.getLogger(), "level", level)
    logging.getLogger(client.__name__).manager._clear_cache()  # type: ignore[attr-defined]
    client.quiet()
    assert own.level == expected
    assert not logging.getLogger("kafka.net.connection").isEnabledFor(logging.DEBUG)
