"""The common part of sources and sinks: closing, and errors that are sentences for the user."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Self

__all__ = ["Connector", "ConnectorError", "OutageError", "SettingError", "SinkError", "SourceError"]


class ConnectorError(Exception):
    """Something outside the process cannot be read or written; the message is one sentence for the user."""


class SourceError(ConnectorError):
    """A source cannot be opened, resumed or read on."""


class SinkError(ConnectorError):
    """A sink cannot be opened, resumed or written."""


class OutageError(SinkError):
    """The other side does not answer for now: the lines wait, and the caller may try again."""


class SettingError(ValueError):
    """A connector cannot use a setting.

    Attributes
    ----------
    setting
        Its key in the section of the connector, such as ``schema_registry.message``.
    message
        What is wrong, and what to do.

    """

    def __init__(self, setting: str, message: str) -> None:
        self.setting = setting
        self.message = message
        super().__init__(setting, message)

    def __str__(self) -> str:
        return f"{self.setting}: {self.message}"


class Connector(ABC):
    """A source or a sink, and a context manager that closes it."""

    @abstractmethod
    def close(self) -> None:
        """Flush a sink, and release everything; closing twice does nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
