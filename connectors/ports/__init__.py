"""The ports: what a source hands out and what a sink takes. The daemon knows connectors by these types only."""

from streamkernel.connectors.ports.columns import (
    CodedColumn,
    Offsets,
    Raws,
    RecordColumns,
    at_places,
    unusable_places,
    with_passed,
)
from streamkernel.connectors.ports.connector import (
    Connector,
    ConnectorError,
    OutageError,
    SettingError,
    SinkError,
    SourceError,
)
from streamkernel.connectors.ports.record import CausedFault, ColumnUse, Fault, Label, Position, Record
from streamkernel.connectors.ports.sink import Mark, Sink
from streamkernel.connectors.ports.source import Source, at_offset

__all__ = [
    "CausedFault",
    "CodedColumn",
    "ColumnUse",
    "Connector",
    "ConnectorError",
    "Fault",
    "Label",
    "Mark",
    "Offsets",
    "OutageError",
    "Position",
    "Raws",
    "Record",
    "RecordColumns",
    "SettingError",
    "Sink",
    "SinkError",
    "Source",
    "SourceError",
    "at_offset",
    "at_places",
    "unusable_places",
    "with_passed",
]
