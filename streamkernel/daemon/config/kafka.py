"""What a configuration says about Kafka: topics to read, and the options of the client."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, WithJsonSchema, model_validator

from streamkernel.connectors.kafka.base.options import check
from streamkernel.daemon.config.column_name import ColumnName
from streamkernel.daemon.config.fields import Name, Number, Path, Positive, Section, TargetType, Whole, resolvable
from streamkernel.daemon.config.inputs import InputsConfig
from streamkernel.daemon.config.problems import shown
from streamkernel.daemon.config.registry import SinkRegistryConfig, SourceRegistryConfig, ValueFormat

__all__ = [
    "GROUP_OPTIONS",
    "ClientOptions",
    "ConsumerOptions",
    "KafkaSinkConfig",
    "KafkaSourceConfig",
    "ProducerOptions",
    "Servers",
    "Topic",
]

GROUP_OPTIONS = ("session_timeout_ms", "heartbeat_interval_ms", "max_poll_interval_ms")
"""Options of a client that is a member of a group."""

_SERVER = re.compile(r"(?P<host>\[[0-9a-fA-F:.]+\]|[^\s:/\[\],]+)(:(?P<port>[0-9]{1,5}))?\Z")
_TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,249}\Z")


def _listed(value: Any) -> Any:
    return [part.strip() for part in value.split(",")] if isinstance(value, str) else value


def _server(text: str) -> str:
    match = _SERVER.match(text)
    if match is None or int(match["port"] or 9092) not in range(1, 65536):
        raise ValueError(f"must be host:port, got {text!r}")
    resolvable(match["host"])
    return text


def _topic(name: str) -> str:
    if not _TOPIC.match(name) or name in (".", ".."):
        raise ValueError(f"must be letters, digits, '.', '_' and '-', at most 249 of them, got {shown(name)}")
    return name


def _partitions(value: Any) -> Any:
    numbers = isinstance(value, list) and all(type(one) is int and one >= 0 for one in value)
    if value != "all" and not (numbers and value):
        raise ValueError(f"must be all, or a list of the numbers of partitions, got {shown(value)}")
    return value


Servers: TypeAlias = Annotated[
    list[Annotated[str, AfterValidator(_server)]],
    BeforeValidator(_listed),
    Field(min_length=1),
    WithJsonSchema({"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}),
]
Topic: TypeAlias = Annotated[str, AfterValidator(_topic)]
_Partitions: TypeAlias = Annotated[Literal["all"] | list[int], BeforeValidator(_partitions)]


class ClientOptions(Section):
    """Settings that are passed to kafka-python as they are, by its own names."""

    client_id: Name | None = None
    client_dns_lookup: Literal["use_all_dns_ips", "resolve_canonical_bootstrap_servers_only"] | None = None
    security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] | None = None
    sasl_mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "GSSAPI", "AWS_MSK_IAM"] | None = None
    sasl_plain_username: str | None = None
    sasl_plain_password: SecretStr | None = None
    sasl_kerberos_service_name: str | None = None
    sasl_kerberos_domain_name: str | None = None
    ssl_cafile: Path | None = None
    ssl_certfile: Path | None = None
    ssl_keyfile: Path | None = None
    ssl_crlfile: Path | None = None
    ssl_password: SecretStr | None = None
    ssl_check_hostname: bool | None = None
    proxy_url: str | None = None
    request_timeout_ms: Positive | None = None
    retry_backoff_ms: Positive | None = None
    reconnect_backoff_ms: Positive | None = None
    reconnect_backoff_max_ms: Positive | None = None
    connections_max_idle_ms: Positive | None = None
    metadata_max_age_ms: Positive | None = None
    receive_buffer_bytes: Positive | None = None
    send_buffer_bytes: Positive | None = None

    @model_validator(mode="after")
    def _fit_together(self) -> Self:
        check(self.given())
        return self

    def given(self) -> dict[str, Any]:
        """Return what was set, secrets in the clear, for the client alone."""
        values = ((name, getattr(self, name)) for name in self.model_fields_set)
        return {
            name: value.get_secret_value() if isinstance(value, SecretStr) else value
            for name, value in sorted(values)
            if value is not None
        }


class ConsumerOptions(ClientOptions):
    """Options of a client that reads."""

    group_id: Name | None = Field(
        default=None, description="The offsets of each checkpoint are committed to this group, for tools that watch it."
    )
    client_rack: str | None = None
    isolation_level: Literal["read_uncommitted", "read_committed"] | None = Field(
        default=None, description="read_committed by default: what a transaction wrote that is aborted never comes."
    )
    check_crcs: bool | None = None
    enable_incremental_fetch_sessions: bool | None = None
    fetch_min_bytes: Positive | None = None
    fetch_max_wait_ms: Positive | None = None
    fetch_max_bytes: Positive | None = None
    max_partition_fetch_bytes: Positive | None = None
    receive_message_max_bytes: Positive | None = None
    session_timeout_ms: Positive | None = None
    heartbeat_interval_ms: Positive | None = None
    max_poll_interval_ms: Positive | None = None


class KafkaSourceConfig(Section):
    """Records from a topic of Kafka: one JSON object a message, or one value of a schema registry."""

    kind: Literal["kafka"]
    topic: Topic = Field(description="The topic; one that is not there is never made.")
    bootstrap_servers: Servers = Field(description="host:port of one broker or several.")
    partitions: _Partitions = Field(default="all", description="all, or the numbers of those to read.")
    group: Name | None = Field(
        default=None,
        description="One model for each partition, shared out among the members of this consumer group; "
        "null: one model for all partitions.",
    )
    start: Literal["earliest", "latest"] = Field(
        default="earliest", description="Where the very first run begins; later ones go on from the checkpoint."
    )
    on_gap: Literal["stop", "skip"] = Field(
        default="stop", description="What to do where retention removed records before they were read."
    )
    order: Literal["arrival", "logged"] = Field(
        default="arrival",
        description="logged: write down in which order several partitions are taken, so that a restart repeats it.",
    )
    include: list[Literal["key", "headers", "timestamp"]] = Field(
        default_factory=list, description="What of a message becomes inputs beside its value."
    )
    target: ColumnName | None = Field(
        default=None,
        description="The key of the label, a nested one with dots; null: every record is unlabelled.",
    )
    target_type: TargetType = Field(default="str", description="What the target is: float for a regressor.")
    inputs: InputsConfig | None = None
    value_format: ValueFormat = Field(
        default="json", description="What the values are; all but json need a schema_registry."
    )
    schema_registry: SourceRegistryConfig | None = None
    options: ConsumerOptions = Field(default_factory=ConsumerOptions, description="Settings of the client.")


class ProducerOptions(ClientOptions):
    """Options of a client that writes."""

    linger_ms: Annotated[Whole, Field(ge=0)] | None = None
    batch_size: Positive | None = None
    max_request_size: Positive | None = None
    transaction_timeout_ms: Positive | None = None


class KafkaSinkConfig(Section):
    """Lines to a topic of Kafka, one JSON object or one value of a schema registry a message, each exactly once."""

    kind: Literal["kafka"]
    topic: Topic = Field(description="The topic; one that is not there is never made.")
    bootstrap_servers: Servers = Field(description="host:port of one broker or several.")
    transactional_id: Name | None = Field(
        default=None, description="Commit lines in transactions, under this name of the daemon's own."
    )
    compression: Literal["gzip", "snappy", "lz4", "zstd"] | None = Field(
        default=None, description="How the lines are compressed."
    )
    existing: Literal["refuse", "append"] = Field(
        default="refuse",
        description="What to do where no checkpoint goes with the topic, and it holds lines for records of the same "
        "partition of the source: append writes the lines of all records once more.",
    )
    value_format: ValueFormat = Field(
        default="json", description="What the lines are written as; all but json need a schema_registry."
    )
    schema_registry: SinkRegistryConfig | None = None
    flush_seconds: Annotated[Number, Field(gt=0)] = Field(
        default=1.0,
        description="How long after a record was read its line is committed, in seconds; without a transactional_id "
        "lines count as soon as a broker has them.",
    )
    options: ProducerOptions = Field(default_factory=ProducerOptions, description="Settings of the client.")
