"""The sections of sources: files, data sets of River, journals, and the union of all kinds."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, Field

from streamkernel.connectors.files.names import is_pattern
from streamkernel.daemon.config.fields import (
    ColumnName,
    Name,
    Path,
    Paths,
    Positive,
    Section,
    TargetNames,
    TargetType,
    Whole,
    must,
)
from streamkernel.daemon.config.inputs import InputsConfig
from streamkernel.daemon.config.kafka import KafkaSourceConfig

__all__ = [
    "CsvSourceConfig",
    "JournalSourceConfig",
    "JsonlSourceConfig",
    "RiverSourceConfig",
    "SourceConfig",
    "is_list",
    "is_several",
    "paths_of",
]


def _known_encoding(name: str) -> str:
    try:
        "".encode(name)
    except LookupError:
        raise ValueError(f"unknown encoding {name!r}") from None
    return name


class _FileSourceConfig(Section):
    path: Paths = Field(
        description="The file. '-' is standard input. .gz and .zst are decompressed. A list of files, or a pattern "
        "such as data/*.csv, is one source."
    )
    target: TargetNames = Field(
        default=None,
        description="The column or key of the label. Use dots for a nested one. A list of several is for a model of "
        "several targets. null: every record is unlabeled.",
    )
    target_type: TargetType = Field(default="str", description="The type of the target: float for a regressor.")
    follow: bool = Field(
        default=False, description="Wait for more records at the end of the file, and follow its rotation."
    )
    watch: bool = Field(
        default=False,
        description="Read each file that arrives in the directory or matches the pattern, and wait for more.",
    )
    inputs: InputsConfig | None = None


class CsvSourceConfig(_FileSourceConfig):
    """Reads records from a CSV file with a header line."""

    kind: Literal["csv"]
    delimiter: Annotated[str, must("be one character", lambda text: len(text) == 1)] = Field(
        default=",", description="The field separator."
    )
    encoding: Annotated[str, AfterValidator(_known_encoding)] = Field(
        default="utf-8", description="The encoding of the text."
    )
    multiline: bool = Field(
        default=False,
        description="A quoted field may contain line ends. If false, a record with such a field is a dead letter.",
    )


class JsonlSourceConfig(_FileSourceConfig):
    """Reads records from a file with one JSON object per line."""

    kind: Literal["jsonl"]


class RiverSourceConfig(Section):
    """Reads records from a data set of river.datasets."""

    kind: Literal["river"]
    dataset: Name = Field(description="A class of river.datasets, such as Phishing or synth.Friedman.")
    args: dict[str, Any] = Field(default_factory=dict, description="Its keyword arguments.")


class JournalSourceConfig(Section):
    """Reads records from a journal, to which `streamkernel serve` writes the records it receives."""

    kind: Literal["journal"]
    directory: Path = Field(description="A folder for this journal alone. The daemon creates it if it is missing.")
    target: ColumnName | None = Field(
        default=None,
        description="The key of the label. Use dots for a nested one. null: every record is unlabeled.",
    )
    target_type: TargetType = Field(default="str", description="The type of the target: float for a regressor.")
    follow: bool = Field(default=True, description="Wait for more records at the end.")
    inputs: InputsConfig | None = None
    max_bytes: Annotated[Whole, Field(ge=2**20)] = Field(
        default=2**28,
        description="The maximum size of the journal in bytes. A full journal accepts no records until a checkpoint "
        "frees space.",
    )
    remembered_ids: Positive = Field(
        default=100_000,
        description="The journal remembers the IDs of this many newest records, to recognize repeats.",
    )


SourceConfig: TypeAlias = (
    CsvSourceConfig | JsonlSourceConfig | RiverSourceConfig | KafkaSourceConfig | JournalSourceConfig
)


def is_list(source: Any) -> bool:
    """Return whether a source names a list of targets, even of one."""
    return isinstance(getattr(source, "target", None), list)


def paths_of(source: Any) -> list[str]:
    """Return the paths and patterns of a source; none if it reads no files.

    Examples
    --------
    >>> paths_of(CsvSourceConfig(kind="csv", path="a.csv")), paths_of(CsvSourceConfig(kind="csv", path=["a", "b"]))
    (['a.csv'], ['a', 'b'])

    """
    path = getattr(source, "path", None)
    return [] if path is None else list(path) if isinstance(path, list) else [path]


def is_several(source: Any) -> bool:
    """Return whether a source reads several files: a list, a pattern, or a folder that it watches."""
    several = isinstance(getattr(source, "path", None), list) or any(map(is_pattern, paths_of(source)))
    return several or getattr(source, "watch", False)
