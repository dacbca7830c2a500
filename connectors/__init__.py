"""Records in, records out: the ports and one file a system. Imports nothing of streamkernel."""

from connectors.files.csv import CsvSource
from connectors.files.jsonlines import JsonLinesSource
from connectors.files.sinks import CsvSink, JsonLinesSink
from connectors.memory import MemorySink, MemorySource, NullSink
from connectors.ports import (
    ConnectorError,
    Fault,
    Label,
    Position,
    Record,
    Sink,
    SinkError,
    Source,
    SourceError,
)
from connectors.river import RiverSource

__all__ = [
    "ConnectorError",
    "CsvSink",
    "CsvSource",
    "Fault",
    "JsonLinesSink",
    "JsonLinesSource",
    "Label",
    "MemorySink",
    "MemorySource",
    "NullSink",
    "Position",
    "Record",
    "RiverSource",
    "Sink",
    "SinkError",
    "Source",
    "SourceError",
]
