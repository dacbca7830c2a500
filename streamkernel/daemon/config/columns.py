"""What a configuration says about the columns of predictions: what of a record and its message passes through."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from streamkernel.daemon.config.fields import Number, Path, Section
from streamkernel.daemon.config.kafka import KafkaSinkConfig

__all__ = [
    "ClassColumnsConfig",
    "IncludedColumnConfig",
    "KafkaPredictionsConfig",
    "ParquetPredictionsConfig",
    "PassingColumnsConfig",
]


def _named(value: Any) -> Any:
    return {"column": value} if isinstance(value, str) else value


class IncludedColumnConfig(Section):
    """A column of the record to pass through to the line. A name alone is short for a section."""

    column: Annotated[str, Field(min_length=1)] = Field(
        description="Its name in the source. It need not be an input. Use dots for nested values. For a Kafka "
        "message also `kafka.key`, `kafka.timestamp`, `kafka.headers` and `kafka.header.NAME`."
    )
    name: Annotated[str, Field(min_length=1)] | None = Field(
        default=None, description="Its name in the line. null: the same name."
    )
    type: Literal["str", "int", "float", "bool", "timestamp"] | None = Field(
        default=None,
        description="The type of its values. null: the type in the source, which is text for CSV. A timestamp is ISO "
        "8601, or seconds or milliseconds since 1970. A value of another type becomes null.",
    )


class PassingColumnsConfig(Section):
    """Predictions whose lines have columns of their records, and of several models."""

    models: Literal["published", "all"] = Field(
        default="published",
        description="With several models: published writes the published model's prediction. all adds the other "
        "models' predictions under the key models.",
    )

    include: list[Annotated[IncludedColumnConfig, BeforeValidator(_named)]] = Field(
        default_factory=list, description="Columns of the record to pass through to the line, such as an ID."
    )


class ClassColumnsConfig(Section):
    """Predictions in a table, with a column for each class."""

    classes: list[bool | int | str] = Field(
        default_factory=list,
        description="Classes that get their own probability column. One more column has the probability of all "
        "others. Empty: one column for the probabilities of all classes.",
    )


class KafkaPredictionsConfig(PassingColumnsConfig, KafkaSinkConfig):
    """Writes each prediction to a Kafka topic exactly once, as a JSON object or a value of a schema registry."""

    key: Literal["position", "source"] = Field(
        default="source",
        description="The message key: source is the key of the source message. position is unique for each record, and "
        "always used if the source is not a topic.",
    )
    pass_through: list[Literal["headers", "timestamp"]] = Field(
        default_factory=list, description="What else to copy from the source message."
    )


class ParquetPredictionsConfig(ClassColumnsConfig, PassingColumnsConfig):
    """Writes predictions to a folder of Parquet files (extra `parquet`)."""

    kind: Literal["parquet"]
    path: Path = Field(description="The folder. Its files are part-00000000.parquet and so on.")
    roll_seconds: Annotated[Number, Field(gt=0)] | None = Field(
        default=None, description="How long to fill a part, in seconds. null: until the next checkpoint."
    )
    compression: Literal["zstd", "snappy", "gzip", "none"] = Field(
        default="zstd", description="The compression of the parts."
    )
    existing: Literal["refuse", "append", "replace"] = Field(
        default="refuse", description="What to do with parts in the folder that no checkpoint knows."
    )
