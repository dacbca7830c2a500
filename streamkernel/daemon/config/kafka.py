"""What a configuration says about Kafka: topics to read, and the options of the client."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, WithJsonSchema, model_validator

from streamkernel.connectors.kafka.base.options import check
from streamkernel.daemon.config.fields import (
    Name,
    Number,
    Path,
    Positive,
    Section,
    TargetNames,
    TargetType,
    Whole,
    must,
    resolvable,
)
from streamkernel.daemon.config.inputs import InputsConfig
from streamkernel.daemon.config.problems import shown
from streamkernel.daemon.config.registry import SinkRegistryConfig, SourceRegistryConfig, ValueFormat

__all__ = [
    "AUTO",
    "GROUP_OPTIONS",
    "ClientOptions",
    "ConsumerOptions",
    "KafkaSinkConfig",
    "KafkaSourceConfig",
    "ProducerOptions",
    "Servers",
    "Topic",
]

AUTO = "auto"
"""The transactional ID that the configuration makes itself."""

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


def _or_none(value: Any) -> Any:
    return None if value == "none" else value


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
Topic: TypeAlias = Annotated[
    str,
    must(
        "be letters, digits, '.', '_' and '-', at most 249 of them",
        lambda name: _TOPIC.match(name) and name not in (".", ".."),
    ),
]
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
    """Options of the consumer client."""

    group_id: Name | None = Field(
        default=None,
        description="The daemon commits the offsets of each checkpoint to this group, for tools that watch lag.",
    )
    client_rack: str | None = None
    isolation_level: Literal["read_uncommitted", "read_committed"] | None = Field(
        default=None, description="read_committed by default: the daemon never reads messages of aborted transactions."
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
    """Reads records from a Kafka topic. A message is one JSON object, or one value of a schema registry."""

    kind: Literal["kafka"]
    topic: Topic = Field(description="The topic. The daemon never creates a missing one.")
    bootstrap_servers: Servers = Field(description="host:port of one or several brokers.")
    partitions: _Partitions = Field(default="all", description="all, or the numbers of the partitions to read.")
    group: Name | None = Field(
        default=None,
        description="Learn one model per partition. The members of this consumer group share the partitions. null: "
        "one model for all partitions.",
    )
    start: Literal["earliest", "latest"] = Field(
        default="earliest", description="Where the first run begins. Later runs resume from the checkpoint."
    )
    on_gap: Literal["stop", "skip"] = Field(
        default="stop", description="What to do if retention removed records before the daemon read them."
    )
    order: Literal["arrival", "logged"] = Field(
        default="arrival",
        description="logged: record the order in which the daemon consumes several partitions, so that a restart "
        "repeats it.",
    )
    include: list[Literal["key", "headers", "timestamp"]] = Field(
        default_factory=list, description="The parts of a message that become inputs, in addition to its value."
    )
    target: TargetNames = Field(
        default=None,
        description="The key of the label. Use dots for a nested one. A list of several is for a model of several "
        "targets. null: every record is unlabeled.",
    )
    target_type: TargetType = Field(default="str", description="The type of the target: float for a regressor.")
    inputs: InputsConfig | None = None
    value_format: ValueFormat = Field(
        default="json", description="The format of the values. All but json need a schema_registry."
    )
    schema_registry: SourceRegistryConfig | None = None
    options: ConsumerOptions = Field(default_factory=ConsumerOptions, description="Settings of the Kafka client.")


class ProducerOptions(ClientOptions):
    """Options of the producer client."""

    linger_ms: Annotated[Whole, Field(ge=0)] | None = None
    batch_size: Positive | None = None
    max_request_size: Positive | None = None
    transaction_timeout_ms: Positive | None = None


class KafkaSinkConfig(Section):
    """Lines to a topic of Kafka, one JSON object or one value of a schema registry a message, each exactly once."""

    kind: Literal["kafka"]
    topic: Topic = Field(description="The topic. The daemon never creates a missing one.")
    bootstrap_servers: Servers = Field(description="host:port of one or several brokers.")
    transactional_id: Annotated[Name | None, BeforeValidator(_or_none)] = Field(
        default=AUTO,
        description="Commit lines in transactions with this ID, which no other process may use. auto: made of the "
        "topic and checkpoint.directory. none: no transactions. A restart may then write lines twice.",
    )
    compression: Literal["gzip", "snappy", "lz4", "zstd"] | None = Field(
        default=None, description="The compression of the lines."
    )
    existing: Literal["refuse", "append"] = Field(
        default="refuse",
        description="What to do if the topic has lines of this transactional_id that the checkpoint does not know. "
        "append writes lines again.",
    )
    value_format: ValueFormat = Field(
        default="json", description="The format of the lines. All but json need a schema_registry."
    )
    schema_registry: SinkRegistryConfig | None = None
    flush_seconds: Annotated[Number, Field(ge=0)] = Field(
        default=1.0,
        description="The maximum delay in seconds from reading a record until its line is committed, with a "
        "checkpoint. Checkpoints that take long make it longer. Without transactions, a line is visible as soon as a "
        "broker has it.",
    )
    options: ProducerOptions = Field(default_factory=ProducerOptions, description="Settings of the Kafka client.")
