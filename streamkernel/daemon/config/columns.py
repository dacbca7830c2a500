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
    """A column of the record that passes through to the line; its name alone stands for a section."""

    column: Annotated[str, Field(min_length=1)] = Field(
        description="Its name in the source, whether it is an input or not; nested values with dots between. Of a "
        "message of Kafka also `kafka.key`, `kafka.timestamp`, `kafka.headers` and `kafka.header.NAME`."
    )
    name: Annotated[str, Field(min_length=1)] | None = Field(
        default=None, description="Its name in the line; null: the same."
    )
    type: Literal["str", "int", "float", "bool", "timestamp"] | None = Field(
        default=None,
        description="What its values are; null: as the source has them, text in CSV. A timestamp is ISO 8601 or a "
        "number of seconds or milliseconds since 1970. What is not of the type is null.",
    )


class PassingColumnsConfig(Section):
    """Predictions whose lines have columns of their records, and of several models."""

    models: Literal["published", "all"] = Field(
        default="published",
        description="Of several models, whose predictions a line has: that of the published one, or under the key "
        "models those of the others, too.",
    )

    include: list[Annotated[IncludedColumnConfig, BeforeValidator(_named)]] = Field(
        default_factory=list, description="Columns of the record that pass through to the line, such as an id."
    )


class ClassColumnsConfig(Section):
    """Predictions in a table, with a column for each class."""

    classes: list[bool | int | str] = Field(
        default_factory=list,
        description="Classes with a column of their own for their probability, beside one for all others; empty: one "
        "column for the probabilities of all classes.",
    )


class KafkaPredictionsConfig(PassingColumnsConfig, KafkaSinkConfig):
    """Predictions to a topic of Kafka, one JSON object or value of a schema registry a message, each exactly once."""

    key: Literal["position", "source"] = Field(
        default="position",
        description="The key of a message: one for each record, or that of the message that the record came in.",
    )
    pass_through: list[Literal["headers", "timestamp"]] = Field(
        default_factory=list, description="What else the message takes over from the one that the record came in."
    )


class ParquetPredictionsConfig(ClassColumnsConfig, PassingColumnsConfig):
    """Predictions to a folder of Parquet files (extra `parquet`)."""

    kind: Literal["parquet"]
    path: Path = Field(description="The folder; its files are part-00000000.parquet and so on.")
    roll_seconds: Annotated[Number, Field(gt=0)] | None = Field(
        default=None, description="How long a part is filled, in seconds; null: until the next checkpoint."
    )
    compression: Literal["zstd", "snappy", "gzip", "none"] = Field(
        default="zstd", description="How the parts are compressed."
    )
    existing: Literal["refuse", "append", "replace"] = Field(
        default="refuse", description="What becomes of parts in the folder that no checkpoint knows."
    )
