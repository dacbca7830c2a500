"""What a configuration says about a journal: records and labels that came over HTTP, as a source."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from streamkernel.daemon.config.column_name import ColumnName
from streamkernel.daemon.config.fields import Path, Positive, Section, TargetType, Whole
from streamkernel.daemon.config.inputs import InputsConfig

__all__ = ["JournalSourceConfig"]


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
