"""The messages between the process that learns and that of its HTTP server.

The server asks in lines of JSON, which the other side reads with suspicion: it is the server that strangers talk to.
The answers are pickles after their length, and go only one way.
"""

from __future__ import annotations

import json
import logging
import pickle
import struct
from collections.abc import Iterator
from typing import IO, Any, NamedTuple

from streamkernel.daemon.base.health import Health
from streamkernel.daemon.config.endpoints import EndpointConfig
from streamkernel.daemon.serving.limits import HttpLimits

__all__ = ["Ask", "LogLine", "ServerSettings", "Told", "ask_line", "frame", "read_asks", "read_frame", "settings_of"]

_LENGTH = struct.Struct("!Q")
_LONGEST_LINE = 1 << 16
_LEVELS = (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR, logging.CRITICAL)


class ServerSettings(NamedTuple):
    """What the server's process is given at its start."""

    endpoint: EndpointConfig
    limits: HttpLimits
    section: str
    what: str  # to call it in the log
    page: str
    policy: str
    has_status: bool
    log_level: int


def settings_of(
    endpoint: EndpointConfig, limits: HttpLimits, section: str, what: str, health: Health
) -> ServerSettings:
    """Return what the server's process is given for a section of the configuration and a health."""
    # Of the class that the server knows, whose import takes little.
    common = EndpointConfig(**{name: getattr(endpoint, name) for name in EndpointConfig.model_fields})
    level = logging.getLogger().getEffectiveLevel()
    return ServerSettings(
        common, limits, section, what, health.page(), health.policy, health.snapshot is not None, level
    )


class Ask(NamedTuple):
    """A question of the server: for something that is newer than the version of it that the server has."""

    name: str
    version: int


class Told(NamedTuple):
    """The answer to a question: a value, or None where that version is still the newest."""

    name: str
    version: int
    value: Any
    failure: str | None = None  # why there is no answer


class LogLine(NamedTuple):
    """What the server has to say in the log."""

    level: int
    text: str

    def to_line(self) -> bytes:
        """Return the line of the message, shortened where it is too long for one."""
        return json.dumps({"level": self.level, "text": self.text[: _LONGEST_LINE // 16]}).encode() + b"\n"


def ask_line(ask: Ask) -> bytes:
    """Return the line of a question."""
    return json.dumps(ask._asdict()).encode() + b"\n"


def read_asks(stream: IO[bytes]) -> Iterator[Ask | LogLine]:
    """Read lines to their end; what is none of ours is the end, too.

    Examples
    --------
    >>> import io
    >>> list(read_asks(io.BytesIO(ask_line(Ask("metrics", 3)) + LogLine(30, "bad").to_line() + b"[]")))
    [Ask(name='metrics', version=3), LogLine(level=30, text='bad')]

    """
    while (line := stream.readline(_LONGEST_LINE)).endswith(b"\n"):
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            return
        match message:
            case {"name": str(name), "version": int(version)}:
                yield Ask(name, version)
            case {"level": int(level), "text": str(text)} if level in _LEVELS:
                yield LogLine(level, text)
            case _:
                return


def frame(value: Any) -> bytes:
    """Return the bytes of a value of ours."""
    body = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    return _LENGTH.pack(len(body)) + body


def read_frame(stream: IO[bytes]) -> Any:
    """Read a value that the process which started this one has sent.

    Raises
    ------
    EOFError
        At the end of the stream.

    """
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        raise EOFError
    (length,) = _LENGTH.unpack(head)
    return pickle.loads(stream.read(length))
