"""The configuration of a schema registry."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal, TypeAlias
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, SecretStr

from streamkernel.connectors.registry.settings import RegistrySettings, ValueFormat
from streamkernel.daemon.config.fields import Number, Path, Section, resolvable
from streamkernel.daemon.config.problems import Problem

__all__ = ["SinkRegistryConfig", "SourceRegistryConfig", "ValueFormat", "registry_problems"]


def _urls(text: str) -> str:
    for one in text.split(","):
        try:
            parts = urlsplit(one.strip())
            valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            valid = False
        if not valid:
            raise ValueError("must be http:// or https:// with a host, and a comma between several")
        if "@" in parts.netloc:
            raise ValueError("must not contain a name and a password: set username and password instead")
        resolvable(parts.hostname or "")
        if parts.query or parts.fragment:
            raise ValueError("must end with the path, without ? and #")
    return text


def _printable(value: str | SecretStr) -> str | SecretStr:
    text = value.get_secret_value() if isinstance(value, SecretStr) else value
    if not text.isprintable():  # it would end the header of the request
        raise ValueError("must not contain line ends or control characters")
    return value


_Text: TypeAlias = Annotated[str, Field(min_length=1), AfterValidator(_printable)]
_Secret: TypeAlias = Annotated[SecretStr, AfterValidator(_printable)]


class _RegistryConfig(Section):
    url: Annotated[str, AfterValidator(_urls)] = Field(
        description="The http or https address. Separate several with commas: the daemon tries them in turn."
    )
    username: _Text | None = Field(default=None, description="For basic authentication.")
    password: _Secret | None = Field(default=None, description="Best set by an environment variable.")
    token: _Secret | None = Field(
        default=None, description="For bearer authentication. Best set by an environment variable."
    )
    ssl_cafile: Path | None = Field(
        default=None, description="The CA certificates for the registry, a PEM file. null: the system's."
    )
    ssl_certfile: Path | None = Field(default=None, description="The client certificate, a PEM file.")
    ssl_keyfile: Path | None = Field(default=None, description="The private key of the client certificate, a PEM file.")
    ssl_password: SecretStr | None = Field(default=None, description="The passphrase of the private key.")
    timeout_seconds: Annotated[Number, Field(gt=0)] = Field(
        default=10.0, description="The timeout of one request. The daemon then tries again."
    )
    unknown_seconds: Annotated[Number, Field(ge=0)] = Field(
        default=60.0, description="How long to keep asking for a schema that the registry does not know, in seconds."
    )
    descriptor_set: Path | None = Field(
        default=None,
        description="Protobuf: a file written by protoc --include_imports --descriptor_set_out. null: the registry's "
        "schema.",
    )

    def settings(self) -> RegistrySettings:
        """Return the settings of the client, secrets in the clear."""
        values: dict[str, Any] = {
            name: value.get_secret_value() if isinstance(value, SecretStr) else value for name, value in self
        }
        return RegistrySettings(**values)


class SourceRegistryConfig(_RegistryConfig):
    """The schema registry with the schemas of the topic's values, with Confluent's REST interface."""

    message: _Text | None = Field(
        default=None, description="Protobuf: the full name of the message. null: the one that a value names."
    )
    on_unknown_schema: Literal["stop", "dead_letter"] = Field(
        default="stop",
        description="What to do with a record if its schema is still unknown after unknown_seconds, or unusable.",
    )


class SinkRegistryConfig(_RegistryConfig):
    """The registry of the lines' schema, with Confluent's REST interface. The daemon registers or reads the schema."""

    message: _Text | None = Field(
        default=None, description="Protobuf with use_latest_version: the full name of the message. null: the first one."
    )
    subject: _Text | None = Field(default=None, description="The subject of the schema. null: TOPIC-value.")
    auto_register_schemas: bool = Field(
        default=True, description="Register the schema of the lines. false: it must be registered already."
    )
    use_latest_version: bool = Field(default=False, description="Write with the latest schema of the subject.")


def registry_problems(
    key: str, value_format: ValueFormat, registry: SourceRegistryConfig | SinkRegistryConfig | None
) -> Iterator[Problem]:
    """Yield a problem for each registry setting of the section at a key that contradicts another one."""
    if value_format == "json" or registry is None:
        if registry is not None:
            yield Problem(
                f"{key}.value_format", f"must be avro, json_schema or protobuf with {key}.schema_registry, is json"
            )
        elif value_format != "json":
            yield Problem(f"{key}.schema_registry", f"required with {key}.value_format: {value_format}")
        return
    at = f"{key}.schema_registry"
    if registry.token is not None and registry.username is not None:
        yield Problem(f"{at}.token", "must not be given with username, choose one")
    if (registry.username is None) is not (registry.password is None):
        missing, given = ("username", "password") if registry.username is None else ("password", "username")
        yield Problem(f"{at}.{missing}", f"required with {given}")
    if registry.ssl_keyfile is not None and registry.ssl_certfile is None:
        yield Problem(f"{at}.ssl_certfile", "required with ssl_keyfile")
    if "http:" in registry.url and any((registry.ssl_cafile, registry.ssl_certfile)):
        yield Problem(f"{at}.url", "must be https with ssl_cafile and ssl_certfile")
    latest = not isinstance(registry, SinkRegistryConfig) or registry.use_latest_version
    for name in ("descriptor_set", "message"):
        if getattr(registry, name) is not None and value_format != "protobuf":
            yield Problem(f"{at}.{name}", f"works only with value_format protobuf, is {value_format}")
        if getattr(registry, name) is not None and not latest:
            yield Problem(f"{at}.{name}", "works only with use_latest_version: otherwise the lines have our schema")
    if registry.descriptor_set is not None and registry.message is None:
        yield Problem(f"{at}.message", "required with descriptor_set")
