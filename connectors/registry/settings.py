"""Settings of a schema registry: its address, the credentials, and which schema is read and written."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from streamkernel.connectors.os_reason import os_reason
from streamkernel.connectors.ports import SettingError

__all__ = ["SCHEMA_TYPES", "RegistrySettings", "ValueFormat"]

ValueFormat: TypeAlias = Literal["json", "avro", "json_schema", "protobuf"]
"""The encoding of message values: ``"json"`` without a registry, the others with one."""

SCHEMA_TYPES: Mapping[ValueFormat, str] = {"avro": "AVRO", "json_schema": "JSON", "protobuf": "PROTOBUF"}
"""The registry's name of each format."""


@dataclass(frozen=True)
class RegistrySettings:
    """The settings of a schema registry with Confluent's REST interface (Apicurio's is its ``ccompat``).

    The parameters are the keys of ``schema_registry`` in a configuration, with secrets in the clear. `unknown_seconds`
    is how long to ask for a schema that the registry does not know. A source then stops, or handles the message as
    `on_unknown_schema` says. `descriptor_set` and `message` are a file of ``protoc --include_imports
    --descriptor_set_out`` and a message in it, in place of the registry's schema. A sink writes with its own schema
    under `subject` (None: ``"<topic>-value"``), registered or found there, or with the latest one.

    Examples
    --------
    >>> RegistrySettings("http://a:8081/, http://b:8081").urls
    ('http://a:8081', 'http://b:8081')

    """

    url: str
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)
    ssl_cafile: str | None = None
    ssl_certfile: str | None = None
    ssl_keyfile: str | None = None
    ssl_password: str | None = field(default=None, repr=False)
    timeout_seconds: float = 10.0
    unknown_seconds: float = 60.0
    on_unknown_schema: Literal["stop", "dead_letter"] = "stop"
    descriptor_set: str | None = None
    message: str | None = None
    subject: str | None = None
    auto_register_schemas: bool = True
    use_latest_version: bool = False

    @property
    def urls(self) -> tuple[str, ...]:
        """The addresses, without a slash at the end."""
        return tuple(one.strip().rstrip("/") for one in self.url.split(","))

    def tls(self) -> ssl.SSLContext:
        """Return the context of TLS connections; raises `ValueError`, naming the key, for an unusable file."""
        key = "ssl_cafile"
        try:
            context = ssl.create_default_context(cafile=self.ssl_cafile)
            # Python 3.13 would refuse authorities that 3.12 and the Kafka client accept.
            context.verify_flags &= ~ssl.VERIFY_X509_STRICT
            key = "ssl_certfile"
            if self.ssl_certfile is not None:
                # Without a passphrase, OpenSSL would ask for one at the terminal.
                context.load_cert_chain(self.ssl_certfile, self.ssl_keyfile, self.ssl_password or "")
        except OSError as error:
            path = getattr(self, key)
            if not isinstance(error, ssl.SSLError):
                raise SettingError(f"schema_registry.{key}", f"{path}: cannot be read: {os_reason(error)}") from None
            raise SettingError(
                f"schema_registry.{key}",
                f"{path}: is not a usable PEM file ({error.reason}): check the file, and ssl_keyfile and ssl_password "
                "for a certificate with a key",
            ) from None
        return context
