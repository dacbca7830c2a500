"""The ports: what a source hands out, what a sink takes, and the place of a record.

Everything that reads or writes records (files, River data sets, a broker) speaks these few types, so the daemon
knows none of them by name. The in-memory fakes in `streamkernel.connectors.memory` implement them too.
"""

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
    "ColumnUse",
    "Connector",
    "ConnectorError",
    "Fault",
    "Label",
    "Mark",
    "OutageError",
    "Position",
    "Record",
    "SettingError",
    "Sink",
    "SinkError",
    "Source",
    "SourceError",
    "at_offset",
]
