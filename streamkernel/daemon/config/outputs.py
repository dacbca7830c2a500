"""The sections of outputs: files and topics for lines, the columns of predictions, and the rate of dead letters."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BeforeValidator, Field

from streamkernel.daemon.config.fields import Number, Path, Positive, Section
from streamkernel.daemon.config.kafka import KafkaSinkConfig

__all__ = [
    "ClassColumnsConfig",
    "CsvDeadLettersConfig",
    "CsvPredictionsConfig",
    "CsvSinkConfig",
    "DeadLettersConfig",
    "FileSinkConfig",
    "IncludedColumnConfig",
    "JsonlDeadLettersConfig",
    "JsonlPredictionsConfig",
    "JsonlSinkConfig",
    "KafkaDeadLettersConfig",
    "KafkaPredictionsConfig",
    "NoDeadLettersConfig",
    "NoSinkConfig",
    "ParquetPredictionsConfig",
    "PassingColumnsConfig",
    "PredictionsConfig",
]


class FileSinkConfig(Section):
    path: Path = Field(description="The file. '-' is standard output. .gz and .zst are compressed.")
    existing: Literal["refuse", "append", "replace"] = Field(
        default="refuse",
        description="What to do with a non-empty file that no checkpoint knows. The default is replace in mode "
        "predict without its own checkpoint.directory.",
    )
    flush_seconds: Annotated[Number, Field(ge=0)] = Field(
        default=1.0,
        description="The maximum delay in seconds from reading a record until its line is visible in the file. The "
        "line is durable with the next checkpoint. Standard output and pipes get it immediately, a compressed file "
        "with the checkpoint.",
    )


class JsonlSinkConfig(FileSinkConfig):
    """Lines to a file with one JSON object a line."""

    kind: Literal["jsonl"]


class CsvSinkConfig(FileSinkConfig):
    """Lines to a CSV file."""

    kind: Literal["csv"]


class NoSinkConfig(Section):
    """Writes no lines."""

    kind: Literal["none"]


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


class JsonlPredictionsConfig(PassingColumnsConfig, JsonlSinkConfig):
    """Writes predictions to a file, one JSON object per line."""


class CsvPredictionsConfig(ClassColumnsConfig, PassingColumnsConfig, CsvSinkConfig):
    """Writes predictions to a CSV file."""


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


class _Rate(Section):
    max_rate: Annotated[Number, Field(ge=0, le=1)] = Field(
        default=0.5,
        description="Stop when more than this share of the last max_rate_window records are dead letters. For a "
        "shorter finite source, all its records count.",
    )
    max_rate_window: Positive = Field(default=1000, description="The number of last records that max_rate considers.")
    at_start: Literal["stop", "go_on"] = Field(
        default="stop",
        description="What to do if the first 50 records are all dead letters: stop, or warn and continue. With "
        "max_rate: 1, the run continues.",
    )


class JsonlDeadLettersConfig(_Rate, JsonlSinkConfig):
    """Writes dead letters to a file, one JSON object per line."""


class CsvDeadLettersConfig(_Rate, CsvSinkConfig):
    """Writes dead letters to a CSV file."""


class KafkaDeadLettersConfig(_Rate, KafkaSinkConfig):
    """Writes dead letters to a Kafka topic, one JSON object per message."""


class NoDeadLettersConfig(_Rate, NoSinkConfig):
    """Counts dead letters without storing them."""


PredictionsConfig: TypeAlias = (
    JsonlPredictionsConfig | CsvPredictionsConfig | KafkaPredictionsConfig | ParquetPredictionsConfig | NoSinkConfig
)
DeadLettersConfig: TypeAlias = (
    JsonlDeadLettersConfig | CsvDeadLettersConfig | KafkaDeadLettersConfig | NoDeadLettersConfig
)
