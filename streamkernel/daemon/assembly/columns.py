"""Lets a source hand out what passes through to the lines of the predictions."""

from __future__ import annotations

from streamkernel.connectors.pass_through import PassedColumn
from streamkernel.connectors.ports import Source
from streamkernel.connectors.target_columns import names_of
from streamkernel.daemon.base.model import OF_EACH
from streamkernel.daemon.config.columns import KafkaPredictionsConfig, PassingColumnsConfig
from streamkernel.daemon.config.plan import Plan
from streamkernel.daemon.config.schema import Config, KafkaSourceConfig, TargetType

__all__ = ["included_names", "let_pass", "model_columns", "passed_columns", "target_type_of"]

_TIMESTAMP = "kafka.timestamp"


def passed_columns(output: PassingColumnsConfig) -> list[PassedColumn]:
    """Return the columns that pass through to an output; the time of a message is a timestamp unless it says more."""
    return [
        PassedColumn(
            one.column,
            one.name or one.column,
            "timestamp" if one.type is None and one.column == _TIMESTAMP else one.type,
        )
        for one in output.include
    ]


def model_columns(output: PassingColumnsConfig) -> list[PassedColumn]:
    """Return the columns that lines of several models have in an output: a name, and the others as JSON."""
    names = ["model", *(["models"] if output.models == "all" else [])]
    return [PassedColumn(name, name, "str") for name in names]


def included_names(output: PassingColumnsConfig) -> tuple[str, ...]:
    """Return the names that these columns have in a line."""
    return tuple(column.name for column in passed_columns(output))


def let_pass(source: Source, config: Config) -> None:
    """Tell the source of the records, which is not open yet, what is to pass through; nothing where nothing is.

    Raises
    ------
    SourceError
        Where the source has no such thing.

    """
    output = config.predictions
    if not isinstance(output, PassingColumnsConfig):
        return
    message = (
        isinstance(config.source, KafkaSourceConfig)
        and isinstance(output, KafkaPredictionsConfig)
        and bool(output.key == "source" or output.pass_through)
    )
    if output.include or message:
        source.pass_through(passed_columns(output), message=message)


def target_type_of(plan: Plan) -> TargetType | tuple[str, ...]:
    """Return what the targets of a run are: what the source says, or what the model learns; of several their names."""
    if plan.task in OF_EACH:
        return names_of(getattr(plan.config.source, "target", None))
    if plan.task != "classification":
        return "float"
    source = plan.config.source if plan.config.labels is None else plan.config.labels.source
    return getattr(source, "target_type", "str")
