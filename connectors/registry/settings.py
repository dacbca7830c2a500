"""Settings of a schema registry: where it is, who asks, and by which schema is read and written."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from streamkernel.connectors.os_reason import os_reason
from streamkernel.connectors.ports import SettingError

__all__ = ["SCHEMA_TYPES", "RegistrySettings", "ValueFormat"]

ValueFormat: TypeAlias = Literal["json", "avro", "json_schema", "protobuf"]
"""How the values of messages are encoded: ``"json"`` without a registry, the others with one."""

SCHEMA_TYPES: Mapping[ValueFormat, str] = {"avro": "AVRO", "json_schema": "JSON", "protobuf": "PROTOBUF"}
"""What a registry calls the format of a schema."""


@dataclass(frozen=True)
class RegistrySettings:
    """The settings of a schema registry with the REST interface of Confluent's (Apicurio's is its ``ccompat``).

    Parameters
    ----------
    url
        ``"https://host:port/path"``, or several with commas between, which are tried in turn.
    username, password
        For basic authentication; None: none.
    token
        For bearer authentication; None: none.
    ssl_cafile
        The authorities that may sign the registry's certificate, as a PEM file; None: those of the system.
    ssl_certfile, ssl_keyfile, ssl_password
        The client's certificate and its key as PEM files, and the key's passphrase.
    timeout_seconds
        How long one request may take.
    unknown_seconds
        How long a schema that the registry does not know is asked for again before it counts as missing.
    on_unknown_schema
        What to do with a message whose schema is missing or cannot be used: ``"stop"``, or take it for a
        ``"dead_letter"``.
    descriptor_set, message
        A file that ``protoc --include_imports --descriptor_set_out`` wrote, and the full name of the message in it;
        None: the registry's own.
    subject
        What lines are registered under; None: ``"<topic>-value"``.
    auto_register_schemas
        Whether the schema of lines is registered where it is not; where not, it must be there.
    use_latest_version
        Whether lines are written by the latest schema of the subject, whatever that is.

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
        """Return the context of TLS connections; raises `ValueError`, naming the file, for one that cannot be used."""
        for name in ("ssl_cafile", "ssl_certfile", "ssl_keyfile"):
            path = getattr(self, name)
            try:
                if path is not None:
                    Path(path).read_bytes()
            except OSError as error:
                raise SettingError(f"schema_registry.{name}", f"{path}: cannot be read: {os_reason(error)}") from None
        name = "ssl_cafile"
        try:
            context = ssl.create_default_context(cafile=self.ssl_cafile)
            # Python 3.13 would refuse authorities that 3.12 takes, and that the client of Kafka takes there, too.
            context.verify_flags &= ~ssl.VERIFY_X509_STRICT
            name = "ssl_certfile"
            if self.ssl_certfile is not None:
                # Without one, OpenSSL would ask for the passphrase of an encrypted key at the terminal.
                context.load_cert_chain(self.ssl_certfile, self.ssl_keyfile, self.ssl_password or "")
        except (ssl.SSLError, OSError) as error:
            reason = getattr(error, "reason", None) or os_reason(error)
            raise SettingError(
                f"schema_registry.{name}",
                f"{getattr(self, name)}: is not a usable PEM file ({reason}): check the "
                "file, and ssl_keyfile and ssl_password for a certificate with a key",
            ) from None
        return context
