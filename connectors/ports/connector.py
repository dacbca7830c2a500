"""What a source and a sink have in common: closing, and the errors that are sentences for the user."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Self

__all__ = ["Connector", "ConnectorError", "OutageError", "SinkError", "SourceError"]


class ConnectorError(Exception):
    """Something outside the process cannot be read or written; the message is one sentence for the user."""


class SourceError(ConnectorError):
    """A source cannot be opened, resumed or read on."""


class SinkError(ConnectorError):
    """A sink cannot be opened, resumed or written."""


class OutageError(SinkError):
    """The other side does not answer for now: the lines wait, and the same call may be made again later."""


class Connector(ABC):
    """A source or a sink as a context manager: leaving it closes the connector."""

    @abstractmethod
    def close(self) -> None:
        """Release what is held, a sink after a flush; closing twice does nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
