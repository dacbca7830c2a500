"""Constructs the connector of a section of a source or a sink, and lets the columns pass that predictions include."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from streamkernel.connectors.pass_through import PassedColumn
from streamkernel.connectors.ports import SettingError, Sink, Source, SourceError
from streamkernel.connectors.target_columns import names_of
from streamkernel.daemon.base.model import OF_EACH
from streamkernel.daemon.config import schema as settings
from streamkernel.daemon.config.outputs import PassingColumnsConfig
from streamkernel.daemon.config.plan import Plan
from streamkernel.daemon.config.problems import ConfigError, Problem
from streamkernel.daemon.stream.line_schemas import dead_letter_schema, prediction_schema
from streamkernel.daemon.stream.lines import LongColumns, shortened

__all__ = ["let_pass", "make_sink", "make_source", "order_log", "passed_columns", "target_type_of"]

_TIMESTAMP = "kafka.timestamp"
# The keys of a section that are no arguments of its connector.
_NOT_OF_SOURCES = ("kind", "group", "order", "options", "schema_registry")
_NOT_OF_TOPICS = (
    *("kind", "options", "max_rate", "max_rate_window", "at_start"),
    *("include", "models", "schema_registry", "flush_seconds"),
)


# Each connector is imported where it is asked for: River's data sets alone bring scikit-learn and pandas with them.


def make_source(
    source: settings.SourceConfig,
    limits: settings.LimitsConfig,
    key: str = "source",
    checkpoint: settings.CheckpointConfig | None = None,
    mode: str = "learn",
) -> Source:
    """Return a source, unopened.

    Parameters
    ----------
    source, limits
        The section of the source, and the limits of its records.
    key
        The key of the section.
    checkpoint
        The source may store what a restart needs in this directory; None: nowhere.
    mode
        In mode predict, records need no target.

    Raises
    ------
    ConfigError
        If its settings cannot be used.

    """
    # The other fields of a section are arguments of its connector.
    given = {name: value for name, value in source if name not in _NOT_OF_SOURCES}
    given["max_string"] = limits.max_string
    try:
        if isinstance(source, settings.RiverSourceConfig):
            from streamkernel.connectors.river import RiverSource

            return RiverSource(**given)
        given["max_record_bytes"] = limits.max_record_bytes
        given["inputs"] = None if source.inputs is None else source.inputs.settings()
        if isinstance(source, settings.CsvSourceConfig):
            from streamkernel.connectors.files.csv import CsvSource

            given["target_required"] = mode == "learn" or key != "source"
            return CsvSource(**given)
        if isinstance(source, settings.JsonlSourceConfig):
            from streamkernel.connectors.files.source import JsonLinesSource

            return JsonLinesSource(**given)
        if isinstance(source, settings.JournalSourceConfig):
            from streamkernel.connectors.journal.source import JournalSource

            return JournalSource(**given, checkpoints_kept=0 if checkpoint is None else checkpoint.keep)
        with _extra("kafka", key):
            from streamkernel.connectors.kafka.reading.source import KafkaSource

        return KafkaSource(
            **given,
            registry=None if source.schema_registry is None else source.schema_registry.settings(),
            options=source.options.given(),
            order_log=order_log(checkpoint, key) if checkpoint is not None and source.order == "logged" else None,
            checkpoints_kept=checkpoint.keep if checkpoint is not None else 1,
        )
    except (SourceError, ValueError) as error:
        raise ConfigError(_problem(key, error)) from None


def order_log(checkpoint: settings.CheckpointConfig, key: str = "source") -> Path:
    """Return the file that logs the order in which the source at a key hands out its partitions."""
    return Path(checkpoint.directory) / ("order.log" if key == "source" else f"order-{key.partition('.')[0]}.log")


def make_sink(
    sink: settings.PredictionsConfig | settings.DeadLettersConfig | settings.KafkaSinkConfig | None,
    key: str,
    targets: settings.TargetType | tuple[str, ...] = "str",
    mode: str = "learn",
    several_models: bool = False,
) -> Sink:
    """Return the unopened sink of the section at a key; without a section, one that drops everything.

    A table and a schema have fields for targets of this type, and for the names of several models; of mode predict, a
    table has the checkpoint as well. CSV has columns for each of several targets.

    Raises
    ------
    ConfigError
        If its settings cannot be used.

    """
    several = () if isinstance(targets, str) else targets
    kind: settings.TargetType = targets if isinstance(targets, str) else "str"
    names = tuple(column.name for column in passed_columns(sink)) if isinstance(sink, PassingColumnsConfig) else ()
    if isinstance(sink, settings.ParquetPredictionsConfig):
        with _extra("parquet", key):
            from streamkernel.connectors.parquet.columns import prediction_columns
            from streamkernel.connectors.parquet.sink import ParquetSink
        of_models = _model_columns(sink) if several_models else []
        passed = [*of_models, *passed_columns(sink)]
        columns = prediction_columns(kind, sink.classes, passed, checkpoint=mode == "predict")
        return ParquetSink(sink.path, columns, sink.classes, sink.existing, sink.roll_seconds, sink.compression)
    if isinstance(sink, settings.JsonlSinkConfig):
        from streamkernel.connectors.files.sinks import JsonLinesSink

        return JsonLinesSink(sink.path, sink.existing)
    if isinstance(sink, settings.CsvSinkConfig):
        from streamkernel.connectors.files.sinks import CsvSink

        if isinstance(sink, settings.CsvPredictionsConfig):
            added = [one.name for one in _model_columns(sink)] if several_models else []
            return CsvSink(sink.path, sink.existing, sink.classes, names, added, several)
        return CsvSink(sink.path, sink.existing)
    if isinstance(sink, settings.KafkaSinkConfig):
        with _extra("kafka", key):
            from streamkernel.connectors.kafka.writing.sink import KafkaSink

        given = {name: value for name, value in sink if name not in _NOT_OF_TOPICS}
        passed = passed_columns(sink) if isinstance(sink, PassingColumnsConfig) else []
        lines = prediction_schema(kind, passed, several_models=several_models)
        try:
            return KafkaSink(
                **given,
                registry=None if sink.schema_registry is None else sink.schema_registry.settings(),
                schema=dead_letter_schema() if key == "dead_letters" else lines,
                options=sink.options.given(),
                # A record that is too long for the topic must not stop the daemon.
                shorten=shortened if key == "dead_letters" else LongColumns(names) if names else None,
            )
        except ValueError as error:
            raise ConfigError(_problem(key, error)) from None
    from streamkernel.connectors.memory import NullSink

    return NullSink()


def passed_columns(output: PassingColumnsConfig) -> list[PassedColumn]:
    """Return the columns that pass through to an output; the time of a message is a timestamp by default."""
    return [
        PassedColumn(
            one.column,
            one.name or one.column,
            "timestamp" if one.type is None and one.column == _TIMESTAMP else one.type,
        )
        for one in output.include
    ]


def _model_columns(output: PassingColumnsConfig) -> list[PassedColumn]:
    """Return the columns that lines of several models have in an output: a name, and the others as JSON."""
    names = ["model", *(["models"] if output.models == "all" else [])]
    return [PassedColumn(name, name, "str") for name in names]


def let_pass(source: Source, config: settings.Config) -> None:
    """Set which columns of records and messages an unopened source passes through.

    Raises
    ------
    SourceError
        If the source has no such column.

    """
    output = config.predictions
    if not isinstance(output, PassingColumnsConfig):
        return
    message = (
        isinstance(config.source, settings.KafkaSourceConfig)
        and isinstance(output, settings.KafkaPredictionsConfig)
        and bool(output.key == "source" or output.pass_through)
    )
    if output.include or message:
        source.pass_through(passed_columns(output), message=message)


def target_type_of(plan: Plan) -> settings.TargetType | tuple[str, ...]:
    """Return the type of the targets of a run; for several targets, their names."""
    if plan.task in OF_EACH:
        return names_of(getattr(plan.config.source, "target", None))
    if plan.task != "classification":
        return "float"
    source = plan.config.source if plan.config.labels is None else plan.config.labels.source
    return getattr(source, "target_type", "str")


@contextmanager
def _extra(kind: str, key: str) -> Iterator[None]:
    """Import a connector whose libraries are an extra, which has the name of its kind."""
    try:
        yield
    except ImportError:
        why = f"{kind} needs libraries that are not installed: pip install 'streamkernel[{kind}]'"
        raise ConfigError(Problem(f"{key}.kind", why)) from None


def _problem(key: str, error: Exception) -> Problem:
    """Return the problem of a connector with the section at a key, or with one of its settings."""
    if isinstance(error, SettingError):
        return Problem(f"{key}.{error.setting}", error.message)
    return Problem(key, str(error))
