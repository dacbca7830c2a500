"""What a configuration says about an output: files for the lines, and what predictions and dead letters add."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from streamkernel.daemon.config.columns import (
    ClassColumnsConfig,
    KafkaPredictionsConfig,
    ParquetPredictionsConfig,
    PassingColumnsConfig,
)
from streamkernel.daemon.config.fields import Number, Path, Positive, Section
from streamkernel.daemon.config.kafka import KafkaSinkConfig

__all__ = [
    "CsvDeadLettersConfig",
    "CsvPredictionsConfig",
    "CsvSinkConfig",
    "DeadLettersConfig",
    "FileSinkConfig",
    "JsonlDeadLettersConfig",
    "JsonlPredictionsConfig",
    "JsonlSinkConfig",
    "KafkaDeadLettersConfig",
    "NoDeadLettersConfig",
    "NoSinkConfig",
    "PredictionsConfig",
]


class FileSinkConfig(Section):
    path: Path = Field(description="The file; '-' is standard output; .gz and .zst are compressed.")
    existing: Literal["refuse", "append", "replace"] = Field(
        default="refuse",
        description="What becomes of a file that holds something and that no checkpoint knows. In mode predict without "
        "a checkpoint.directory of its own, replace is the default.",
    )
    flush_seconds: Annotated[Number, Field(gt=0)] = Field(
        default=1.0,
        description="How long after a record was read others can read its line in the file, in seconds; with a "
        "checkpoint it is durable. Standard output and pipes get it at once, a compressed file with the checkpoint.",
    )


class JsonlSinkConfig(FileSinkConfig):
    """Lines to a file with one JSON object a line."""

    kind: Literal["jsonl"]


class CsvSinkConfig(FileSinkConfig):
    """Lines to a CSV file."""

    kind: Literal["csv"]


class NoSinkConfig(Section):
    """Lines to nowhere."""

    kind: Literal["none"]


class JsonlPredictionsConfig(PassingColumnsConfig, JsonlSinkConfig):
    """Predictions to a file with one JSON object a line."""


class CsvPredictionsConfig(ClassColumnsConfig, PassingColumnsConfig, CsvSinkConfig):
    """Predictions to a CSV file."""


class _Rate(Section):
    max_rate: Annotated[Number, Field(ge=0, le=1)] = Field(
        default=0.5,
        description="Stop when more than this share of the last max_rate_window records, or of all of a shorter source "
        "that ends, were dead letters.",
    )
    max_rate_window: Positive = Field(default=1000, description="How many records max_rate looks back.")
    at_start: Literal["stop", "go_on"] = Field(
        default="stop",
        description="What becomes of a run whose first 50 records are all dead letters: it stops, or warns and goes "
        "on. With max_rate: 1 it goes on.",
    )


class JsonlDeadLettersConfig(_Rate, JsonlSinkConfig):
    """Records that could not be used, to a file with one JSON object a line."""


class CsvDeadLettersConfig(_Rate, CsvSinkConfig):
    """Records that could not be used, to a CSV file."""


class KafkaDeadLettersConfig(_Rate, KafkaSinkConfig):
    """Records that could not be used, to a topic of Kafka, one JSON object a message."""


class NoDeadLettersConfig(_Rate, NoSinkConfig):
    """Records that could not be used are counted, and not kept."""


PredictionsConfig: TypeAlias = (
    JsonlPredictionsConfig | CsvPredictionsConfig | KafkaPredictionsConfig | ParquetPredictionsConfig | NoSinkConfig
)
DeadLettersConfig: TypeAlias = (
    JsonlDeadLettersConfig | CsvDeadLettersConfig | KafkaDeadLettersConfig | NoDeadLettersConfig
)
