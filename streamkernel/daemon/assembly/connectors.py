"""Constructs the connector of a section of a source or a sink, and lets the columns pass that predictions include."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from streamkernel.connectors.pass_through import PassedColumn
from streamkernel.connectors.ports import SettingError, Sink, Source, SourceError
from streamkernel.connectors.target_columns import names_of
from streamkernel.daemon.base.model import OF_EACH
from streamkernel.daemon.components.late_labels import label_source
from streamkernel.daemon.components.predict_mode import names_checkpoints, needs_target
from streamkernel.daemon.components.several_models import model_columns
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
    config: settings.Config,
    key: str = "source",
    checkpoint: settings.CheckpointConfig | None = None,
) -> Source:
    """Return a source, unopened.

    Parameters
    ----------
    source
        The section of the source.
    config
        The configuration, which limits the records.
    key
        The key of the section.
    checkpoint
        The source may store what a restart needs in this directory; None: nowhere.

    Raises
    ------
    ConfigError
        If its settings cannot be used.

    """
    # The other fields of a section are arguments of its connector.
    given = {name: value for name, value in source if name not in _NOT_OF_SOURCES}
    given["max_string"] = config.limits.max_string
    try:
        if isinstance(source, settings.RiverSourceConfig):
            from streamkernel.connectors.river import RiverSource

            return RiverSource(**given)
        given["max_record_bytes"] = config.limits.max_record_bytes
        given["inputs"] = None if source.inputs is None else source.inputs.settings()
        if isinstance(source, settings.CsvSourceConfig):
            from streamkernel.connectors.files.csv import CsvSource

            given["target_required"] = needs_target(config, key)
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
    plan: Plan | None = None,
) -> Sink:
    """Return the unopened sink of the section at a key; without a section, one that drops everything.

    What lines have depends on the plan: the type or the columns of targets, the names of several models, and the
    checkpoint of a trained one. Without a plan, targets are text, and lines have none of the others.

    Raises
    ------
    ConfigError
        If its settings cannot be used.

    """
    targets = "str" if plan is None else target_type_of(plan)
    of_models = [] if plan is None else model_columns(plan.config)
    several = () if isinstance(targets, str) else targets
    kind: settings.TargetType = targets if isinstance(targets, str) else "str"
    names = tuple(column.name for column in passed_columns(sink)) if isinstance(sink, PassingColumnsConfig) else ()
    if isinstance(sink, settings.ParquetPredictionsConfig):
        with _extra("parquet", key):
            from streamkernel.connectors.parquet.columns import prediction_columns
            from streamkernel.connectors.parquet.sink import ParquetSink
        passed = [*(PassedColumn(name, name, "str") for name in of_models), *passed_columns(sink)]
        checkpoint = plan is not None and names_checkpoints(plan.config)
        columns = prediction_columns(kind, sink.classes, passed, checkpoint=checkpoint)
        return ParquetSink(sink.path, columns, sink.classes, sink.existing, sink.roll_seconds, sink.compression)
    if isinstance(sink, settings.JsonlSinkConfig):
        from streamkernel.connectors.files.sinks import JsonLinesSink

        return JsonLinesSink(sink.path, sink.existing)
    if isinstance(sink, settings.CsvSinkConfig):
        from streamkernel.connectors.files.sinks import CsvSink

        if isinstance(sink, settings.CsvPredictionsConfig):
            return CsvSink(sink.path, sink.existing, sink.classes, names, of_models, several)
        return CsvSink(sink.path, sink.existing)
    if isinstance(sink, settings.KafkaSinkConfig):
        with _extra("kafka", key):
            from streamkernel.connectors.kafka.writing.sink import KafkaSink

        given = {name: value for name, value in sink if name not in _NOT_OF_TOPICS}
        passed = passed_columns(sink) if isinstance(sink, PassingColumnsConfig) else []
        lines = prediction_schema(kind, passed, several_models=bool(of_models))
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
    return getattr(label_source(plan.config), "target_type", "str")


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
