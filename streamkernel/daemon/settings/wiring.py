"""From the settings of a source or a sink to the connector that does it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from connectors.ports import Sink, Source, SourceError
from streamkernel.daemon.settings import config as settings
from streamkernel.daemon.settings.problems import ConfigError

if TYPE_CHECKING:
    from streamkernel.daemon.settings.config import Config

__all__ = ["make_sink", "make_source"]

# Each connector is imported where it is asked for: River's data sets alone bring scikit-learn and pandas with them.


def make_source(config: Config) -> Source:
    """Make the source, unopened.

    Raises
    ------
    ConfigError
        Where its settings cannot be.

    """
    source, limits = config.source, config.limits
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
        from connectors.river import RiverSource

        return RiverSource(dataset=source.dataset, args=source.args, max_string=limits.max_string)
    except (SourceError, ValueError) as error:
        raise ConfigError([f"source: {error}"]) from None


def make_sink(sink: settings.Sink | settings.DeadLetters | None) -> Sink:
    """Make a sink, unopened; one that drops everything where there are no settings."""
    if isinstance(sink, settings.JsonlSink):
        from connectors.files.sinks import JsonLinesSink

        return JsonLinesSink(sink.path)
    if isinstance(sink, settings.CsvSink):
        from connectors.files.sinks import CsvSink

        return CsvSink(sink.path)
    from connectors.memory import NullSink

    return NullSink()
