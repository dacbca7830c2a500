"""From the settings of a source or a sink to the connector that does it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from connectors.ports import Sink, Source, SourceError
from streamkernel.daemon.settings import config as settings
from streamkernel.daemon.settings.problems import ConfigError
from streamkernel.daemon.stream.lines import shortened

if TYPE_CHECKING:
    from streamkernel.daemon.settings.config import CheckpointConfig, Limits

__all__ = ["make_sink", "make_source", "order_log"]

# Each connector is imported where it is asked for: River's data sets alone bring scikit-learn and pandas with them.


def make_source(
    source: settings.Source, limits: Limits, key: str = "source", checkpoint: CheckpointConfig | None = None
) -> Source:
    """Make a source, unopened.

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
    try:
        if isinstance(source, settings.CsvSource):
            from connectors.files.csv import CsvSource

            return CsvSource(
                path=source.path,
                target=source.target,
                target_type=source.target_type,
                delimiter=source.delimiter,
                encoding=source.encoding,
                multiline=source.multiline,
                follow=source.follow,
                max_record_bytes=limits.max_record_bytes,
                max_string=limits.max_string,
            )
        if isinstance(source, settings.JsonlSource):
            from connectors.files.jsonlines import JsonLinesSource

            return JsonLinesSource(
                path=source.path,
                target=source.target,
                target_type=source.target_type,
                follow=source.follow,
                max_record_bytes=limits.max_record_bytes,
                max_string=limits.max_string,
            )
        if isinstance(source, settings.KafkaSource):
            from connectors.kafka.reading.source import KafkaSource

            return KafkaSource(
                topic=source.topic,
                bootstrap_servers=source.bootstrap_servers,
                partitions=source.partitions,
                start=source.start,
                on_gap=source.on_gap,
                include=source.include,
                target=source.target,
                target_type=source.target_type,
                options=source.options.given(),
                order_log=order_log(checkpoint, key) if checkpoint is not None and source.order == "logged" else None,
                checkpoints_kept=checkpoint.keep if checkpoint is not None else 1,
                max_record_bytes=limits.max_record_bytes,
                max_string=limits.max_string,
                max_batch_bytes=limits.max_batch_bytes,
            )
        from connectors.river import RiverSource

        return RiverSource(dataset=source.dataset, args=source.args, max_string=limits.max_string)
    except (SourceError, ValueError) as error:
        raise ConfigError([f"{key}: {error}"]) from None


def order_log(checkpoint: CheckpointConfig, key: str = "source") -> Path:
    """Tell where the order is logged in which the source at a key of the configuration hands out its partitions."""
    return Path(checkpoint.directory) / ("order.log" if key == "source" else f"order-{key.partition('.')[0]}.log")


def make_sink(sink: settings.Sink | settings.DeadLetters | None, key: str) -> Sink:
    """Make a sink, unopened; one that drops everything where there are no settings.

    Parameters
    ----------
    sink
        Its settings.
    key
        Where they stand in the configuration.

    Raises
    ------
    ConfigError
        Where its settings cannot be.

    """
    if isinstance(sink, settings.JsonlSink):
        from connectors.files.sinks import JsonLinesSink

        return JsonLinesSink(sink.path, sink.existing)
    if isinstance(sink, settings.CsvSink):
        from connectors.files.sinks import CsvSink

        return CsvSink(sink.path, sink.existing)
    if isinstance(sink, settings.KafkaSink):
        from connectors.kafka.writing.sink import KafkaSink

        try:
            return KafkaSink(
                topic=sink.topic,
                bootstrap_servers=sink.bootstrap_servers,
                transactional_id=sink.transactional_id,
                compression=sink.compression,
                options=sink.options.given(),
                existing=sink.existing,
                # A record that is too long for the topic must not stop the daemon.
                shorten=shortened if key == "dead_letters" else None,
            )
        except ValueError as error:
            raise ConfigError([f"{key}: {error}"]) from None
    from connectors.memory import NullSink

    return NullSink()
