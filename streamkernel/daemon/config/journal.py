"""What a configuration says about a journal: records and labels that came over HTTP, as a source."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from streamkernel.daemon.config.column_name import ColumnName
from streamkernel.daemon.config.fields import Path, Positive, Section, TargetType, Whole
from streamkernel.daemon.config.inputs import InputsConfig

__all__ = ["JournalSourceConfig"]


class JournalSourceConfig(Section):
    """Records from a journal, which `streamkernel serve` writes with what it is sent."""

    kind: Literal["journal"]
    directory: Path = Field(description="A folder for this journal alone; it is made where it is missing.")
    target: ColumnName | None = Field(
        default=None,
        description="The key of the label, a nested one with dots; null: every record is unlabelled.",
    )
    target_type: TargetType = Field(default="str", description="What the target is: float for a regressor.")
    follow: bool = Field(default=True, description="Wait for more at the end.")
    inputs: InputsConfig | None = None
    max_bytes: Annotated[Whole, Field(ge=2**20)] = Field(
        default=2**28,
        description="How large the journal may become, in bytes; then nothing more is taken until a checkpoint has "
        "made room.",
    )
    remembered_ids: Positive = Field(
        default=100_000, description="How many of the last ids are remembered, by which a repeat is known."
    )
