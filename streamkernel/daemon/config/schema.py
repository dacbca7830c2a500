"""The configuration of the daemon: what a YAML file may say, and the defaults of what it leaves out."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BeforeValidator, ConfigDict, Field, WithJsonSchema

from streamkernel.daemon.config.endpoints import BasicAuthConfig, EndpointConfig, ServeConfig, TlsConfig
from streamkernel.daemon.config.fields import ColumnName, Number, Path, Positive, Section, TargetType, Whole, must
from streamkernel.daemon.config.kafka import KafkaSinkConfig, KafkaSourceConfig
from streamkernel.daemon.config.outputs import (
    CsvPredictionsConfig,
    CsvSinkConfig,
    DeadLettersConfig,
    FileSinkConfig,
    JsonlPredictionsConfig,
    JsonlSinkConfig,
    KafkaPredictionsConfig,
    NoDeadLettersConfig,
    NoSinkConfig,
    ParquetPredictionsConfig,
    PredictionsConfig,
)
from streamkernel.daemon.config.sources import (
    CsvSourceConfig,
    JournalSourceConfig,
    JsonlSourceConfig,
    RiverSourceConfig,
    SourceConfig,
)

__all__ = [
    "BasicAuthConfig",
    "CheckpointConfig",
    "Config",
    "CsvPredictionsConfig",
    "CsvSinkConfig",
    "CsvSourceConfig",
    "DeadLettersConfig",
    "EndpointConfig",
    "InitialModelConfig",
    "JournalSourceConfig",
    "JsonlPredictionsConfig",
    "JsonlSinkConfig",
    "JsonlSourceConfig",
    "KafkaPredictionsConfig",
    "KafkaSinkConfig",
    "KafkaSourceConfig",
    "LabelsConfig",
    "LimitsConfig",
    "LogConfig",
    "MetricsConfig",
    "NoDeadLettersConfig",
    "NoSinkConfig",
    "ParquetPredictionsConfig",
    "PredictionsConfig",
    "ReportName",
    "RiverSourceConfig",
    "ServeConfig",
    "SourceConfig",
    "TargetType",
    "TlsConfig",
    "WarmStartConfig",
]


def _octal(mode: Any) -> Any:
    # YAML reads 0640 as the number it is in octal, and 640 as six hundred and forty.
    return {0o600: "0600", 0o640: "0640", 600: "0600", 640: "0640"}.get(mode, mode) if type(mode) is int else mode


_package = must("be the name of a Python package", lambda name: all(map(str.isidentifier, name.split("."))))
_model_name = must("be a name of at most 64 letters, digits, _ and -", re.compile(r"[\w-]{1,64}").fullmatch)

ReportName: TypeAlias = Literal["accuracy", "macro_f1", "log_loss", "mae", "rmse", "r2", "flagged"]

_STEP_SCHEMA = {
    "oneOf": [
        {"type": "string", "pattern": r"^\w+(\.\w+)+$"},
        {
            "type": "object",
            "minProperties": 1,
            "maxProperties": 1,
            "patternProperties": {r"^\w+(\.\w+)+$": {"type": ["object", "null"]}},
            "additionalProperties": False,
        },
    ]
}
# Steps are validated in assembly/model.py, which knows the classes; here they only need a place in the JSON Schema.
Step: TypeAlias = Annotated[Any, WithJsonSchema(_STEP_SCHEMA)]


class CheckpointConfig(Section):
    """Where and how often the daemon saves its state."""

    directory: Path = Field(description="A folder that only this daemon uses.")
    every_records: Positive = Field(default=100_000, description="Save after this many records.")
    every_seconds: Annotated[Number, Field(gt=0)] = Field(default=30.0, description="Save after this many seconds.")
    keep: Positive = Field(default=3, description="How many checkpoints to keep.")
    mode: Annotated[Literal["0600", "0640"], BeforeValidator(_octal)] = Field(
        default="0600", description="File permissions. 0640: the directory's group may read them."
    )


class InitialModelConfig(Section):
    """The trained model that a run begins with if it has no checkpoint yet."""

    checkpoint: Path = Field(
        description="A checkpoint directory or file of another run. The daemon only reads it, and uses only the model."
    )


class WarmStartConfig(Section):
    """A finite source that the model learns before the first record of the main source."""

    source: Annotated[
        SourceConfig,
        Field(
            discriminator="kind",
            description="The source. The daemon writes no predictions for it, and counts its records separately.",
        ),
    ]
    refit: bool | None = Field(
        default=None,
        description="Whether to refit each streamkernel.WindowRefit model on its window after the last record of "
        "this source. null: yes.",
    )


class LabelsConfig(Section):
    """Late labels from a separate source. The daemon predicts a record immediately, and learns it with its label."""

    source: Annotated[SourceConfig, Field(discriminator="kind", description="Where the labels come from.")]
    key: Annotated[ColumnName, Field(min_length=1)] = Field(
        description="The field that joins records and labels. It is not a model input."
    )
    timeout_seconds: Annotated[Number, Field(gt=0)] = Field(
        default=86_400.0, description="How long a record waits for its label, in seconds of daemon run time."
    )
    max_pending: Positive = Field(
        default=100_000, description="How many records may wait for labels, and labels for records."
    )
    max_pending_bytes: Positive = Field(
        default=2**28,
        description="How many bytes of records may wait, and how many of labels. Names, text, and 16 bytes for each "
        "input count.",
    )


class MetricsConfig(EndpointConfig):
    """The HTTP endpoint: /metrics, /healthz, /readyz, a status page, and its JSON at /api/status."""

    port: Annotated[Whole, Field(ge=0, le=65535)] = Field(
        default=9108, description="The port. 0 picks a free one and logs it."
    )
    window: Positive = Field(
        default=1000, description="The number of last records in the rolling metrics and progressive_loss."
    )
    max_classes: Positive = Field(
        default=1000, description="How many classes the report metrics distinguish. Further ones count as one class."
    )
    report: list[ReportName] | None = Field(
        default=None, description="The metrics to report. null: all that fit the model."
    )
    dead_letter_chars: Annotated[Whole, Field(ge=0, le=10_000)] = Field(
        default=200,
        description="How many characters of a dead letter's record the status page shows. 0: none.",
    )


class LimitsConfig(Section):
    """Limits on a record, beyond which it is a dead letter, and on the lines that wait for an output."""

    max_record_bytes: Positive = Field(default=1_048_576, description="The maximum length of a record, in bytes.")
    max_string: Positive = Field(default=256, description="The maximum length of a string value, in characters.")
    max_waiting_bytes: Annotated[Whole, Field(ge=2**20)] = Field(
        default=2**26,
        description="How many bytes of lines may wait in memory for an output. Beyond that, the daemon stops reading.",
    )
    max_inputs: Annotated[Positive, Field(le=1_000_000)] = Field(
        default=10_000, description="How many input names a River model gets. The daemon ignores further ones."
    )
    min_known_inputs: Annotated[Number, Field(ge=0, le=1)] | None = Field(
        default=0.0,
        description="The minimum share of incoming inputs that a model from a checkpoint must know. Less is an "
        "error. 0: at least one. null: no check.",
    )


class LogConfig(Section):
    """Writes log lines to standard error."""

    level: Literal["debug", "info", "warning", "error"] = Field(default="info", description="The lowest level logged.")
    format: Literal["text", "json"] = Field(default="text", description="text for people, or json for machines.")


class Config(Section):
    """Configuration of the streamkernel daemon."""

    model_config = ConfigDict(json_schema_extra={"oneOf": [{"required": ["model"]}, {"required": ["models"]}]})

    source: Annotated[SourceConfig, Field(discriminator="kind", description="Where the records come from.")]
    model: Annotated[list[Step], Field(min_length=1)] | None = Field(
        default=None, description="A River pipeline, top to bottom. Required unless models is set."
    )
    models: (
        Annotated[
            dict[
                Annotated[str, _model_name],
                Annotated[list[Step], Field(min_length=1)],
            ],
            Field(min_length=1),
        ]
        | None
    ) = Field(
        default=None,
        description="Several models on one stream, instead of model: a name and a pipeline for each. One is "
        "published, all learn.",
    )
    publish: str | None = Field(
        default=None,
        description="The model to publish first. null: the first one, or the one a checkpoint names. streamkernel "
        "promote publishes another one. In mode predict: the model of the checkpoint that predicts.",
    )
    mode: Literal["learn", "predict"] = Field(
        default="learn", description="predict: load a trained model from serve_from, and only predict."
    )
    serve_from: Path | None = Field(
        default=None,
        description="The checkpoint directory or file with the model for mode predict. The run only reads it. If you "
        "leave it out, the run reads checkpoint.directory and stores nothing.",
    )
    reload: Annotated[Number, Field(gt=0)] | None = Field(
        default=None,
        description="In mode predict: how often to look for a newer checkpoint, in seconds. null: keep the model.",
    )
    initial_model: InitialModelConfig | None = None
    warm_start: WarmStartConfig | None = None
    predictions: Annotated[PredictionsConfig, Field(discriminator="kind")] | None = Field(
        default=None, description="Where to write the predictions."
    )
    dead_letters: Annotated[DeadLettersConfig, Field(discriminator="kind")] | None = Field(
        default=None, description="Where to write records that the daemon cannot use."
    )
    checkpoint: CheckpointConfig | None = None
    metrics: MetricsConfig | None = MetricsConfig()
    serve: ServeConfig | None = None
    labels: LabelsConfig | None = None
    limits: LimitsConfig = LimitsConfig()
    imports: list[Annotated[str, _package]] = Field(
        default_factory=list,
        description="Trusted packages that the model may name, in addition to river and streamkernel.",
    )
    log: LogConfig = LogConfig()

    @property
    def sources(self) -> dict[str, SourceConfig]:
        """The sections of sources, by their key."""
        found = {"source": self.source}
        if self.labels is not None:
            found["labels.source"] = self.labels.source
        if self.warm_start is not None:
            found["warm_start.source"] = self.warm_start.source
        return found

    @property
    def outputs(self) -> dict[str, PredictionsConfig | DeadLettersConfig | None]:
        """The sections of outputs, by their key; None where an output is off."""
        return {"predictions": self.predictions, "dead_letters": self.dead_letters}

    @property
    def flush_seconds(self) -> dict[str, float]:
        """How long after a record was read its line can be read, by the key of each output that promises it."""
        sections = self.outputs.items()
        return {key: one.flush_seconds for key, one in sections if isinstance(one, FileSinkConfig | KafkaSinkConfig)}
