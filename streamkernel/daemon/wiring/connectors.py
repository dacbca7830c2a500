"""Constructs the connector that a section of a source or a sink describes."""

from __future__ import annotations

from pathlib import Path

from connectors.ports import Sink, Source, SourceError
from streamkernel.daemon.config import schema as settings
from streamkernel.daemon.config.problems import ConfigError
from streamkernel.daemon.stream.line_schemas import dead_letter_schema, prediction_schema
from streamkernel.daemon.stream.lines import shortened

__all__ = ["make_sink", "make_source", "order_log"]

# Each connector is imported where it is asked for: River's data sets alone bring scikit-learn and pandas with them.


def make_source(
    source: settings.SourceConfig,
    limits: settings.LimitsConfig,
    key: str = "source",
    checkpoint: settings.CheckpointConfig | None = None,
) -> Source:
    """Return a source, unopened.

    Parameters
    ----------
    source, limits
        Its settings.
    key
        Where they stand in the configuration.
    checkpoint
        Where it may keep what a restart needs beside the checkpoint; None: nowhere.

    Raises
    ------
    ConfigError
        Where its settings cannot be.

    """
    # The fields of a section are arguments of its connector, but for those that the daemon makes something of.
    given = {
        name: value for name, value in source if name not in ("kind", "group", "order", "options", "schema_registry")
    }
    given["max_string"] = limits.max_string
    try:
        if isinstance(source, settings.RiverSourceConfig):
            from connectors.river import RiverSource

            return RiverSource(**given)
        given["max_record_bytes"] = limits.max_record_bytes
        if isinstance(source, settings.CsvSourceConfig):
            from connectors.files.csv import CsvSource

            return CsvSource(**given)
        if isinstance(source, settings.JsonlSourceConfig):
            from connectors.files.jsonlines import JsonLinesSource

            return JsonLinesSource(**given)
        from connectors.kafka.reading.source import KafkaSource

        return KafkaSource(
            **given,
            registry=None if source.schema_registry is None else source.schema_registry.settings(),
            options=source.options.given(),
            order_log=order_log(checkpoint, key) if checkpoint is not None and source.order == "logged" else None,
            checkpoints_kept=checkpoint.keep if checkpoint is not None else 1,
            max_batch_bytes=limits.max_batch_bytes,
        )
    except (SourceError, ValueError) as error:
        raise ConfigError([_line(key, error)]) from None


def order_log(checkpoint: settings.CheckpointConfig, key: str = "source") -> Path:
    """Return the file that logs the order in which the source at a key hands out its partitions."""
    return Path(checkpoint.directory) / ("order.log" if key == "source" else f"order-{key.partition('.')[0]}.log")


def make_sink(
    sink: settings.SinkConfig | settings.DeadLettersConfig | None, key: str, config: settings.Config | None = None
) -> Sink:
    """Return the sink of the section at a key, unopened; one that drops everything where there is no section.

    The whole configuration says what the labels are in lines that have a schema; without it they are text.

    Raises
    ------
    ConfigError
        Where its settings cannot be.

    """
    if isinstance(sink, settings.JsonlSinkConfig):
        from connectors.files.sinks import JsonLinesSink

        return JsonLinesSink(sink.path, sink.existing)
    if isinstance(sink, settings.CsvSinkConfig):
        from connectors.files.sinks import CsvSink

        return CsvSink(sink.path, sink.existing)
    if isinstance(sink, settings.KafkaSinkConfig):
        from connectors.kafka.writing.sink import KafkaSink

        apart = ("kind", "options", "max_rate", "max_rate_window", "schema_registry")
        given = {name: value for name, value in sink if name not in apart}
        schema = dead_letter_schema() if key == "dead_letters" else prediction_schema(_label_type(config))
        try:
            return KafkaSink(
                **given,
                registry=None if sink.schema_registry is None else sink.schema_registry.settings(),
                schema=schema,
                options=sink.options.given(),
                # A record that is too long for the topic must not stop the daemon.
                shorten=shortened if key == "dead_letters" else None,
            )
        except ValueError as error:
            raise ConfigError([_line(key, error)]) from None
    from connectors.memory import NullSink

    return NullSink()


def _line(key: str, error: Exception) -> str:
    """Return the line of an error in the section at a key, some of which begin with a key below it."""
    return f"{key}.{error}" if str(error).startswith("schema_registry") else f"{key}: {error}"


def _label_type(config: settings.Config | None) -> settings.TargetType:
    """Return the type of the labels; text where a data set of River alone knows it."""
    if config is None:
        return "str"
    source = config.source if config.labels is None else config.labels.source
    return "str" if isinstance(source, settings.RiverSourceConfig) else source.target_type
