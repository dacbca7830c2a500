"""Kafka by Spark's client in Java: its options, and the topic of predictions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from pyspark.sql import DataFrame

from streamkernel.daemon.config.kafka import ClientOptions, KafkaSinkConfig
from streamkernel.daemon.config.plan import Plan

__all__ = ["PredictionTopic", "java_options", "refused_options"]

#: Those that are the same but for their spelling.
_SAME = (
    *("client_id", "client_dns_lookup", "security_protocol", "sasl_mechanism", "sasl_kerberos_service_name"),
    *("request_timeout_ms", "retry_backoff_ms", "reconnect_backoff_ms", "reconnect_backoff_max_ms"),
    *("connections_max_idle_ms", "metadata_max_age_ms", "client_rack", "isolation_level", "check_crcs"),
    *("fetch_min_bytes", "fetch_max_wait_ms", "fetch_max_bytes", "max_partition_fetch_bytes"),
    *("linger_ms", "batch_size", "max_request_size"),
)
#: Those that `java_options` translates, and those that mean nothing to Spark.
_TRANSLATED = (
    *("sasl_plain_username", "sasl_plain_password", "ssl_cafile", "ssl_certfile", "ssl_keyfile"),
    *("ssl_password", "ssl_check_hostname"),
)
_IDLE = ("group_id", "receive_buffer_bytes", "send_buffer_bytes", "enable_incremental_fetch_sessions")
_LOGIN_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}


def refused_options(options: ClientOptions, section: str) -> Iterator[tuple[str, bool, str]]:
    """Yield for each given option whether Spark's client cannot have it, between its path and the reason."""
    known = {*_SAME, *_TRANSLATED, *_IDLE}
    for name, value in options.given().items():
        yield f"{section}.options.{name}", name not in known, "Spark's Kafka client has no such option; remove it"
        if name == "sasl_mechanism":
            why = f"{value} is not supported in a Spark job; use PLAIN or SCRAM"
            yield f"{section}.options.{name}", value not in _LOGIN_MODULES, why


def java_options(servers: list[str], options: ClientOptions) -> dict[str, str]:
    """Return the options of a source or sink of Spark's, with the prefix that it passes on to the client.

    Parameters
    ----------
    servers
        host:port of each broker.
    options
        Those of the configuration, of which none is refused.

    Examples
    --------
    >>> java_options(["a:1"], ClientOptions(security_protocol="SSL", ssl_check_hostname=False))
    {'kafka.bootstrap.servers': 'a:1', 'kafka.security.protocol': 'SSL', \
'kafka.ssl.endpoint.identification.algorithm': ''}

    """
    given = options.given()
    java = {"bootstrap.servers": ",".join(servers)}
    for name, value in given.items():
        if name in _SAME:
            text = str(value).lower() if isinstance(value, bool) else str(value)
            java["max.partition.fetch.bytes" if name == "max_partition_fetch_bytes" else name.replace("_", ".")] = text
    if "sasl_plain_username" in given:
        module = _LOGIN_MODULES[given.get("sasl_mechanism", "PLAIN")]
        user, password = (_quoted(given.get(f"sasl_plain_{name}", "")) for name in ("username", "password"))
        java["sasl.jaas.config"] = f"{module} required username={user} password={password};"
    if "ssl_cafile" in given:
        java |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(Path(given["ssl_cafile"]).absolute())}
    if "ssl_certfile" in given:
        java |= {"ssl.keystore.type": "PEM", "ssl.keystore.certificate.chain": Path(given["ssl_certfile"]).read_text()}
        java["ssl.keystore.key"] = Path(given.get("ssl_keyfile", given["ssl_certfile"])).read_text()
        if "ssl_password" in given:
            java["ssl.key.password"] = given["ssl_password"]
    if given.get("ssl_check_hostname") is False:
        java["ssl.endpoint.identification.algorithm"] = ""
    return {f"kafka.{name}": value for name, value in java.items()}


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


@dataclass(frozen=True)
class PredictionTopic:
    """The topic of predictions, written at least once: a repeated micro-batch writes its lines again.

    Attributes
    ----------
    topic
        The name of the topic.
    options
        The options of Spark's sink.

    """

    topic: str
    options: dict[str, str]

    @classmethod
    def of(cls, plan: Plan) -> Self | None:
        """The topic that a configuration names; None where it names none."""
        written = plan.config.predictions
        if not isinstance(written, KafkaSinkConfig):
            return None
        options = java_options(written.bootstrap_servers, written.options)
        if written.compression is not None:
            options["kafka.compression.type"] = written.compression
        return cls(written.topic, options)

    def write(self, lines: DataFrame) -> None:
        """Write lines, the column `part` of a data frame."""
        rows = lines.selectExpr("part as value")
        rows.write.format("kafka").options(**self.options).option("topic", self.topic).save()
