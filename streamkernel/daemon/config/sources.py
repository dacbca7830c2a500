"""What a configuration says about a source: of a file, a data set of River's, and all that there are."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, Field

from streamkernel.daemon.config.column_name import ColumnName
from streamkernel.daemon.config.fields import Name, Paths, Section, TargetType
from streamkernel.daemon.config.inputs import InputsConfig
from streamkernel.daemon.config.journal import JournalSourceConfig
from streamkernel.daemon.config.kafka import KafkaSourceConfig

__all__ = ["CsvSourceConfig", "JsonlSourceConfig", "RiverSourceConfig", "SourceConfig"]


def _one_character(text: str) -> str:
    if len(text) != 1:
        raise ValueError(f"must be one character, got {text!r}")
    return text


def _known_encoding(name: str) -> str:
    try:
        "".encode(name)
    except LookupError:
        raise ValueError(f"unknown encoding {name!r}") from None
    return name


class _FileSourceConfig(Section):
    path: Paths = Field(
        description="The file; '-' is standard input; .gz and .zst are decompressed. A list of files, or a pattern as "
        "data/*.csv, is read as one source."
    )
    target: ColumnName | None = Field(
        default=None,
        description="The column or key of the label, a nested one with dots; null: every record is unlabelled.",
    )
    target_type: TargetType = Field(default="str", description="What the target is: float for a regressor.")
    follow: bool = Field(default=False, description="Wait for more at the end of the file, and follow its rotation.")
    watch: bool = Field(
        default=False,
        description="Read each file that arrives in the directory or under the pattern, and wait for more.",
    )
    inputs: InputsConfig | None = None


class CsvSourceConfig(_FileSourceConfig):
    """Records from a CSV file with a header line."""

    kind: Literal["csv"]
    delimiter: Annotated[str, AfterValidator(_one_character)] = Field(
        default=",", description="What separates the fields."
    )
    encoding: Annotated[str, AfterValidator(_known_encoding)] = Field(
        default="utf-8", description="How the text is encoded."
    )
    multiline: bool = Field(
        default=False,
        description="A quoted field may hold line ends. If not, a record with such a field is a dead letter.",
    )


class JsonlSourceConfig(_FileSourceConfig):
    """Records from a file with one JSON object a line."""

    kind: Literal["jsonl"]


class RiverSourceConfig(Section):
    """Records from a data set of river.datasets."""

    kind: Literal["river"]
    dataset: Name = Field(description="A class of river.datasets, such as Phishing or synth.Friedman.")
    args: dict[str, Any] = Field(default_factory=dict, description="Its keyword arguments.")


SourceConfig: TypeAlias = (
    CsvSourceConfig | JsonlSourceConfig | RiverSourceConfig | KafkaSourceConfig | JournalSourceConfig
)
