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
    path: Path = Field(description="The file. '-' is standard output. .gz and .zst are compressed.")
    existing: Literal["refuse", "append", "replace"] = Field(
        default="refuse",
        description="What to do with a non-empty file that no checkpoint knows. The default is replace in mode "
        "predict without its own checkpoint.directory.",
    )
    flush_seconds: Annotated[Number, Field(gt=0)] = Field(
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


class JsonlPredictionsConfig(PassingColumnsConfig, JsonlSinkConfig):
    """Writes predictions to a file, one JSON object per line."""


class CsvPredictionsConfig(ClassColumnsConfig, PassingColumnsConfig, CsvSinkConfig):
    """Writes predictions to a CSV file."""


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
